//! The table of `docs/SECURITY-MODEL.md`: what a script can do at each isolation, as scripts find it.

use std::{
    fs,
    net::{TcpListener, UdpSocket},
    os::{
        linux::net::SocketAddrExt,
        unix::{
            fs::PermissionsExt,
            net::{SocketAddr, UnixListener},
        },
    },
    path::Path,
    process::{Child, Command},
};

use labdata_sandbox::{
    Isolation::{self, Landlock, Namespaces, Nothing},
    Network,
};
use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, Scope,
};

use crate::support::{Lab, data_directory};

const DOCUMENT: &str = include_str!("../../../../../docs/SECURITY-MODEL.md");

/// Something that a script tries.
struct Attempt {
    /// First cell of its line.
    name: &'static str,
    /// Statements of Python, each of which fails if it is denied.
    code: &'static [&'static str],
    /// True where it is possible: in namespaces, under Landlock alone, and without isolation.
    possible: [bool; 3],
    /// From when on Landlock denies it.
    since: Option<Since>,
}

/// Release of Linux from which Landlock denies something, and whether this kernel does.
#[derive(Clone, Copy)]
struct Since {
    release: &'static str,
    denies: fn() -> bool,
}

const fn attempt(
    name: &'static str,
    possible: [bool; 3],
    code: &'static [&'static str],
) -> Attempt {
    Attempt {
        name,
        code,
        possible,
        since: None,
    }
}

const LEVELS: [Isolation; 3] = [Namespaces, Landlock, Nothing];

const ATTEMPTS: [Attempt; 8] = [
    attempt(
        "read the data directory, write in `/tmp`",
        [false, false, true],
        &["open(PLACE + '/file').read()", "open(PLACE + '/new', 'w')"],
    ),
    attempt(
        "see other processes and connections",
        [false, false, true],
        &[
            "open('/proc/%d/cmdline' % PROCESS).read()",
            "open('/proc/self/net/tcp').read().index('%04X' % TCP)",
        ],
    ),
    attempt(
        "signal processes, use sockets with a name",
        [false, false, true],
        &[
            "os.kill(PROCESS, 0)",
            "socket.socket(socket.AF_UNIX).connect('\\0' + NAME)",
        ],
    )
    .since("6.12", landlock_scopes),
    attempt(
        "use sockets with a path",
        [false, false, true],
        &["socket.socket(socket.AF_UNIX).connect(PLACE + '/socket')"],
    )
    .since("7.1", landlock_limits_paths),
    attempt(
        "connect by TCP to the machine",
        [false, false, true],
        &["socket.create_connection(('127.0.0.1', TCP), 5)"],
    )
    .since("6.7", landlock_limits_tcp),
    attempt(
        "send UDP",
        [false, true, true],
        &["socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'1', ('127.0.0.1', UDP))"],
    ),
    attempt(
        "read the machine's memory and its own status",
        [true, true, true],
        &[
            "open('/proc/meminfo').read()",
            "open('/proc/stat').read()",
            "open('/proc/self/statm').read()",
        ],
    ),
    attempt(
        "share semaphores and memory (else `joblib` is serial)",
        [true, false, true],
        &[
            "multiprocessing.Lock()",
            "tempfile.TemporaryFile(dir='/dev/shm')",
        ],
    ),
];

fn is_enforced(limit: impl FnOnce(Ruleset) -> Result<Ruleset, landlock::RulesetError>) -> bool {
    let strict = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    limit(strict).and_then(Ruleset::create).is_ok()
}

fn landlock_scopes() -> bool {
    is_enforced(|rules| rules.scope(Scope::from_all(ABI::V6)))
}

fn landlock_limits_paths() -> bool {
    is_enforced(|rules| rules.handle_access(AccessFs::ResolveUnix))
}

fn landlock_limits_tcp() -> bool {
    is_enforced(|rules| rules.handle_access(AccessNet::from_all(ABI::V4)))
}

impl Attempt {
    const fn since(mut self, release: &'static str, denies: fn() -> bool) -> Self {
        self.since = Some(Since { release, denies });
        self
    }

