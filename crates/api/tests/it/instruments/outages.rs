//! The story of an instrument's bad days: the watcher of `labdata-watch`, as a process, against a server over
//! PostgreSQL. The clock of the server and the watcher's own are wound by the test.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Lines, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use labdata_application::instruments::watch_devices::watch_devices;
use labdata_domain::people::scope::Scope;
use labdata_postgres::DatabaseSettings;
use labdata_sandbox::{Python, Uv};
use serde_json::Value;
use time::Duration;

use super::devices::{events, reader};
use crate::on_postgres::OnPostgres;

/// Number of files of the backlog; `LABDATA_OUTAGE_FILES` sets another one.
const BACKLOG: usize = 120;

/// Number of times that the watcher is killed while it sends the backlog.
const KILLS: usize = 20;

/// Returns a Python with the client's dependencies, which the first call installs below the target directory.
fn python() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let environment = target.join("watcher-venv");
    let created = Python::find(None).and_then(|python| {
        Uv::find(None, &target.join("tools"), &python)?
            .create_environment(&environment, include_str!("watcher-requirements.txt"))
    });
    created.expect("this test needs httpx, which uv installs");
    environment.join("bin/python")
}

/// The network between watcher and platform, which can be cut.
struct Network {
    address: SocketAddr,
    is_cut: Arc<AtomicBool>,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Network {
    fn to(platform: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let network = Self {
            address: listener.local_addr().unwrap(),
            is_cut: Arc::default(),
            open: Arc::default(),
        };
        let (is_cut, open) = (Arc::clone(&network.is_cut), Arc::clone(&network.open));
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if is_cut.load(Ordering::SeqCst) {
                    continue;
                }
                let Ok(server) = TcpStream::connect(platform) else {
                    continue;
                };
                for (from, into) in [(&client, &server), (&server, &client)] {
                    let (mut from, mut into) =
                        (from.try_clone().unwrap(), into.try_clone().unwrap());
                    thread::spawn(move || {
                        std::io::copy(&mut from, &mut into).ok();
                        into.shutdown(std::net::Shutdown::Both).ok();
                    });
                }
                open.lock().unwrap().extend([client, server]);
            }
        });
        network
    }

    fn cut(&self) {
        self.is_cut.store(true, Ordering::SeqCst);
        for connection in self.open.lock().unwrap().drain(..) {
            connection.shutdown(std::net::Shutdown::Both).ok();
        }
    }

    fn restore(&self) {
        self.is_cut.store(false, Ordering::SeqCst);
    }
}

/// A running watcher.
struct Watcher {
    process: Child,
    orders: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Watcher {
    /// The next line, which begins with that word.
    fn expect(&mut self, word: &str) -> String {
        let line = self.lines.next().expect("a line").unwrap();
        assert!(line.starts_with(word), "{line}");
        line
    }

    fn order(&mut self, order: &str) {
        writeln!(self.orders, "{order}").unwrap();
    }

    /// Looks at the folder; returns the number of files that wait after it.
    fn look(&mut self, now: i64) -> usize {
        self.order(&format!("look {now}"));
        loop {
            let line = self.lines.next().expect("a line").unwrap();
            if let Some(waiting) = line.strip_prefix("looked ") {
                return waiting.parse().unwrap();
            }
        }
    }

    fn beat(&mut self) {
        self.order("beat");
        self.expect("beaten");
    }

    fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

/// The computer beside the instrument, and the platform.
struct Story {
    lab: OnPostgres,
    network: Network,
    instrument: String,
    key: String,
    python: PathBuf,
    home: tempfile::TempDir,
    minutes: i64,
}

impl Story {
    async fn begin() -> Self {
        let lab = OnPostgres::empty(DatabaseSettings::default()).await;
        let instrument = reader(&lab.client).await;
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("exports")).unwrap();
        let key = lab.server.client(&[Scope::Write]).await;
        let (_, authorization) = key.as_others_need_it();
        let python = tokio::task::spawn_blocking(python).await.unwrap();
        Self {
            network: Network::to(lab.server.address),
            key: authorization.trim_start_matches("Bearer ").to_owned(),
            lab,
            instrument,
            python,
            home,
            minutes: 0,
        }
    }

    fn folder(&self) -> PathBuf {
        self.home.path().join("exports")
    }

    /// The instrument writes files.
    fn write(&self, prefix: &str, count: usize) -> Vec<String> {
        let names = (0..count).map(|number| format!("{prefix} {number:05}.txt"));
        let write = |name: String| {
            std::fs::write(self.folder().join(&name), format!("plate of {name}")).unwrap();
            name
        };
        names.map(write).collect()
    }

    fn start(&self) -> Watcher {
        let id = self.instrument.rsplit('/').next().unwrap();
        let client = concat!(env!("CARGO_MANIFEST_DIR"), "/../../clients/python/src");
        let script = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/it/instruments/watcher.py"
        );
        let mut process = Command::new(&self.python)
            .arg(script)
            .args([
                format!("http://{}", self.network.address),
                self.key.clone(),
                id.to_owned(),
            ])
            .args([self.folder(), self.home.path().join("state")])
            .env("PYTHONPATH", client)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut watcher = Watcher {
            orders: process.stdin.take().unwrap(),
            lines: BufReader::new(process.stdout.take().unwrap()).lines(),
            process,
        };
        watcher.expect("ready");
        watcher
    }

