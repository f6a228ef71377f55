//! A PostgreSQL primary with a standby.

use std::{
    fs::Permissions,
    os::unix::{
        fs::{MetadataExt, PermissionsExt, chown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use labdata_test_database::TestDatabase;
use tempfile::TempDir;
use tokio_postgres::{Client, NoTls};

/// Time in which a server accepts connections.
const START: Duration = Duration::from_secs(30);

/// Settings of both servers. The machine does not lose power during a test.
const SETTINGS: [&str; 7] = [
    "listen_addresses=",
    "max_connections=200",
    "shared_buffers=64MB",
    "fsync=off",
    "wal_level=replica",
    "max_wal_size=1GB",
    "log_min_messages=fatal",
];

/// The programs of the server that all tests use, and the account that it runs as.
struct Programs {
    directory: PathBuf,
    uid: u32,
    gid: u32,
}

impl Programs {
    async fn find() -> Self {
        let database = TestDatabase::unmigrated().await;
        let client = connect(database.url()).await.unwrap();
        let ask = async |query| -> String { client.query_one(query, &[]).await.unwrap().get(0) };
        let directory = ask("SELECT setting FROM pg_config WHERE name = 'BINDIR'").await;
        let data = ask("SELECT current_setting('data_directory')").await;
        let data = std::fs::metadata(data).unwrap();
        Self {
            directory: directory.into(),
            uid: data.uid(),
            gid: data.gid(),
        }
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.directory.join(program));
        let own = std::fs::metadata("/proc/self").unwrap();
        if own.uid() != self.uid {
            command.uid(self.uid).gid(self.gid);
        }
        command
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command
    }

    fn serve(&self, place: &Path, more: &[&str]) -> Child {
        let mut command = self.command("postgres");
        command.arg("-D").arg(place.join("data"));
        let socket = format!("unix_socket_directories={}", place.display());
        for setting in SETTINGS.iter().chain(more).chain([&socket.as_str()]) {
            command.args(["-c", setting]);
        }
        command.spawn().unwrap()
    }
}

/// Two servers. They are killed when dropped.
pub(super) struct ReplicatedPostgres {
    primary: Child,
    standby: Child,
    directory: TempDir,
}

impl ReplicatedPostgres {
    /// Starts both; from then on commits wait for the standby.
    pub(super) async fn start() -> Self {
        let servers = Self::start_asynchronous().await;
        let client = until_ready(&servers.place("a")).await;
        for statement in [
            "ALTER SYSTEM SET synchronous_standby_names = 'standby'",
            "SELECT pg_reload_conf()",
        ] {
            client.batch_execute(statement).await.unwrap();
        }
        until_synchronous(&client).await;
        servers
    }

    /// Starts both; commits do not wait for the standby.
    pub(super) async fn start_asynchronous() -> Self {
        let programs = Programs::find().await;
        let directory = tempfile::Builder::new()
            .prefix("labdata-test-")
            .permissions(Permissions::from_mode(0o755))
            .tempdir()
            .unwrap();
        let places = ["a", "b"].map(|name| directory.path().join(name));
        for place in &places {
            std::fs::create_dir(place).unwrap();
            chown(place, Some(programs.uid), Some(programs.gid)).unwrap();
        }
        let [first, second] = &places;

        let mut initdb = programs.command("initdb");
        initdb.args(["--username=labdata", "--auth=trust", "--no-sync"]);
        initdb.args(["--encoding=UTF8", "--locale=C", "-D"]);
        let created = initdb.arg(first.join("data")).status();
        assert!(created.unwrap().success());
        let primary = programs.serve(first, &[]);
        let client = until_ready(first).await;
        client
            .batch_execute("CREATE DATABASE labdata")
            .await
            .unwrap();

        let mut copy = programs.command("pg_basebackup");
        copy.args(["--write-recovery-conf", "--checkpoint=fast", "--no-sync"]);
        copy.args(["--username=labdata", "-h"]).arg(first);
        let copied = copy.arg("-D").arg(second.join("data")).status();
        assert!(copied.unwrap().success());
        let follow = format!(
            "primary_conninfo=host={} user=labdata application_name=standby",
            first.display()
        );
        let standby = programs.serve(second, &[&follow]);
        until_ready(second).await;
        Self {
            primary,
            standby,
            directory,
        }
    }

    /// URL of both servers, which leads to the primary.
    pub(super) fn url(&self) -> String {
        let hosts = ["a", "b"].map(|name| encoded(&self.place(name)));
        format!(
            "postgresql://labdata@{}/labdata?target_session_attrs=read-write",
            hosts.join(",")
        )
    }

    /// URL of the standby.
    pub(super) fn standby_url(&self) -> String {
        url(&self.place("b"), "labdata")
    }

    fn place(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The number that a query returns on the primary.
    pub(super) async fn count_on_primary(&self, query: &str) -> i64 {
        count(&self.place("a"), query).await
    }

    /// The number that a query returns on the standby.
    pub(super) async fn count_on_standby(&self, query: &str) -> i64 {
        count(&self.place("b"), query).await
    }

    /// `kill -9` of the standby.
    pub(super) fn kill_standby(&mut self) {
        self.standby.kill().unwrap();
        self.standby.wait().unwrap();
    }

    /// `kill -9` of the primary.
    pub(super) fn kill_primary(&mut self) {
        self.primary.kill().unwrap();
        self.primary.wait().unwrap();
    }

    /// Makes the standby the primary, and returns once it is.
    pub(super) async fn promote_standby(&self) {
        let client = until_ready(&self.place("b")).await;
        let promoted = client.query_one("SELECT pg_promote(true, 60)", &[]).await;
        assert!(promoted.unwrap().get::<_, bool>(0));
    }
}

impl Drop for ReplicatedPostgres {
    fn drop(&mut self) {
        for server in [&mut self.primary, &mut self.standby] {
            // Fails when it has ended, which is as good.
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

fn encoded(path: &Path) -> String {
    path.to_str().unwrap().replace('/', "%2F")
}

async fn connect(url: &str) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

fn url(place: &Path, database: &str) -> String {
    format!("postgresql://labdata@{}/{database}", encoded(place))
}

async fn count(place: &Path, query: &str) -> i64 {
    let client = until_ready(place).await;
    client.query_one(query, &[]).await.unwrap().get(0)
}

async fn until_ready(place: &Path) -> Client {
    let url = url(place, "postgres");
    let began = Instant::now();
    loop {
        match connect(&url).await {
            Ok(client) => return client,
            Err(error) => assert!(began.elapsed() < START, "{error:?}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn until_synchronous(client: &Client) {
    let began = Instant::now();
    loop {
        let query = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
        let count: i64 = client.query_one(query, &[]).await.unwrap().get(0);
        if count == 1 {
            return;
        }
        assert!(began.elapsed() < START, "the standby does not follow");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
