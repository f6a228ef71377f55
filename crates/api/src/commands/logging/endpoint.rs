//! Address of a collector of spans.

/// Standard variables with the address of a collector of spans.
pub(super) const ENDPOINTS: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
];

/// Returns true if the address of a collector is set.
pub(super) fn is_endpoint_set() -> bool {
    let value = |name: &&str| std::env::var(name).is_ok_and(|value| !value.is_empty());
    ENDPOINTS.iter().any(value)
}
