//! The tool `parse_table`.

use labdata_application::{
    Error,
    files::preview_table::{PreviewSource, TablePreview, preview_table},
};
use labdata_domain::{ids::FileId, refusal::Resource};
use labdata_request_body::{
    fields::{optional, or, required},
    output,
    readers::{MaybeId, id, shape, unsigned},
    shape,
};
use labdata_table_formats::read::PreviewedColumn;
use serde_json::{Map, Value};

use super::ToolFacts;
use crate::{
    Call, JsonBody, OrNotFound, Read,
    files::{preview_table::DoubtView, read_options::ReadOptionFields},
};

shape! {
    /// Arguments of `parse_table`.
    pub(crate) struct ParseTableInput {
        /// Id of the file.
        file_id: MaybeId<FileId> = required(id()),
        /// Number of rows to show.
        rows: u32 = or(20, unsigned(0..=200)),
        /// Options for reading the file; settle a doubt of an earlier call.
        options: Option<ReadOptionFields> = optional(shape::<ReadOptionFields>()),
    }
}

output! {
    /// The table of a file.
    pub(crate) struct ParsedTableView from parsed: TablePreview {
        /// The file's path.
        original_path: Option<String> = parsed.file.map(|file| file.path.as_str().to_owned()),
        /// Its columns, in order.
        columns: Vec<ParsedColumnView> = parsed.table.columns.into_iter().map(Into::into).collect(),
        /// Number of rows of the whole table; null if only the first rows of a large file were read.
        row_count: Option<usize> = parsed.table.row_count,
        /// Number of rows that were read: types and doubts are those of these rows.
        rows_read: usize = parsed.table.rows_read,
        /// Number of rows of `data`.
        rows_shown: usize = parsed.table.rows.len(),
        /// The first rows.
        data: Vec<Vec<Value>> = parsed.table.rows,
        /// All options as they were used, and what was skipped.
        reading: Map<String, Value> = parsed.table.reading.to_json(),
        /// Readings that would have to be guessed, with options that settle them.
        doubts: Vec<DoubtView> = parsed.table.doubts.into_iter().map(Into::into).collect(),
    }
}

output! {
    /// A column of a file's table.
    struct ParsedColumnView from found: PreviewedColumn {
        /// Its header.
        name: String = found.column.header,
        /// Type of its values.
        data_type: &'static str = found.column.data_type.as_str(),
        /// Unit of its values.
        unit: Option<String> = found.column.unit,
    }
}

/// Facts of the tool.
pub(crate) const FACTS: ToolFacts = ToolFacts {
    name: Some("parse_table"),
    ..ToolFacts::of(
        "Reads a delimited text, an XLSX or a Parquet file as a table: \
        its columns with their types and units, the number of rows, the first rows, how it was read, and \
        what is doubtful, with the options that settle it.",
    )
};

/// Tables in files.
pub(crate) async fn run(
    call: Call<Read, JsonBody<ParseTableInput>>,
) -> Result<ParsedTableView, Error> {
    let id = call.body.file_id.or_not_found(Resource::File)?;
    let displayed = usize::try_from(call.body.rows).unwrap_or(usize::MAX);
    let options = call.body.options.unwrap_or_default().options();
    let source = PreviewSource::File(id);
    let table = preview_table(&call.services, &call.actor, source, options, displayed).await?;
    Ok(table.into())
}
