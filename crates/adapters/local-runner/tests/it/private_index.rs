//! Package indexes with credentials: no build script sees them.

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
};

use labdata_local_runner::LocalRunner;
use labdata_port_contracts::work::{end_of, log_from, spec};
use labdata_ports::work::runner::JobRunner;
use labdata_sandbox::{Network, NetworkSettings, Sandbox, Settings};

use crate::{
    packages::{isolation_of, open_directory, write_package},
    support::settings,
};

/// Environment variable of the process that installs from the index.
const INSTALLS: &str = "LABDATA_TEST_INSTALLS_FROM_INDEX";

/// User and password of the index, as a client sends them.
const AUTHORIZATION: &str = "authorization: basic ywrhomh1bnrlcji=";

/// Script that prints the environment of its dependency's build, and its own.
const SCRIPT: &str = "# /// script\n# dependencies = [\"leaky==1.0\"]\n# ///\n\
import leaky, os\nprint(leaky.ENVIRONMENT)\nprint(dict(os.environ))\nprint('installed')\n";

/// Build backend of a package that contains the environment of its build.
const BACKEND: &str = r#"
import os, zipfile
def build_wheel(directory, config_settings=None, metadata_directory=None):
    name = "leaky-1.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(directory, name), "w") as wheel:
        wheel.writestr("leaky.py", "ENVIRONMENT = " + repr(dict(os.environ)))
        wheel.writestr("leaky-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: leaky\nVersion: 1.0\n")
        wheel.writestr("leaky-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("leaky-1.0.dist-info/RECORD", "")
    return name
"#;

/// Installs in the child process; not a test.
#[tokio::test]
async fn an_installation_from_a_private_index() {
    let Ok(level) = std::env::var(INSTALLS) else {
        return;
    };
    let isolation = isolation_of(&level);
    for access in [Network::Internet, Network::Platform, Network::Host] {
        let data = open_directory();
        let sandbox = Sandbox::new(Settings {
            network: NetworkSettings {
                access,
                ..NetworkSettings::default()
            },
            ..settings(data.path(), isolation)
        });
        let runner = LocalRunner::new(Arc::new(sandbox));
        let run = spec(SCRIPT);
        runner.submit(&run).await.unwrap();
        let end = end_of(&runner, run.run).await;
        let log = log_from(&runner, run.run, 0).await;
        println!("{isolation:?} {access:?} {end:?}\n{log}");
        assert!(end.succeeded() && log.contains("installed"));
    }
    println!("all installed");
}

#[test]
fn credentials_of_the_package_index_do_not_reach_build_scripts() {
    let place = tempfile::tempdir().unwrap();
    let archive = write_package(place.path(), "leaky", BACKEND);
    let port = serve_index(&archive);
    for isolation in ["Namespaces", "Landlock", "Nothing"] {
        let output = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "private_index::an_installation_from_a_private_index",
                "--nocapture",
            ])
            .env(INSTALLS, isolation)
            .env(
                "UV_DEFAULT_INDEX",
                format!("http://ada:hunter2@127.0.0.1:{port}/simple/"),
            )
            .env("HTTPS_PROXY", "http://ada:hunter2@127.0.0.1:9")
            .env_remove("PIP_FIND_LINKS")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains("all installed"), "{text}\n{errors}");
        assert!(
            text.contains("UV_DEFAULT_INDEX"),
            "the environment of the build: {text}"
        );
        assert!(
            !text.contains("hunter2") && !text.contains("YWRh"),
            "{text}"
        );
    }
}

/// Serves an index with that package, which needs the credentials, and returns its port.
fn serve_index(archive: &Path) -> u16 {
    let bytes = std::fs::read(archive).unwrap();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            // A client that leaves early is none of the test's business.
            let _ = response(client, &bytes);
        }
    });
    port
}

fn response(mut client: TcpStream, archive: &[u8]) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte)?;
        head.extend(byte);
    }
    let head = String::from_utf8_lossy(&head).to_lowercase();
    let page = b"<!DOCTYPE html><html><body><a href=\"/files/leaky-1.0.tar.gz\">leaky-1.0.tar.gz</a></body></html>";
    let (status, kind, body) = if !head.contains(AUTHORIZATION) {
        ("401 Unauthorized", "text/plain", &b"who are you"[..])
    } else if head.contains(" /simple/leaky/ ") {
        ("200 OK", "text/html", &page[..])
    } else if head.contains(" /files/leaky-1.0.tar.gz ") {
        ("200 OK", "application/gzip", archive)
    } else {
        ("404 Not Found", "text/plain", &b""[..])
    };
    let length = body.len();
    write!(
        client,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    )?;
    if !head.starts_with("head") {
        client.write_all(body)?;
    }
    client.shutdown(std::net::Shutdown::Both)
}
