//! Points in time.

use labdata_domain::timestamp;
use serde::{Serialize, Serializer};
use time::OffsetDateTime;

use super::Output;
use crate::schema::{Definitions, Schema};

/// A point in time in the API's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamp(pub OffsetDateTime);

impl From<OffsetDateTime> for Timestamp {
    fn from(at: OffsetDateTime) -> Self {
        Self(at)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&timestamp::render(self.0))
    }
}

impl Output for Timestamp {
    fn schema(definitions: &mut Definitions) -> Schema {
        definitions.define("Timestamp", |_| {
            Schema::of("string")
                .with("format", "date-time")
                .with("description", "RFC 3339, UTC, microseconds at most")
                .with("examples", vec!["2026-03-01T12:00:00.123456Z"])
        })
    }
}
