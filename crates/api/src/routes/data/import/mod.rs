//! `POST /api/v1/tables/{name}/import`

pub mod form;

use actix_web::web::Json;
use labdata_application::{
    Error,
    data::import_table::{ImportTable, ReadImport, import_table, read_import},
};
use labdata_domain::data::import::ImportWrite;
use labdata_operations::{
    catalog::TablePath,
    data::import::{ImportTableBody, ImportView},
};

use self::form::ImportForm;
use crate::http::{ApiResult, Call, Write};

/// Reads the file.
async fn read(call: &Call<Write, ImportForm, (), TablePath>) -> ApiResult<ReadImport> {
    let ImportTableBody {
        file: _,
        mode,
        key,
        columns,
        lookups,
        linked,
        blank,
        on_match,
        options,
        dry_run,
        job_execution_id,
        job_name,
    } = call.body.parts.clone();
    let is_lost = |error| Error::Internal(format!("a spooled file is lost: {error}"));
    let source = call.body.bytes.try_clone().map_err(is_lost)?;
    let sent = call.body.sent_file().map_err(is_lost)?;
    let command = ImportTable {
        write: ImportWrite {
            table: call.path.name.clone(),
            mode,
            key,
            on_match,
            blank,
            dry_run,
        },
        columns: columns.unwrap_or_default().into_iter().collect(),
        lookups: lookups.unwrap_or_default().into_iter().collect(),
        linked: linked.into_iter().flatten().map(Into::into).collect(),
        options: options.options(),
        job_execution_id,
        job_name,
    };
    Ok(read_import(
        call.services(),
        &call.actor,
        Box::new(source),
        sent,
        command,
    )
    .await?)
}

/// Imports the file.
pub async fn handle(call: Call<Write, ImportForm, (), TablePath>) -> ApiResult<Json<ImportView>> {
    // Before the file is read, which may take long for a response that exists already.
    call.refuse_repeated().await?;
    let import = read(&call).await?;
    let services = if call.body.parts.dry_run {
        call.begin_dry_run()
    } else {
        call.begin().await?
    };
    let written = import_table(services, &call.actor, import).await?;
    Ok(Json(written.into()))
}
