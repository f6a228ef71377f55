//! `POST /api/v1/tables/{name}/import`

use std::collections::BTreeMap;

use labdata_application::data::import_table::WrittenImport;
use labdata_domain::{
    data::{
        import::{BlankCells, ImportMode, ImportedTable, LinkedTable, MAX_LINKED_TABLES},
        write::OnMatch,
    },
    files::FilePath,
    ids::{ExecutionId, FileId},
};
use labdata_request_body::{
    Definitions, FieldPath, ProblemKind, Reader, Schema,
    fields::{group, optional, or, required},
    output,
    readers::{FilePart, boolean, choice_of, list, map_of, shape, text},
    shape,
};
use serde_json::{Map, Value, json};

use crate::{
    About, FormBody, Method, Operation, Tag, Write, catalog::TablePath, errors::WriteRefusal,
    files::read_options::ReadOptionFields,
};

shape! {
    /// The parts of an import's `multipart/form-data`.
    #[derive(Clone, Debug)]
    pub struct ImportTableBody {
        /// The file: a delimited text, an Excel workbook (.xlsx) or Parquet, under any name.
        pub file: FilePath = required(FilePart),
        /// Action on the rows: `insert` creates all of them, `upsert` updates those that match a
        /// stored row.
        pub mode: ImportMode = required(choice_of(ImportMode::ALL, ImportMode::as_str)),
        /// Column that identifies an existing row for `upsert`, the primary key unless given; repeated
        /// for several columns.
        pub key: Option<Vec<String>> = optional(list(text(..))),
        /// JSON: the column for each field of the header that has another name, or null to leave
        /// the field out.
        pub columns: Option<Vec<(String, Option<String>)>> = optional(ColumnsPart),
        /// JSON: for a reference, the unique column of the referenced table whose values the cells hold.
        /// Unless given, a cell may hold the row's key or, where the referenced table has exactly one
        /// unique text column, that column's value.
        pub lookups: Option<Vec<(String, String)>> = optional(LookupsPart),
        /// JSON: tables to whose rows those of the file refer, made of the same lines; one that another linked
        /// table refers to comes before it. Lines with the same key are one row, which is updated if it exists.
        pub linked: Option<Vec<LinkedTableBody>> = optional(LinkedPart),
        /// Treatment of blank cells: `keep` (default of `upsert`) changes nothing, `null` (default of
        /// `insert`) makes them null.
        pub blank: Option<BlankCells> = optional(choice_of(BlankCells::ALL, BlankCells::as_str)),
        /// Effect on the columns of a matched row: `fill_missing` sets only those that are null.
        pub on_match: OnMatch =
            or(OnMatch::default().as_str(), choice_of(OnMatch::ALL, OnMatch::as_str)),
        /// Options for reading the file.
        pub options: ReadOptionFields = group(),
        /// Run all checks, then roll back.
        pub dry_run: bool = or(false, boolean()),
        /// The execution to record it under; one is created and returned unless given.
        pub job_execution_id: Option<String> = optional(text(..)),
        /// The job of a created execution; `Import` unless given.
        pub job_name: Option<String> = optional(text(..)),
    }
    example json!({
        "file": "name,strain,volume\nA1,BY4741,150\n",
        "mode": "upsert",
        "key": ["name"],
        "dry_run": true,
    });
}

shape! {
    /// A table to whose rows those of an import refer.
    #[derive(Clone, Debug)]
    pub struct LinkedTableBody {
        /// The table.
        table: String = required(text(1..)),
        /// Its column for each field of the header that it takes. The import's own table takes one of these fields
        /// only if `columns` names it.
        columns: Vec<(String, String)> = required(map_of(text(1..))),
        /// Columns that identify a row, among them references to linked tables; its only unique text column unless
        /// given.
        key: Option<Vec<String>> = optional(list(text(..))),
        /// Table whose rows refer to it: a linked table after it, or the import's own, which it is unless given.
        of: Option<String> = optional(text(..)),
        /// Column with the reference; the only one to this table unless given.
        reference: Option<String> = optional(text(..)),
        /// Effect on the columns of a row that exists: `fill_missing` sets only those that are null.
        on_match: OnMatch =
            or(OnMatch::default().as_str(), choice_of(OnMatch::ALL, OnMatch::as_str)),
    }
    example json!({"table": "plate", "columns": {"Plate": "barcode"}});
}

impl From<LinkedTableBody> for LinkedTable {
    fn from(body: LinkedTableBody) -> Self {
        Self {
            table: body.table,
            columns: body.columns.into_iter().collect(),
            key: body.key,
            of: body.of,
            reference: body.reference,
            on_match: body.on_match,
        }
    }
}

/// Linked tables, as JSON in a text.
struct LinkedPart;

impl Reader for LinkedPart {
    type Output = Vec<LinkedTableBody>;

    fn read(&self, value: Value, at: &FieldPath<'_>) -> Option<Self::Output> {
        match serde_json::from_str(value.as_str().unwrap_or_default()) {
            Ok(value @ Value::Array(_)) => linked_tables().read(value, at),
            _ => at.refuse(ProblemKind::value_error(
                "a JSON list is expected here, such as [{\"table\": \"plate\", \"columns\": {\"Plate\": \
                 \"barcode\"}}]",
            )),
        }
    }

