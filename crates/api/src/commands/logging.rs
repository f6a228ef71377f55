//! Logging to standard error.

use std::io::{self, IsTerminal};

use tracing_subscriber::{
    filter::{LevelFilter, Targets},
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

use crate::settings::{LogFormat, LogSettings};

/// Initializes the process's logging.
pub(super) fn start(settings: &LogSettings, default_filter: &str) {
    let filter = settings.filter.as_deref().unwrap_or(default_filter);
    // The settings were checked when they were read.
    let targets: Targets = filter.parse().unwrap_or_default();
    let builder = tracing_subscriber::fmt()
        .with_max_level(LevelFilter::TRACE)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal());
    // Initialization fails only if it was done before.
    drop(match settings.format {
        LogFormat::Text => builder.finish().with(targets).try_init(),
        LogFormat::Json => builder.json().finish().with(targets).try_init(),
    });
}
