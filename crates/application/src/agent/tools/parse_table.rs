//! The tool `parse_table`.

use async_trait::async_trait;
use labdata_domain::{ids::FileId, refusal::Resource};
use labdata_request_body::{
    fields::{or, required},
    readers::{MaybeId, id, unsigned},
    shape,
};
use serde_json::{Value, json};

use super::{ToolContext, TypedTool};
use crate::{Error, files::parse_table::parse_table};

shape! {
    /// Arguments of `parse_table`.
    pub(super) struct ParseTableInput {
        /// Id of the file.
        file_id: MaybeId<FileId> = required(id()),
        /// Number of rows to show.
        rows: u32 = or(20, unsigned(0..=200)),
    }
}

/// Tables in files.
pub(super) struct ParseTableTool;

#[async_trait]
impl TypedTool for ParseTableTool {
    type Input = ParseTableInput;
    const NAME: &'static str = "parse_table";
    const DESCRIPTION: &'static str = "Reads a CSV, TSV, XLSX or Parquet file as a table: its columns with \
        their types, the number of rows, and the first rows.";
    const NEEDS_WRITE: bool = false;

    async fn run(
        &self,
        context: &ToolContext<'_>,
        input: ParseTableInput,
    ) -> Result<String, Error> {
        let id = input
            .file_id
            .known()
            .ok_or_else(|| Error::not_found(Resource::File))?;
        let displayed = usize::try_from(input.rows).unwrap_or(usize::MAX);
        let table = parse_table(context.ports, context.actor, id, displayed).await?;
        let columns = table
            .columns
            .iter()
            .map(|(name, data_type)| json!({ "name": name, "data_type": data_type.as_str() }));
        let json = json!({
            "path": table.file.path.as_str(),
            "columns": columns.collect::<Vec<Value>>(),
            "row_count": table.row_count,
            "rows_shown": table.rows.len(),
            "data": table.rows,
        });
        Ok(json.to_string())
    }
}
