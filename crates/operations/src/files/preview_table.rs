//! `POST /api/v1/tools/preview-table`

use labdata_application::files::preview_table::TablePreview;
use labdata_domain::{files::FilePath, ids::FileId};
use labdata_request_body::{
    Definitions,
    fields::{group, optional, required},
    output,
    readers::{FilePart, MaybeId, id, shape},
    shape,
};
use labdata_table_formats::read::{Doubt, PreviewedColumn, Sheet};
use serde_json::{Map, Value, json};

use super::read_options::ReadOptionFields;
use crate::{
    About, BodyDescription, DescribeBody, FormBody, JsonBody, Method, Operation, Read, Tag,
};

/// Number of rows in a preview.
pub const PREVIEWED_TABLE_ROWS: usize = 50;

shape! {
    /// The parts of a preview's `multipart/form-data`.
    #[derive(Clone, Debug)]
    pub struct PreviewTableForm {
        /// The file.
        pub file: FilePath = required(FilePart),
        /// Options for reading the file.
        pub options: ReadOptionFields = group(),
    }
    example json!({"file": "Zeit;OD\n0;0,05\n", "decimal": ","});
}

shape! {
    /// A file of the platform whose table is to be displayed.
    #[derive(Clone, Debug)]
    pub struct PreviewTableBody {
        /// The file's id.
        pub file_id: MaybeId<FileId> = required(id()),
        /// Options for reading it.
        pub options: Option<ReadOptionFields> = optional(shape::<ReadOptionFields>()),
    }
    example json!({
        "file_id": "0191d5a4-0000-7000-8000-000000000000",
        "options": {"decimal": ",", "timezone": "Europe/Berlin"},
    });
}

/// A form with the file, or JSON that names it.
#[derive(Debug)]
pub enum PreviewBody {}

impl DescribeBody for PreviewBody {
    fn describe(definitions: &mut Definitions) -> Option<BodyDescription> {
        FormBody::<PreviewTableForm>::describe(definitions)
    }

    fn describe_other(definitions: &mut Definitions) -> Option<BodyDescription> {
        JsonBody::<PreviewTableBody>::describe(definitions)
    }
}

output! {
    /// A column of a file's table.
    #[derive(Debug)]
    pub struct PreviewedColumnView as "PreviewedColumn" from found: PreviewedColumn {
        /// Its header as the file has it, on one line.
        header: String = found.column.header,
        /// A column name made from the header.
        #[example = "volume"]
        name: String = found.column.name,
        /// The type that all of its values have.
        #[example = "float"]
        data_type: String = found.column.data_type.as_str().to_owned(),
        /// The unit in brackets behind the header, or in the line below it.
        unit: Option<String> = found.column.unit,
        /// Number of its nulls.
        nulls: u64 = found.nulls,
        /// Its first different values.
        examples: Vec<Value> = found.examples,
    }
}

output! {
    /// A sheet of a workbook.
    #[derive(Debug)]
    pub struct SheetView as "Sheet" from sheet: Sheet {
        /// Its name.
        name: String = sheet.name,
        /// False for hidden ones.
        visible: bool = sheet.is_visible,
        /// Number of its rows.
        rows: u64 = sheet.rows,
        /// Number of its columns.
        columns: u64 = sheet.columns,
    }
}

output! {
    /// A question about a file that an import would refuse to guess.
    #[derive(Debug)]
    pub struct DoubtView as "Doubt" from doubt: Doubt {
        /// The option, the column (`columns.od`) or the row (`rows[17]`) that it concerns.
        #[example = "rows[17]"]
        path: String = doubt.path,
        /// Its kind.
        #[example = "second_table"]
        code: String = doubt.code.into_owned(),
        /// Description of the doubt.
        message: String = doubt.message,
        /// Alternatives: each an object of options that settles it.
        options: Vec<Map<String, Value>> = doubt.options,
    }
}

output! {
    /// The table of a file.
    #[derive(Debug)]
    pub struct TablePreviewView as "TablePreview" from preview: TablePreview {
        /// All options as they were used, which can be sent back, and what was skipped.
        reading: Map<String, Value> = preview.table.reading.to_json(),
        /// Its columns, in order.
        columns: Vec<PreviewedColumnView> = preview.table.columns.into_iter().map(Into::into).collect(),
        /// The first 50 rows, each with one value per column.
        rows: Vec<Vec<Value>> = preview.table.rows,
        /// Number of rows of the whole table; null for a large file, of which only the first cells are read.
        row_count: Option<u64> = preview.table.row_count.map(row_number),
        /// Number of rows that were read: types, nulls and doubts are those of these rows, and an import may find
        /// more.
        rows_read: u64 = row_number(preview.table.rows_read),
        /// The sheets of a workbook; null for other files.
        sheets: Option<Vec<SheetView>> =
            preview.table.sheets.map(|sheets| sheets.into_iter().map(Into::into).collect()),
        /// Doubts for which an import would be refused.
        doubts: Vec<DoubtView> = preview.table.doubts.into_iter().map(Into::into).collect(),
    }
}

fn row_number(rows: usize) -> u64 {
    u64::try_from(rows).unwrap_or(u64::MAX)
}

pub(super) fn operation() -> Operation {
    About {
        name: "preview_table",
        method: Method::Post,
        path: "/api/v1/tools/preview-table",
        tag: Tag::Files,
        summary: "Shows the table of a file",
        description: "How a delimited text, an Excel workbook or a Parquet file would be read, with its \
            first 50 rows; nothing is stored. The file is part of the form, or one of the platform. What \
            would have to be guessed is a doubt, with options that settle it. Of a large file only the first \
            250,000 cells of a workbook, or a million cells or 16 MiB of a text, are read: \
            `rows_read` says how many rows that were.",
        returns: "The table, and how it was read",
        refusals: &[
            (400, "The file is no table, or its upload is not confirmed yet"),
            (503, "Too many files are being read; try again after `Retry-After` seconds"),
        ],
    }
    .served_by_hand::<Read, PreviewBody, (), (), TablePreviewView>()
}
