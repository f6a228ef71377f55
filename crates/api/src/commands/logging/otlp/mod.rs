//! Export of spans by OTLP, in builds with the feature `otlp`.
//!
//! The standard variables `OTEL_…` configure it. Without an endpoint nothing is exported.

mod collector;

use opentelemetry::{KeyValue, trace::TracerProvider as _};
use opentelemetry_otlp::{SpanExporter, WithHttpConfig};
use opentelemetry_sdk::{Resource, trace::SdkTracerProvider};
use tracing::Subscriber;
use tracing_subscriber::{
    Layer,
    filter::{LevelFilter, Targets},
    registry::LookupSpan,
};

use self::collector::Collector;
use super::endpoint::{ENDPOINTS, is_endpoint_set};
use crate::settings::SettingsError;

/// Exports spans until it is closed.
pub(in super::super) struct Export(Option<SdkTracerProvider>);

impl Export {
    /// Starts the export if an endpoint is set. Must be called within a Tokio runtime, which sends the spans.
    ///
    /// # Errors
    /// [`SettingsError`] for an endpoint that is not a URL.
    pub(super) fn start() -> Result<Self, SettingsError> {
        if !is_endpoint_set() {
            return Ok(Self(None));
        }
        let refused = |error: String| SettingsError(format!("{}: {error}", ENDPOINTS.join(" or ")));
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(Collector::new().map_err(|error| refused(error.to_string()))?)
            .build()
            .map_err(|error| refused(error.to_string()))?;
        let mut resource = Resource::builder();
        // The builder reads the variable itself, but an explicit name would win over it.
        if std::env::var_os("OTEL_SERVICE_NAME").is_none() {
            resource = resource.with_service_name("labdata");
        }
        let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(resource.with_attribute(version).build());
        Ok(Self(Some(provider.build())))
    }

    /// The layer that exports the platform's own spans, of requests and of calls of the database. Those of
    /// libraries, such as of the exporter's own requests, are not exported.
    pub(super) fn layer<S>(&self) -> Option<impl Layer<S> + use<S>>
    where
        S: Subscriber + for<'span> LookupSpan<'span>,
    {
        let provider = self.0.as_ref()?;
        let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("labdata"));
        Some(layer.with_filter(Targets::new().with_target("labdata", LevelFilter::DEBUG)))
    }

    /// Sends the spans that wait.
    pub(in super::super) fn close(self) {
        if let Some(Err(error)) = self.0.map(|provider| provider.shutdown()) {
            tracing::warn!(%error, "could not export the last spans");
        }
    }
}
