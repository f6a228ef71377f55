//! Azurite, the emulator of Azure's storage: installed from npm below the target directory, one
//! for all tests of a process.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::OnceLock,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

const VERSION: &str = "3.35.0";

/// Ends with the process that started it, however that ends: its standard input closes then.
const HOST: &str = "process.stdin.on('close', () => process.exit(0)).resume();\n\
    require('./node_modules/azurite/dist/src/blob/main.js');\n";

pub(crate) const ACCOUNT: &str = "devstoreaccount1";
/// The key that every emulator has, as its documentation says.
pub(crate) const KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// A running emulator, and the container `lab` in it.
pub(crate) struct Azurite {
    /// Endpoint of the account.
    pub(crate) endpoint: String,
}

struct Running {
    url: String,
    _child: Child,
}

/// The emulator; `None`, and a line that says so, where npm cannot bring it.
pub(crate) async fn azurite() -> Option<Azurite> {
    static RUNNING: OnceLock<Option<Running>> = OnceLock::new();
    let url = tokio::task::spawn_blocking(|| {
        let running = RUNNING.get_or_init(|| {
            start()
                .map_err(|why| {
                    eprintln!("NOT TESTED against Azure: {why}");
                })
                .ok()
        });
        running.as_ref().map(|running| running.url.clone())
    })
    .await
    .unwrap()?;
    let endpoint = format!("{url}/{ACCOUNT}");
    create_container(&endpoint).await;
    Some(Azurite { endpoint })
}

/// Installs Azurite unless it is installed. Other processes wait.
fn installed() -> Result<PathBuf, String> {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("azurite-{VERSION}"));
    let program = place.join("host.js");
    fs::create_dir_all(&place).unwrap();
    let lock = fs::File::create(place.join("lock")).unwrap();
    lock.lock().unwrap();
    if place.join("complete").exists() {
        return Ok(program);
    }
    let install = Command::new("npm")
        .args([
            "install",
            "--no-audit",
            "--no-fund",
            "--ignore-scripts",
            "--prefix",
        ])
        .arg(&place)
        .arg(format!("azurite@{VERSION}"))
        .output()
        .map_err(|error| format!("npm does not run: {error}"))?;
    if !install.status.success() {
        let said = String::from_utf8_lossy(&install.stderr).into_owned();
        return Err(format!("npm cannot bring azurite: {said}"));
    }
    fs::write(&program, HOST).unwrap();
    fs::write(place.join("complete"), "").unwrap();
    Ok(program)
}

fn start() -> Result<Running, String> {
    let program = installed()?;
    let mut child = Command::new("node")
        .arg(program)
        .args([
            "--blobPort",
            "0",
            "--inMemoryPersistence",
            "--skipApiVersionCheck",
            "--silent",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("node does not run: {error}"))?;
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let url = lines
        .by_ref()
        .map_while(Result::ok)
        .find_map(|line| Some(line[line.find("http://")?..].trim().to_owned()))
        .expect("azurite tells where it listens");
    // Drains the output, which nothing else reads.
    std::thread::spawn(move || lines.for_each(drop));
    Ok(Running { url, _child: child })
}

/// Creates the container `lab`, once.
async fn create_container(endpoint: &str) {
    let (date, version) = ("Wed, 01 Jan 2025 00:00:00 GMT", "2021-08-06");
    let signed = format!(
        "PUT\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:{date}\nx-ms-version:{version}\n\
         /{ACCOUNT}/{ACCOUNT}/lab\nrestype:container"
    );
    let mut mac = Hmac::<Sha256>::new_from_slice(&STANDARD.decode(KEY).unwrap()).unwrap();
    mac.update(signed.as_bytes());
    let signature = STANDARD.encode(mac.finalize().into_bytes());
    let response = reqwest::Client::new()
        .put(format!("{endpoint}/lab?restype=container"))
        .header("x-ms-date", date)
        .header("x-ms-version", version)
        .header("authorization", format!("SharedKey {ACCOUNT}:{signature}"))
        .send()
        .await
        .unwrap();
    let status = response.status().as_u16();
    assert!(
        matches!(status, 201 | 409),
        "{status}: {}",
        response.text().await.unwrap()
    );
}
