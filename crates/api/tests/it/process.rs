//! The built program as a child process.

use std::{
    fs::Permissions,
    io::{BufRead, BufReader, Read},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio},
};

use labdata_embedded_postgres::client_programs;
use tempfile::TempDir;

/// An empty directory to run in. PostgreSQL, which may run as another user, can enter it.
pub(crate) fn directory() -> TempDir {
    tempfile::Builder::new()
        .prefix("labdata-test-")
        .permissions(Permissions::from_mode(0o755))
        .tempdir()
        .unwrap()
}

/// The program in that directory, with nothing of this process's settings.
pub(crate) fn labdata(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_labdata"));
    for (name, _) in std::env::vars() {
        let own = name.starts_with("LABDATA_") && name != "LABDATA_PG_BIN_DIR";
        if own || name == "DATABASE_URL" {
            command.env_remove(name);
        }
    }
    command
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::null());
    command
}

#[expect(clippy::print_stderr, reason = "says what is not tested, and why")]
pub(crate) fn not_tested(why: &str) {
    eprintln!("NOT TESTED: {why}");
}

/// Ends a command line with `serve` in that directory, in the environment of [`labdata`].
fn add_serve(command: &mut Command, directory: &Path) {
    let plain = labdata(directory, &["serve", "--bind", "127.0.0.1:0"]);
    command
        .arg(plain.get_program())
        .args(plain.get_args())
        .current_dir(directory)
        .stdin(Stdio::null());
    for (name, value) in plain.get_envs() {
        if value.is_none() {
            command.env_remove(name);
        }
    }
}

/// Begins a command line that runs a program with a file system of that size at that directory.
fn on_small_disk(directory: &Path, megabytes: u32, before: &str) -> Command {
    use std::os::unix::fs::MetadataExt;
    let own = std::fs::metadata("/proc/self").unwrap();
    let mut command = Command::new("unshare");
    // An ordinary user is root in a first namespace, which may mount, and itself in a second one.
    let back = if own.uid() == 0 {
        command.arg("--mount");
        String::new()
    } else {
        command.args(["--user", "--map-root-user", "--mount"]);
        let (user, group) = (own.uid(), own.gid());
        format!("unshare --user --map-user={user} --map-group={group} ")
    };
    let mount = format!(
        "mount -t tmpfs -o size={megabytes}m,mode=0755 tmpfs \"$0\" && \
         exec {back}sh -c '{before} exec \"$@\"' sh \"$@\""
    );
    command.args(["sh", "-c", &mount]).arg(directory);
    command
}

/// Directory of PostgreSQL's programs for clients. Where none is installed, they are downloaded below that directory.
pub(crate) fn postgresql_programs(place: &Path) -> PathBuf {
    let named = std::env::var_os("LABDATA_PG_BIN_DIR").map(PathBuf::from);
    client_programs(named.as_deref(), place, 13).unwrap()
}

/// Runs it to its end.
pub(crate) fn run(command: &mut Command) -> Output {
    command.output().unwrap()
}

/// Its output as text.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Sends a signal, by its name or number, to a process. By the shell's own `kill`: a minimal system has no
/// program of that name.
pub(crate) fn kill(signal: &str, id: &str) {
    let kill = format!("kill -{signal} {id}");
    let sent = Command::new("sh").args(["-c", &kill]).status().unwrap();
    assert!(sent.success());
}

/// A running `labdata serve`; killed when dropped.
pub(crate) struct Program {
    child: Child,
    lines: BufReader<ChildStdout>,
    /// Its base URL.
    pub(crate) url: String,
    /// The key that it printed.
    pub(crate) key: Option<String>,
}

impl Program {
    /// Starts it and waits until it has printed its URL.
    pub(crate) fn serve(directory: &Path, environment: &[(&str, &str)]) -> Self {
        Self::serve_with(directory, &[], environment)
    }

