//! Logging to standard error, and export of spans.

mod endpoint;
#[cfg(feature = "otlp")]
mod otlp;

use std::io::{self, IsTerminal};

use tracing_subscriber::{
    Layer, filter::Targets, fmt, layer::SubscriberExt, util::SubscriberInitExt,
};

#[cfg(feature = "otlp")]
pub(super) use self::otlp::Export;
use crate::settings::{LogFormat, LogSettings, SettingsError};

/// The export of a build that has none.
#[cfg(not(feature = "otlp"))]
pub(super) struct Export;

#[cfg(not(feature = "otlp"))]
impl Export {
    /// Does nothing.
    #[expect(clippy::unused_self, reason = "as in builds that export spans")]
    pub(super) fn close(self) {}
}

/// Initializes the process's logging, and the export of spans.
///
/// # Errors
/// [`SettingsError`] for a wrong address of a collector.
pub(super) fn start(settings: &LogSettings, default_filter: &str) -> Result<Export, SettingsError> {
    let filter = settings.filter.as_deref().unwrap_or(default_filter);
    // The settings were checked when they were read.
    let targets: Targets = filter.parse().unwrap_or_default();
    let lines = fmt::layer()
        // Standard output is for results, such as a key or the OpenAPI document.
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal());
    let lines = match settings.format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().boxed(),
    };
    let subscriber = tracing_subscriber::registry().with(lines.with_filter(targets));
    // Initialization fails only if it was done before.
    #[cfg(feature = "otlp")]
    {
        let export = Export::start()?;
        drop(subscriber.with(export.layer()).try_init());
        Ok(export)
    }
    #[cfg(not(feature = "otlp"))]
    {
        drop(subscriber.try_init());
        if endpoint::is_endpoint_set() {
            tracing::warn!(
                "no spans are exported: this program was built without the feature `otlp`"
            );
        }
        Ok(Export)
    }
}