    /// Lets minutes pass, in each of which a running watcher beats, and the platform looks for silent devices.
    async fn pass(&mut self, minutes: i64, mut watcher: Option<&mut Watcher>) {
        for _ in 0..minutes {
            for _ in 0..4 {
                self.lab.server.clock.advance(Duration::seconds(15));
                watch_devices(&self.lab.server.services).await.unwrap();
            }
            self.minutes += 1;
            if let Some(watcher) = &mut watcher {
                tokio::task::block_in_place(|| watcher.beat());
            }
        }
    }

    /// Paths of the platform's files of the instrument, with how often each one is there.
    async fn stored(&self) -> BTreeMap<String, usize> {
        let mut stored = BTreeMap::new();
        let mut next = Some("/api/v1/files?limit=1000".to_owned());
        while let Some(path) = next {
            let page = self.lab.client.get(&path).await;
            for file in page.json(200).as_array().unwrap() {
                let name = file["original_path"].as_str().unwrap().to_owned();
                *stored.entry(name).or_default() += 1;
            }
            next = page.next();
        }
        stored
    }

    async fn status(&self) -> Value {
        let path = format!("{}/device-status", self.instrument);
        self.lab.client.get(&path).await.json(200)
    }

    async fn notices(&self) -> usize {
        let inbox = self.lab.client.get("/api/v1/notifications").await.json(200);
        inbox.as_array().unwrap().len()
    }
}

/// The statuses with the minutes of their beginning and end.
fn minutes(status: &Value) -> Vec<(String, i64, i64)> {
    let minute = |time: &Value| {
        let format = &time::format_description::well_known::Rfc3339;
        let at = time::OffsetDateTime::parse(time.as_str().unwrap(), format).unwrap();
        (at - time::macros::datetime!(2026-01-01 00:00 UTC)).whole_minutes()
    };
    let periods = status["statuses"].as_array().unwrap().iter();
    periods
        .map(|it| {
            let status = it["status"].as_str().unwrap().to_owned();
            (status, minute(&it["first_seen"]), minute(&it["last_seen"]))
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn after_every_outage_each_file_is_there_once_and_admins_heard_of_it_once() {
    let backlog = std::env::var("LABDATA_OUTAGE_FILES").map_or(BACKLOG, |it| it.parse().unwrap());
    let mut story = Story::begin().await;
    let mut written = story.write("backlog", backlog);

    // Killed again and again while it sends, after the platform has stored a file and before that is noted.
    let mut now = 0;
    for kill in 1..=KILLS {
        let mut watcher = story.start();
        tokio::task::block_in_place(|| {
            watcher.beat();
            watcher.look(now);
            now += 10;
            watcher.order(&format!("look {now}"));
            for _ in 0..kill % 4 {
                watcher.expect("uploaded");
            }
            watcher.kill();
        });
    }
    let mut watcher = story.start();
    tokio::task::block_in_place(|| {
        watcher.look(now);
        assert_eq!(watcher.look(now + 10), 0);
    });
    now += 10;
    story.pass(5, Some(&mut watcher)).await;
    assert_eq!(story.status().await["current_status"]["value"], "online");

    // The network is cut for twelve minutes, and the instrument continues.
    story.network.cut();
    written.extend(story.write("cut off", 10));
    tokio::task::block_in_place(|| watcher.look(now));
    now += 10;
    assert_eq!(tokio::task::block_in_place(|| watcher.look(now)), 10);
    story.pass(12, Some(&mut watcher)).await;
    assert_eq!(story.status().await["current_status"]["value"], "offline");
    assert_eq!(story.notices().await, 1);
    story.network.restore();
    story.pass(1, Some(&mut watcher)).await;
    now += 600;
    assert_eq!(tokio::task::block_in_place(|| watcher.look(now)), 0);

    // The folder is renamed for two minutes.
    let away = story.home.path().join("away");
    std::fs::rename(story.folder(), &away).unwrap();
    tokio::task::block_in_place(|| watcher.look(now + 10));
    story.pass(2, Some(&mut watcher)).await;
    assert_eq!(story.status().await["current_status"]["value"], "error");
    std::fs::rename(&away, story.folder()).unwrap();
    written.extend(story.write("renamed", 3));
    now += 20;
    tokio::task::block_in_place(|| {
        watcher.look(now);
        assert_eq!(watcher.look(now + 10), 0);
    });
    story.pass(1, Some(&mut watcher)).await;

    // The computer is switched off over night.
    tokio::task::block_in_place(|| watcher.kill());
    written.extend(story.write("at night", 3));
    story.pass(15, None).await;
    assert_eq!(story.notices().await, 2);
    let mut watcher = story.start();
    story.pass(2, Some(&mut watcher)).await;
    tokio::task::block_in_place(|| {
        watcher.look(now);
        assert_eq!(watcher.look(now + 10), 0);
        watcher.kill();
    });
    assert_eq!(story.notices().await, 2);

    let expected: BTreeMap<String, usize> = written.into_iter().map(|name| (name, 1)).collect();
    assert_eq!(story.stored().await, expected);
    let periods = minutes(&story.status().await);
    let expected = [
        ("online", 0, 5),
        ("offline", 5, 18),
        ("online", 18, 18),
        ("error", 19, 20),
        ("online", 21, 21),
        ("offline", 21, 37),
        ("online", 37, 38),
    ];
    assert_eq!(
        periods,
        expected.map(|(status, from, to)| (status.to_owned(), from, to))
    );
    let announced = [
        "instrument.online",
        "instrument.offline",
        "instrument.online",
        "instrument.error",
        "instrument.online",
        "instrument.offline",
        "instrument.online",
    ];
    assert_eq!(events(&story.lab.server).await, announced);
}