    /// The same with more arguments.
    pub(crate) fn serve_with(
        directory: &Path,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> Self {
        let mut command = labdata(directory, &["serve", "--bind", "127.0.0.1:0"]);
        command.args(arguments);
        Self::start(command, environment)
    }

    /// The same with its log in that file.
    pub(crate) fn serve_logging(
        directory: &Path,
        environment: &[(&str, &str)],
        log: std::fs::File,
    ) -> Self {
        let mut command = labdata(directory, &["serve", "--bind", "127.0.0.1:0"]);
        command.stderr(log);
        Self::start(command, environment)
    }

    /// The same on every address of the machine.
    pub(crate) fn serve_everywhere(directory: &Path, environment: &[(&str, &str)]) -> Self {
        let command = labdata(directory, &["serve", "--bind", "0.0.0.0:0"]);
        Self::start(command, environment)
    }

    /// Starts it with a limit on the length of files, in kilobytes: longer writes fail.
    pub(crate) fn serve_with_file_limit(
        directory: &Path,
        environment: &[(&str, &str)],
        kilobytes: u32,
    ) -> Self {
        // Of the shells some count in blocks of 512 bytes, but bash in kilobytes.
        let limited = format!("trap '' XFSZ; ulimit -f {kilobytes}; exec \"$@\"");
        let mut command = Command::new("bash");
        command.args(["-c", &limited, "bash"]);
        add_serve(&mut command, directory);
        Self::start(command, environment)
    }

    /// Starts it on a separate terminal, whose output is this program's.
    pub(crate) fn serve_on_terminal(directory: &Path, environment: &[(&str, &str)]) -> Self {
        const ON_TERMINAL: &str = r"
import os, pty, signal, sys
child, terminal = pty.fork()
if child == 0:
    os.execv(sys.argv[1], sys.argv[1:])
signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGTERM))
while True:
    try:
        chunk = os.read(terminal, 4096)
    except OSError:
        break
    if not chunk:
        break
    os.write(1, chunk)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
";
        let mut command = Command::new("python3");
        command.args(["-c", ON_TERMINAL]);
        add_serve(&mut command, directory);
        // Warnings of the machine would come between the lines.
        let environment = [&[("LABDATA_LOG", "error")], environment].concat();
        Self::start(command, &environment)
    }

    /// The next line of its output, without its end.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Starts it with its data directory on a small file system in memory, which only it sees, after the
    /// shell commands of `before`, in which `$1` is the program. `None` where the machine allows no
    /// mounts.
    pub(crate) fn serve_on_small_disk(
        directory: &Path,
        environment: &[(&str, &str)],
        megabytes: u32,
        before: &str,
    ) -> Option<Self> {
        let data = directory.join(".labdata");
        std::fs::create_dir(&data).unwrap();
        let mut command = on_small_disk(&data, megabytes, before);
        add_serve(&mut command, directory);
        let mut probe = on_small_disk(&data, megabytes, "");
        if !run(probe.arg("true")).status.success() {
            not_tested("this machine allows no mounts");
            return None;
        }
        Some(Self::start(command, environment))
    }

    /// Path by which another process reaches a file, where the program has private mounts.
    pub(crate) fn path_from_outside(&self, path: &Path) -> PathBuf {
        Path::new(&format!("/proc/{}/root", self.pid())).join(path.strip_prefix("/").unwrap())
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    fn start(mut command: Command, environment: &[(&str, &str)]) -> Self {
        let mut child = command
            .env("LABDATA_LOG", "warn")
            .envs(environment.iter().copied())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut key = None;
        let url = loop {
            let mut line = String::new();
            assert_ne!(
                lines.read_line(&mut line).unwrap(),
                0,
                "ended before it served"
            );
            if line.starts_with("ldk_") {
                key = Some(line.trim().to_owned());
            }
            if let Some(start) = line.find("http://") {
                break line[start..].trim().to_owned();
            }
        };
        Self {
            child,
            lines,
            url,
            key,
        }
    }

    /// Sends a signal, by its name, waits for the end, and returns the rest of the output.
    pub(crate) fn end(mut self, signal: &str) -> (ExitStatus, String) {
        kill(signal, &self.child.id().to_string());
        let mut rest = String::new();
        self.lines.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap(), rest)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Fails when it has ended, which is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