    fn schema(&self, definitions: &mut Definitions) -> Schema {
        linked_tables().schema(definitions)
    }
}

fn linked_tables() -> impl Reader<Output = Vec<LinkedTableBody>> {
    list(shape::<LinkedTableBody>()).of(1..=MAX_LINKED_TABLES)
}

/// Columns for fields of the header, as JSON in a text.
struct ColumnsPart;

impl Reader for ColumnsPart {
    type Output = Vec<(String, Option<String>)>;

    fn read(&self, value: Value, at: &FieldPath<'_>) -> Option<Self::Output> {
        let example = "{\"Sample\": \"name\", \"Remark\": null}";
        let fields = json_object(&value, example, at)?;
        let count = fields.len();
        let read: Self::Output = fields
            .into_iter()
            .filter_map(|(name, column)| match column {
                Value::Null => Some((name, None)),
                Value::String(column) => Some((name, Some(column))),
                _ => at.field(&name).refuse(ProblemKind::string_type()),
            })
            .collect();
        (read.len() == count).then_some(read)
    }

    fn schema(&self, _: &mut Definitions) -> Schema {
        Schema::of("object").with("additionalProperties", Schema::of("string").or_null())
    }
}

/// Columns of referenced tables, as JSON in a text.
struct LookupsPart;

impl Reader for LookupsPart {
    type Output = Vec<(String, String)>;

    fn read(&self, value: Value, at: &FieldPath<'_>) -> Option<Self::Output> {
        let fields = json_object(&value, "{\"strain\": \"barcode\"}", at)?;
        let count = fields.len();
        let read: Self::Output = fields
            .into_iter()
            .filter_map(|(name, column)| match column {
                Value::String(column) => Some((name, column)),
                _ => at.field(&name).refuse(ProblemKind::string_type()),
            })
            .collect();
        (read.len() == count).then_some(read)
    }

    fn schema(&self, _: &mut Definitions) -> Schema {
        Schema::of("object").with("additionalProperties", Schema::of("string"))
    }
}

/// Reads a JSON object in the text of a part.
fn json_object(value: &Value, example: &str, at: &FieldPath<'_>) -> Option<Map<String, Value>> {
    match serde_json::from_str(value.as_str().unwrap_or_default()) {
        Ok(Value::Object(fields)) => Some(fields),
        _ => at.refuse(ProblemKind::value_error(&format!(
            "a JSON object is expected here, such as {example}"
        ))),
    }
}

output! {
    /// Table that an import wrote.
    #[derive(Clone, Debug)]
    pub struct ImportedTableView as "ImportedTable" from imported: ImportedTable {
        /// The table.
        table: String = imported.table,
        /// Rows created.
        created: u64 = imported.created,
        /// Rows that matched.
        updated: u64 = imported.updated,
        /// The header's fields that were read, with their columns.
        #[example = json!({"Plate": "barcode"})]
        columns: BTreeMap<String, String> = imported.columns,
    }
}

output! {
    /// Result of an import.
    #[derive(Clone, Debug)]
    pub struct ImportView as "ImportResult" from written: WrittenImport {
        /// The execution that it is recorded under; null on a dry run.
        job_execution_id: Option<ExecutionId> = written.imported.execution,
        /// Rows created in the import's own table.
        created: u64 = written.imported.own().created,
        /// Rows that matched in it.
        updated: u64 = written.imported.own().updated,
        /// The header's fields that were read, with its columns.
        #[example = json!({"Sample": "name", "Vol (µl)": "volume"})]
        columns: BTreeMap<String, String> = written.imported.own().columns,
        /// All tables that were written: the linked ones, then the import's own.
        tables: Vec<ImportedTableView> = written.imported.tables.into_iter().map(Into::into).collect(),
        /// The file, stored as one of the execution; null on a dry run.
        file_id: Option<FileId> = written.file,
        /// All options as they were used, which can be sent back, and what was skipped.
        reading: Map<String, Value> = written.reading.to_json(),
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "import_table",
        method: Method::Post,
        path: "/api/v1/tables/{name}/import",
        tag: Tag::Tables,
        summary: "Import a file into a table",
        description: "Inserts or upserts the rows of a delimited text, an Excel workbook or a Parquet file \
            of at most 100 MB (104,857,600 bytes) and 100,000 rows in one transaction, recorded under one \
            execution that can be reverted, of which the file becomes one. A header finds its column by \
            name, without regard to case, blanks, punctuation and a unit in brackets; system columns are \
            left out, so that an export can be imported. `linked` makes rows of further tables of the same \
            lines, to which those of this table refer. What would have to be guessed is a problem that \
            names the options which settle it; `POST /api/v1/tools/preview-table` shows how a file is \
            read. Problems name the line of the file, such as `rows[17].volume`; all are reported \
            together, and then nothing is written.",
        returns: "What was written",
        refusals: &[
            (413, "The file has more than 104,857,600 bytes"),
            (507, "Neither disk nor quota have room for the file"),
            (503, "Too many files are being imported; try again after `Retry-After` seconds"),
        ],
    }
    .served_by_hand::<Write, FormBody<ImportTableBody>, (), TablePath, ImportView>()
    .creating()
    .refusing::<WriteRefusal>(
        400,
        "What does not hold, with the lines of the file; nothing was written",
    )
}
