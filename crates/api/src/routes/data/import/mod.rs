//! `POST /api/v1/tables/{name}/import`

mod form;

use std::collections::BTreeMap;

use actix_web::web::Json;
use labdata_application::{
    Error,
    data::import_table::{ImportFile, ImportTable, ReadImport, import_table, read_import},
};
use labdata_domain::data::import::{ImportWrite, Imported};
use labdata_operations::catalog::TablePath;
use serde::Serialize;
use utoipa::ToSchema;

pub use form::{ImportForm, ImportTableBody};

use crate::http::{
    ApiResult, Call, Write,
    error::{ErrorBody, WriteRefusalBody},
};

/// Result of an import.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ImportResult)]
pub struct ImportView {
    /// The execution that it is recorded under; null on a dry run.
    job_execution_id: Option<String>,
    /// Rows created.
    created: u64,
    /// Rows that matched.
    updated: u64,
    /// The header's fields that were read, with their columns.
    #[schema(example = json!({"Sample": "name", "Vol (µl)": "volume"}))]
    columns: BTreeMap<String, String>,
}

impl From<Imported> for ImportView {
    fn from(imported: Imported) -> Self {
        Self {
            job_execution_id: imported.execution.map(|id| id.to_string()),
            created: imported.created,
            updated: imported.updated,
            columns: imported.columns,
        }
    }
}

/// Reads the file.
async fn read(call: &Call<Write, ImportForm, (), TablePath>) -> ApiResult<ReadImport> {
    let ImportTableBody {
        file,
        mode,
        key,
        columns,
        sheet,
        dry_run,
        job_execution_id,
    } = call.body.parts.clone();
    let source = call.body.bytes.try_clone();
    let source =
        source.map_err(|error| Error::Internal(format!("a spooled file is lost: {error}")))?;
    let command = ImportTable {
        write: ImportWrite {
            table: call.path.name.clone(),
            mode,
            key,
            dry_run,
        },
        columns: columns.unwrap_or_default().into_iter().collect(),
        sheet,
        job_execution_id,
    };
    let file = ImportFile {
        path: file,
        source: Box::new(source),
    };
    Ok(read_import(call.ports(), &call.actor, file, command).await?)
}

/// Import a file into a table
///
/// Inserts or upserts the rows of a CSV, TSV, XLSX or Parquet file of at most 100 MB (104,857,600 bytes)
/// and 100,000 rows in one transaction, recorded under one execution that can be reverted. The
/// first line of the file names the columns. Cells are read by the types of their columns; nothing is
/// guessed: a date in another form than ISO 8601 and a decimal comma are problems. Problems name
/// the line of the file, such as `rows[17].volume`; all are reported together, and then nothing
/// is written.
#[utoipa::path(
    post,
    path = "/api/v1/tables/{name}/import",
    tag = "tables",
    operation_id = "import_table",
    responses(
        (status = 200, description = "What was written", body = ImportView),
        (status = 400, description = "What does not hold, with the lines of the file; nothing was written", body = WriteRefusalBody),
        (status = 413, description = "The file has more than 104,857,600 bytes", body = ErrorBody),
        (status = 503, description = "Too many files are being imported; try again after `Retry-After` seconds", body = ErrorBody),
    )
)]
pub async fn handle(call: Call<Write, ImportForm, (), TablePath>) -> ApiResult<Json<ImportView>> {
    call.refuse_repeated().await?;
    let import = read(&call).await?;
    let imported = import_table(call.begin().await?, &call.actor, import).await?;
    Ok(Json(imported.into()))
}
