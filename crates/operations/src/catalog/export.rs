//! `GET /api/v1/tables/{name}/export`

use labdata_request_body::{
    fields::{optional, or},
    readers::{boolean, choice, datetime},
    shape,
};
use labdata_table_formats::Format;
use time::OffsetDateTime;

use super::TablePath;
use crate::{About, Method, NoBody, Operation, Read, TableFile, Tag};

/// Formats and their names in the API.
const FORMATS: [(&str, Format); 3] = [
    ("csv", Format::Csv),
    ("arrow", Format::ArrowStream),
    ("parquet", Format::Parquet),
];

shape! {
    /// Options of an export.
    #[derive(Clone, Copy, Debug)]
    pub struct ExportQuery {
        /// Format of the file; `arrow` is an Arrow IPC stream.
        pub format: Format = or("csv", choice(FORMATS)),
        /// In CSV, puts an apostrophe before texts that a spreadsheet would take for formulas: those that begin
        /// with `=`, `+`, `-`, `@`, a tab or a carriage return. Numbers stay as they are.
        pub neutralize_formulas: bool = or(false, boolean()),
        /// The table as it stood then, as in `tools/read`.
        pub as_of: Option<OffsetDateTime> = optional(datetime()),
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "export_table",
        method: Method::Get,
        path: "/api/v1/tables/{name}/export",
        tag: Tag::Tables,
        summary: "Export a table",
        description: "All rows of a table as of one moment, of any size; raw tables have one row per point. \
            Columns are those of `tools/read`: int64, float64, bool, timestamp\\[µs, UTC\\], date32, and \
            utf8 for all else, JSON included. The order of rows is not fixed; points come series by \
            series. With `as_of` the table is exported as it stood at that moment.\n\n\
            The response is sent while the table is read. It ends early, without its last chunk, if the \
            client lets it wait (for 30 s unless set otherwise), and if the table cannot be read to \
            its end.",
        returns: "The table, as an attachment",
        refusals: &[(503, "Other exports of the organization are still being sent")],
    }
    .served_by_hand::<Read, NoBody, ExportQuery, TablePath, TableFile>()
}