    /// Returns the line of the table.
    fn line(&self) -> String {
        let cells = LEVELS.into_iter().zip(self.possible);
        let cells = cells.map(|(level, possible)| match (possible, self.since) {
            (true, _) => "yes".to_owned(),
            (false, Some(since)) if level == Landlock => format!("no (Linux {})", since.release),
            (false, _) => "no".to_owned(),
        });
        let cells: Vec<String> = cells.collect();
        format!("| {} | {} |", self.name, cells.join(" | "))
    }

    /// Returns whether it is possible here.
    fn expected(&self, level: usize) -> bool {
        let is_denied_later = self.since.is_some_and(|since| !(since.denies)());
        let is_possible = self.possible.get(level).copied();
        let is_landlock = LEVELS.get(level) == Some(&Landlock);
        is_possible == Some(true) || (is_landlock && is_denied_later)
    }
}

/// Targets that scripts try to reach: all that the machine's accounts may.
struct Machine {
    place: tempfile::TempDir,
    process: Child,
    tcp: TcpListener,
    udp: UdpSocket,
    _sockets: [UnixListener; 2],
}

impl Machine {
    fn new() -> Self {
        let place = data_directory();
        fs::set_permissions(place.path(), PermissionsExt::from_mode(0o777)).unwrap();
        fs::write(place.path().join("file"), "of the platform").unwrap();
        let path = place.path().join("socket");
        let name = SocketAddr::from_abstract_name(socket_name(place.path())).unwrap();
        let sockets = [
            UnixListener::bind(&path).unwrap(),
            UnixListener::bind_addr(&name).unwrap(),
        ];
        fs::set_permissions(&path, PermissionsExt::from_mode(0o777)).unwrap();
        Self {
            place,
            process: Command::new("sleep").arg("600").spawn().unwrap(),
            tcp: TcpListener::bind("127.0.0.1:0").unwrap(),
            udp: UdpSocket::bind("127.0.0.1:0").unwrap(),
            _sockets: sockets,
        }
    }

    /// Returns a script that prints for each attempt whether it succeeded.
    fn script(&self) -> String {
        let codes: Vec<&[&str]> = ATTEMPTS.iter().map(|attempt| attempt.code).collect();
        format!(
            "import multiprocessing, os, socket, tempfile\n\
             PLACE, NAME = '{}', '{}'\nPROCESS, TCP, UDP = {}, {}, {}\n\
             def result(code):\n    try:\n        exec(code)\n        return 'yes'\n    \
             except (OSError, ValueError):\n        return 'no'\n\
             for codes in {codes:?}:\n    print(*sorted({{result(code) for code in codes}}))\n",
            self.place.path().display(),
            socket_name(self.place.path()),
            self.process.id(),
            self.tcp.local_addr().unwrap().port(),
            self.udp.local_addr().unwrap().port(),
        )
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn socket_name(place: &Path) -> String {
    place.display().to_string().replace('/', "-")
}

#[tokio::test]
async fn the_table_of_the_security_model_is_what_scripts_find() {
    let lines: Vec<String> = ATTEMPTS.iter().map(Attempt::line).collect();
    let table = lines.join("\n");
    assert!(
        DOCUMENT.contains(&table),
        "docs/SECURITY-MODEL.md needs:\n{table}"
    );
    let machine = Machine::new();
    for (level, isolation) in LEVELS.into_iter().enumerate() {
        let Some(lab) = Lab::isolated(isolation).await else {
            continue;
        };
        let (outcome, log) = lab.run(&machine.script(), Network::Denied).await;
        assert_eq!(log.lines().count(), ATTEMPTS.len(), "{outcome:?}\n{log}");
        for (attempt, found) in ATTEMPTS.iter().zip(log.lines()) {
            let expected = attempt.expected(level);
            let expected = if expected { "yes" } else { "no" };
            assert_eq!(found, expected, "{isolation:?}: {}", attempt.name);
        }
    }
}
