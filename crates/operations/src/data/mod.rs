//! Rows and series: writing and importing them, reading them, SQL, and saved views.

use labdata_domain::data::read::RowJson;
use labdata_request_body::{Definitions, Output, Schema, output::serde};
use serde_json::value::RawValue;

use crate::Operation;

pub mod import;
pub mod many_series;
pub mod query;
pub mod read;
pub mod saved_views;
pub mod series;
pub mod write;

pub(crate) fn operations() -> Vec<Operation> {
    let mut operations = vec![
        read::operation(),
        query::operation(),
        series::operation(),
        many_series::operation(),
        write::operation(),
        import::operation(),
    ];
    operations.extend(saved_views::operations());
    operations
}

/// An object that the database has rendered. Its fields are columns of the organization's tables.
#[derive(Clone, Debug)]
pub struct RenderedObject(Box<RawValue>);

impl RenderedObject {
    /// The row; `None` if it is not JSON.
    pub(crate) fn of(row: RowJson) -> Option<Self> {
        RawValue::from_string(row.into_string()).ok().map(Self)
    }
}

impl serde::Serialize for RenderedObject {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl Output for RenderedObject {
    fn schema(_: &mut Definitions) -> Schema {
        Schema::of("object").with("additionalProperties", true)
    }
}
