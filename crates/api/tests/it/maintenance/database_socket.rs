//! The socket of the embedded PostgreSQL, and scripts that run as the account that it belongs to.
#![cfg(target_os = "linux")]
#![expect(
    clippy::print_stdout,
    reason = "a test reports what the machine does not allow"
)]

use std::{
    fs,
    os::unix::{
        fs::{MetadataExt, PermissionsExt},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use labdata_embedded_postgres::{Durability, EmbeddedPostgres, Settings};
use labdata_redacted::Variables;
use labdata_sandbox::{
    Isolation, Limits, Network, ProcessSpec, Sandbox, Settings as SandboxSettings, stop_channel,
};
use tokio_postgres::NoTls;

use crate::process::{Program, directory};

/// Environment variable with the program that the repeated test uses.
const PROGRAM: &str = "TEST_PROGRAM_FOR_AN_ORDINARY_USER";

/// User without any rights.
const NOBODY: u32 = 65534;

/// Attacks on the database at the directory `SOCKETS`, one line each.
const ATTACK: &str = r#"
import os, shutil, socket, struct, subprocess

def attempt(name, action):
    try:
        print(name, action())
    except PermissionError:
        print(name, "denied")
    except OSError as error:
        print(name, error)

def message(kind, body):
    return kind + struct.pack("!i", len(body) + 4) + body

def raw(more=b""):
    database = socket.socket(socket.AF_UNIX)
    database.settimeout(10)
    database.connect(SOCKETS + "/.s.PGSQL.5432")
    start = struct.pack("!i", 196608) + b"user\0labdata\0database\0labdata\0\0"
    database.sendall(message(b"", start) + more)
    answer = b""
    while chunk := database.recv(4096):
        answer += chunk
        if not more and len(answer) >= 9:
            break
    if answer[:1] != b"R":
        return answer
    method = struct.unpack("!i", answer[5:9])[0]
    # 0 is a login, 10 is a demand for a password by SCRAM.
    return "SCRAM" if method == 10 and b"secret" not in answer else answer

def psql():
    program = shutil.which("psql")
    if not program:
        return "is refused"
    ended = subprocess.run([program, "-w", "-h", SOCKETS, "-U", "labdata", "-c", "SELECT 'secret'"],
                           capture_output=True, text=True)
    return "is refused" if ended.returncode == 2 and "secret" not in ended.stdout else ended

attempt("data directory", lambda: os.listdir(DATA))
attempt("password", lambda: open(DATA + "/postgres-password").read())
attempt("rules", lambda: open(DATA + "/postgres/pg_hba.conf", "a").write("local all all trust"))
attempt("login", raw)
attempt("query without login", lambda: raw(message(b"Q", b"SELECT 'secret'\0")))
attempt("psql", psql)
"#;

#[tokio::test]
async fn under_landlock_a_script_at_the_database_socket_does_not_become_superuser() {
    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        // Root's scripts have another account than the server, which cannot enter the directory.
        let name = "under_landlock_a_script_at_the_database_socket_does_not_become_superuser";
        return repeat_as_ordinary_user(name);
    }
    let data = directory();
    let server = EmbeddedPostgres::start(Settings {
        data_dir: data.path().to_owned(),
        bin_dir: std::env::var_os("LABDATA_PG_BIN_DIR").map(PathBuf::from),
        durability: Durability::Durable,
    })
    .await
    .unwrap();
    let lines = run_under_landlock(
        data.path(),
        &format!(
            "DATA = {:?}\nSOCKETS = DATA + '/postgres-run'\n{ATTACK}",
            data.path()
        ),
    )
    .await;
    let (client, connection) = tokio_postgres::connect(server.database_url(), NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    client.query_one("SELECT 1", &[]).await.unwrap();
    drop(client);
    server.stop().await.unwrap();
    let Some(lines) = lines else {
        println!("NOT TESTED: this machine has no Landlock");
        return;
    };
    let closed = ["data directory denied", "password denied", "rules denied"];
    // Linux 7.1 keeps the sandbox from the socket.
    let asked = [
        "login SCRAM",
        "query without login SCRAM",
        "psql is refused",
    ];
    let unreachable = [
        "login denied",
        "query without login denied",
        "psql is refused",
    ];
    let (first, last) = lines.split_at(closed.len());
    assert_eq!(first, closed, "{lines:?}");
    assert!(last == asked || last == unreachable, "{lines:?}");
}

/// Runs that test of this binary once more, as an ordinary user.
fn repeat_as_ordinary_user(name: &str) {
    // Accessible to every user, unlike the build directory.
    let place = directory();
    let copy = |program: &Path, name: &str| {
        let target = place.path().join(name);
        fs::copy(program, &target).unwrap();
        fs::set_permissions(&target, PermissionsExt::from_mode(0o755)).unwrap();
        target
    };
    let tests = copy(&std::env::current_exe().unwrap(), "tests");
    let program = copy(Path::new(env!("CARGO_BIN_EXE_labdata")), "labdata");
    let output = Command::new(tests)
        .args([name, "--nocapture"])
        .env(PROGRAM, program)
        .env("HOME", "/nonexistent")
        .current_dir("/")
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    if text.contains("NOT TESTED") {
        println!("{text}");
    }
}

/// Runs a script under Landlock and returns its output, or nothing where there is no Landlock.
async fn run_under_landlock(data: &Path, script: &str) -> Option<Vec<String>> {
    let program = std::env::var_os(PROGRAM)
        .map_or_else(|| env!("CARGO_BIN_EXE_labdata").into(), PathBuf::from);
    let supervisor = vec![program.into_os_string(), "run-supervisor".into()];
    let sandbox = Sandbox::new(SandboxSettings {
        isolation: Isolation::Landlock,
        minimum: Isolation::Nothing,
        ..SandboxSettings::new(data.to_owned(), supervisor)
    });
    let host = sandbox.host().await.unwrap();
    if host.isolation() != Isolation::Landlock {
        return None;
    }
    let workspace = host.workspace("attack");
    let active = host.activate(&workspace, script).await.unwrap();
    let spec = ProcessSpec {
        arguments: vec![active.script_path().to_str().unwrap().to_owned()],
        packages: None,
        environment: Variables::new(),
        network: Network::Host,
        limits: Limits {
            wall_clock: Duration::from_mins(2),
            cpu_time: Duration::from_mins(1),
            memory: 1 << 30,
            file_size: 1 << 30,
            scratch: 2 << 30,
            processes: 64,
            grace: Duration::from_secs(1),
        },
        logged: 0,
    };
    let (_handle, mut stop) = stop_channel();
    let outcome = host.run(&active, &spec, &mut stop, |_| ()).await.unwrap();
    let log = workspace.read_log(outcome.logged, 0, 1 << 20).await;
    let log = String::from_utf8(log.unwrap().bytes).unwrap();
    workspace.remove().await.unwrap();
    Some(log.lines().map(str::to_owned).collect())
}

#[tokio::test]
async fn the_database_of_a_served_platform_asks_for_the_password_in_its_file() {
    let directory = directory();
    let program = Program::serve(directory.path(), &[]);
    let data = directory.path().join(".labdata");
    let file = data.join("postgres-password");
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);
    let connect = async |password: &[u8]| {
        let (client, connection) = tokio_postgres::Config::new()
            .host_path(data.join("postgres-run"))
            .user("labdata")
            .password(password)
            .dbname("labdata")
            .connect(NoTls)
            .await?;
        tokio::spawn(connection);
        let query = "SELECT rolsuper FROM pg_roles WHERE rolname = current_user";
        let row = client.query_one(query, &[]).await?;
        Ok::<bool, tokio_postgres::Error>(row.get(0))
    };
    assert!(connect(&fs::read(&file).unwrap()).await.unwrap());
    let refused = connect(b"labdata").await.unwrap_err();
    assert_eq!(
        refused.code(),
        Some(&tokio_postgres::error::SqlState::INVALID_PASSWORD)
    );
    assert_eq!(program.end("TERM").0.code(), Some(0));
}
