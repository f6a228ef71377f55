//! Limits of a write, and keys of rows that are no columns.

/// Maximum number of rows of a request, across all its table writes (specification, "Limits").
pub const MAX_ROWS: usize = 10_000;
/// Maximum number of values of a request, across all columns of all its series.
pub const MAX_SERIES_VALUES: usize = 250_000;
/// The key of a row's map that gives the row a label.
pub const LABEL_KEY: &str = "_ref";
/// The key of a row's map that tells when the matched row was last changed, as the writer knows it.
pub const IF_UPDATED_AT_KEY: &str = "_if_updated_at";
