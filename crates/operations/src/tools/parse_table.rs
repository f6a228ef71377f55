//! The tool `parse_table`.

use async_trait::async_trait;
use labdata_application::{
    Error,
    agent::tools::ToolContext,
    files::parse_table::{ParsedTable, parse_table},
};
use labdata_domain::{ids::FileId, refusal::Resource};
use labdata_request_body::{
    fields::{or, required},
    output,
    readers::{MaybeId, id, unsigned},
    shape,
};
use serde_json::Value;

use super::own::OwnTool;
use crate::OrNotFound;

shape! {
    /// Arguments of `parse_table`.
    pub(super) struct ParseTableInput {
        /// Id of the file.
        file_id: MaybeId<FileId> = required(id()),
        /// Number of rows to show.
        rows: u32 = or(20, unsigned(0..=200)),
    }
}

output! {
    /// The table of a file.
    pub(super) struct ParsedTableView from table: ParsedTable {
        /// The file's path.
        original_path: String = table.file.path.as_str().to_owned(),
        /// Its columns, in order.
        columns: Vec<ParsedColumnView> = table
            .columns
            .into_iter()
            .map(|(name, data_type)| ParsedColumnView { name, data_type: data_type.as_str() })
            .collect(),
        /// Number of rows of the whole table.
        row_count: usize = table.row_count,
        /// Number of rows of `data`.
        rows_shown: usize = table.rows.len(),
        /// The first rows.
        data: Vec<Vec<Value>> = table.rows,
    }
}

output! {
    /// A column of a file's table.
    struct ParsedColumnView {
        /// Its name.
        name: String,
        /// Type of its values.
        data_type: &'static str,
    }
}

/// Tables in files.
pub(super) struct ParseTableTool;

#[async_trait]
impl OwnTool for ParseTableTool {
    type Input = ParseTableInput;
    type Output = ParsedTableView;
    const NAME: &'static str = "parse_table";
    const DESCRIPTION: &'static str = "Reads a CSV, TSV, XLSX or Parquet file as a table: its columns with \
        their types, the number of rows, and the first rows.";

    async fn run(
        &self,
        context: &ToolContext<'_>,
        input: ParseTableInput,
    ) -> Result<ParsedTableView, Error> {
        let id = input.file_id.or_not_found(Resource::File)?;
        let displayed = usize::try_from(input.rows).unwrap_or(usize::MAX);
        let table = parse_table(context.ports, context.actor, id, displayed).await?;
        Ok(table.into())
    }
}
