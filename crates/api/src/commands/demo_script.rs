//! The script that `labdata demo` runs: that of a lab, over the Python client.

use std::{
    ffi::{OsStr, OsString},
    fs, io,
    path::{Path, PathBuf},
    process::{Output, Stdio},
};

use anyhow::{Context, bail};
use labdata_python_packages::CLIENT_WHEEL;
use tokio::process::Command;

/// Files of the script; the first is run.
const FILES: [(&str, &str); 3] = [
    (
        "growth_curves.py",
        include_str!("../../../../docs/demo/growth_curves.py"),
    ),
    (
        "growth_report.py",
        include_str!("../../../../docs/demo/growth_report.py"),
    ),
    (
        "parse_growth_curves.py",
        include_str!("../../../../docs/demo/parse_growth_curves.py"),
    ),
];

/// Python of the lab, which need not be that of jobs (`LABDATA_PYTHON`).
const PYTHON: &str = "python3";

/// The script in a directory, with the Python packages that it imports.
pub(super) struct DemoScript {
    directory: PathBuf,
    /// Value of `PYTHONPATH`.
    python_path: OsString,
}

impl DemoScript {
    /// Writes the script and the wheel of the client into `directory`, and installs the client's dependencies
    /// there unless Python has them.
    ///
    /// # Errors
    /// When the directory cannot be written, there is no Python, or pip cannot install the dependencies.
    pub(super) async fn prepare(directory: PathBuf) -> anyhow::Result<Self> {
        let wheel = directory.join(CLIENT_WHEEL.file_name);
        let write = || -> io::Result<()> {
            fs::create_dir(&directory)?;
            fs::write(&wheel, CLIENT_WHEEL.bytes)?;
            FILES
                .iter()
                .try_for_each(|(name, text)| fs::write(directory.join(name), text))
        };
        write().context("the directory of the demo's script")?;
        let mut script = Self {
            directory,
            // Wheels that are not compressed can be imported as they are.
            python_path: wheel.clone().into_os_string(),
        };
        let import = ["-c", "import labdata_client"].map(OsStr::new);
        if !script.python(import).await?.status.success() {
            script.install(&wheel).await?;
        }
        Ok(script)
    }

    /// Installs the client with its dependencies, none of which is built from source.
    async fn install(&mut self, wheel: &Path) -> anyhow::Result<()> {
        let packages = self.directory.join("packages");
        let arguments = [
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-input",
            "--disable-pip-version-check",
            "--only-binary=:all:",
            "--retries=2",
            "--timeout=30",
            // Nothing is installed into a Python of this machine.
            "--target",
        ]
        .map(OsStr::new);
        let paths = [packages.as_os_str(), wheel.as_os_str()];
        let output = self.python(arguments.into_iter().chain(paths)).await?;
        if !output.status.success() {
            bail!(
                "the packages of the Python client cannot be installed, which the demo's script imports \
                 (`{PYTHON} -m pip install httpx anyio tqdm` does it by hand): {}",
                last_lines(&output.stderr)
            );
        }
        self.python_path = packages.into_os_string();
        Ok(())
    }

    /// Adds a file of input; returns its path.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn add(&self, name: &str, text: &str) -> anyhow::Result<PathBuf> {
        let path = self.directory.join(name);
        fs::write(&path, text).context("the demo's input")?;
        Ok(path)
    }

    /// Runs the script with that input on the server at `url`. Its output is that of this process.
    ///
    /// # Errors
    /// What the script reports when a step fails.
    pub(super) async fn run(&self, input: &Path, url: &str, key: &str) -> anyhow::Result<()> {
        let [(main, _), ..] = FILES;
        let mut command = self.command([self.directory.join(main).as_os_str(), input.as_os_str()]);
        command
            .env("LABDATA_BASE_URL", url)
            .env("LABDATA_API_KEY", key)
            // Set where the demo is started from within a job; its execution exists on another server only.
            .env_remove("LABDATA_JOB_EXECUTION_ID")
            // The server is on this machine, which no proxy of the environment serves.
            .envs([("NO_PROXY", "*"), ("no_proxy", "*")])
            .stdout(Stdio::inherit());
        let output = finished(command).await?;
        if !output.status.success() {
            bail!("{}", last_lines(&output.stderr));
        }
        Ok(())
    }

    async fn python<'a>(
        &self,
        arguments: impl IntoIterator<Item = &'a OsStr>,
    ) -> anyhow::Result<Output> {
        finished(self.command(arguments)).await
    }

    fn command<'a>(&self, arguments: impl IntoIterator<Item = &'a OsStr>) -> Command {
        let mut command = Command::new(PYTHON);
        command
            .args(arguments)
            // `-m` and `-c` search the working directory for modules.
            .current_dir(&self.directory)
            .env("PYTHONPATH", &self.python_path)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            // The curves are drawn in characters beyond ASCII, in every locale.
            .env("PYTHONUTF8", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            // A signal drops the future that waits; the script must not outlive its server.
            .kill_on_drop(true);
        command
    }
}

async fn finished(mut command: Command) -> anyhow::Result<Output> {
    let child = command
        .spawn()
        .with_context(|| format!("`{PYTHON}` does not run, which runs the demo's script"))?;
    Ok(child.wait_with_output().await?)
}

/// Returns the last lines of what a program reported.
fn last_lines(report: &[u8]) -> String {
    let text = String::from_utf8_lossy(report);
    let lines: Vec<&str> = text.trim().lines().collect();
    // Python puts the error below its traceback.
    let last = lines.get(lines.len().saturating_sub(8)..);
    last.unwrap_or_default().join("\n")
}
