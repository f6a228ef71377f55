//! Runs uv as the platform does: one that is installed or the pinned one, with pip's package index and the
//! Python of scripts. Usage: `uv TOOLS [ARGUMENT]...`; a download goes to the directory `TOOLS`.

use std::{
    env,
    path::PathBuf,
    process::{Command, ExitCode},
};

use labdata_sandbox::{Python, Uv};

fn main() -> Result<ExitCode, String> {
    let mut arguments = env::args_os().skip(1);
    let tools = arguments.next().map(PathBuf::from);
    let tools = tools.ok_or("usage: uv TOOLS [ARGUMENT]...")?;
    let python = Python::find(None)?;
    let uv = Uv::find(None, &tools, &python)?;
    let index = uv.index().iter().map(|(name, value)| (name, value));
    let status = Command::new(uv.program())
        .args(arguments)
        .envs(index)
        .env("UV_PYTHON", python.program())
        .env("UV_PYTHON_DOWNLOADS", "never")
        .status()
        .map_err(|error| format!("{}: {error}", uv.program().display()))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.unwrap_or(1)))
}
