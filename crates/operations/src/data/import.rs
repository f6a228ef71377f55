//! `POST /api/v1/tables/{name}/import`

use std::collections::BTreeMap;

use labdata_application::data::import_table::WrittenImport;
use labdata_domain::{data::import::ImportMode, files::FilePath, ids::ExecutionId};
use labdata_request_body::{
    Definitions, FieldPath, ProblemKind, Reader, Schema,
    fields::{group, optional, or, required},
    output,
    readers::{FilePart, boolean, choice_of, list, text},
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
        /// The file: a delimited text, an Excel workbook (.xlsx) or Parquet, whatever its name.
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
        /// How the file is to be read.
        pub options: ReadOptionFields = group(),
        /// Run all checks, then roll back.
        pub dry_run: bool = or(false, boolean()),
        /// The execution to record it under; one is created and returned unless given.
        pub job_execution_id: Option<String> = optional(text(..)),
    }
    example json!({
        "file": "name,strain,volume\nA1,BY4741,150\n",
        "mode": "upsert",
        "key": ["name"],
        "dry_run": true,
    });
}

/// Columns for fields of the header, as JSON in a text.
struct ColumnsPart;

impl Reader for ColumnsPart {
    type Output = Vec<(String, Option<String>)>;

    fn read(&self, value: Value, at: &FieldPath<'_>) -> Option<Self::Output> {
        let text = value.as_str().unwrap_or_default();
        let Ok(Value::Object(fields)) = serde_json::from_str(text) else {
            return at.refuse(ProblemKind::value_error(
                "a JSON object is expected here, such as {\"Sample\": \"name\", \"Remark\": null}",
            ));
        };
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

output! {
    /// Result of an import.
    #[derive(Clone, Debug)]
    pub struct ImportView as "ImportResult" from written: WrittenImport {
        /// The execution that it is recorded under; null on a dry run.
        job_execution_id: Option<ExecutionId> = written.imported.execution,
        /// Rows created.
        created: u64 = written.imported.created,
        /// Rows that matched.
        updated: u64 = written.imported.updated,
        /// The header's fields that were read, with their columns.
        #[example = json!({"Sample": "name", "Vol (µl)": "volume"})]
        columns: BTreeMap<String, String> = written.imported.columns,
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
            execution that can be reverted. A header finds its column by name, without regard to case, \
            blanks, punctuation and a unit in brackets. What would have to be guessed is a problem that \
            names the options which settle it; `POST /api/v1/tools/preview-table` shows how a file is \
            read. Problems name the line of the file, such as `rows[17].volume`; all are reported \
            together, and then nothing is written.",
        returns: "What was written",
        refusals: &[
            (413, "The file has more than 104,857,600 bytes"),
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
