//! Rendered rows.

use serde_json::{Map, Value};

/// One row as the text of a JSON object: columns by their names in writes and reads, values as a
/// write accepts them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowJson(String);

impl RowJson {
    /// Wraps the text of a JSON object that the database rendered.
    #[must_use]
    pub fn from_rendered(text: String) -> Self {
        Self(text)
    }

    /// Renders a row.
    #[must_use]
    pub fn from_map(map: &Map<String, Value>) -> Self {
        Self(serde_json::to_string(map).unwrap_or_default())
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the owned text.
    #[must_use]
    pub fn into_string(self) -> String {
        self.0
    }
}
