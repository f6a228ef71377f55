//! Logging to standard error.

use tracing_subscriber::EnvFilter;

use crate::settings::{LogFormat, LogSettings};

/// Initializes the process's logging.
pub(super) fn start(settings: &LogSettings, default_filter: &str) {
    let filter = settings.filter.as_deref().unwrap_or(default_filter);
    let builder = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(filter))
        .with_writer(std::io::stderr)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()));
    // Initialization fails only if it was done before.
    drop(match settings.format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().try_init(),
    });
}
