//! Forms of a result: JSON, or a file with a table.

use std::marker::PhantomData;

use labdata_request_body::{Definitions, Output, Schema};
use labdata_table_formats::Format;

use crate::{Describe, body::JSON};

/// Media type of server-sent events.
pub const EVENT_STREAM: &str = "text/event-stream";

/// Representation of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultForm {
    /// JSON, which is the default.
    Json,
    /// A file format.
    File(Format),
}

impl ResultForm {
    /// All forms; the first wins where the client prefers none.
    pub const ALL: [Self; 4] = [
        Self::Json,
        Self::File(Format::ArrowStream),
        Self::File(Format::Parquet),
        Self::File(Format::Csv),
    ];

    /// Media type of the form.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Json => JSON,
            Self::File(Format::Csv) => "text/csv",
            Self::File(Format::ArrowStream) => "application/vnd.apache.arrow.stream",
            Self::File(Format::Parquet) => "application/vnd.apache.parquet",
        }
    }

    /// Extension of files in the form.
    #[must_use]
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::File(Format::Csv) => "csv",
            Self::File(Format::ArrowStream) => "arrows",
            Self::File(Format::Parquet) => "parquet",
        }
    }
}

/// The response is a file with a table.
#[derive(Debug)]
pub enum TableFile {}

impl Describe for TableFile {
    fn content(_: &mut Definitions) -> Vec<(&'static str, Schema)> {
        let files = ResultForm::ALL.into_iter().filter_map(|form| match form {
            ResultForm::Json => None,
            ResultForm::File(Format::Csv) => Some((form.media_type(), Schema::of("string"))),
            ResultForm::File(_) => Some((form.media_type(), binary())),
        });
        files.collect()
    }
}

/// The response is JSON, or a file with a table where `Accept` names one.
#[derive(Debug)]
pub struct JsonOrFile<T>(PhantomData<fn() -> T>);

impl<T: Output> Describe for JsonOrFile<T> {
    fn content(definitions: &mut Definitions) -> Vec<(&'static str, Schema)> {
        let mut content = vec![(JSON, T::schema(definitions))];
        content.extend(TableFile::content(definitions));
        content
    }
}

/// Media type of JSON texts, one in a line.
pub const JSON_LINES: &str = "application/x-ndjson";

/// The response is JSON, or where `Accept` names [`JSON_LINES`] an item in each line.
#[derive(Debug)]
pub struct JsonOrLines<R, T>(PhantomData<fn() -> (R, T)>);

impl<R: Describe, T: Output> Describe for JsonOrLines<R, T> {
    fn content(definitions: &mut Definitions) -> Vec<(&'static str, Schema)> {
        let mut content = R::content(definitions);
        content.push((JSON_LINES, T::schema(definitions)));
        content
    }
}

/// The schema of bytes.
pub(crate) fn binary() -> Schema {
    Schema::of("string").with("format", "binary")
}

/// The response is a stream of server-sent events whose data are JSON.
#[derive(Debug)]
pub struct EventStream<T>(PhantomData<fn() -> T>);

impl<T: Output> Describe for EventStream<T> {
    fn content(definitions: &mut Definitions) -> Vec<(&'static str, Schema)> {
        vec![(EVENT_STREAM, T::schema(definitions))]
    }
}
