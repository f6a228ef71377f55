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

/// Begins to remove what scripts and snippets of a server left that was killed.
pub fn remove_leftovers(settings: &Settings) {
    let data_dir = settings.data_dir.clone();
    tokio::spawn(async move {
        if let Err(error) = labdata_sandbox::remove_leftovers(&data_dir).await {
            tracing::warn!(%error, "what a killed server left was not removed");
        }
    });
}
