//! Python snippets of the agent, in processes of this machine.

use std::{path::PathBuf, sync::Arc};

use labdata_ports::agent::PythonSandbox;
use labdata_python_sandbox::{SnippetSandbox, SnippetSettings};

use super::backends::sandbox;
use crate::settings::Settings;

/// Creates the sandbox of snippets; `program` is the `labdata` binary.
#[must_use]
pub fn python(settings: &Settings, program: PathBuf, public_url: &str) -> Arc<dyn PythonSandbox> {
    let concurrency = settings.agent.python_concurrency;
    Arc::new(SnippetSandbox::new(
        sandbox(settings, program, public_url),
        SnippetSettings {
            concurrency: concurrency.try_into().unwrap_or(usize::MAX),
            ..SnippetSettings::default()
        },
    ))
}
