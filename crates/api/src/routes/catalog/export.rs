//! `GET /api/v1/tables/{name}/export`

use labdata_application::data::{
    export_table::{export_table, export_table_again},
    plans::Plans,
};
use labdata_operations::{
    ResultForm,
    catalog::{TablePath, export::ExportQuery},
};
use labdata_table_formats::Encoding;

use crate::http::{ApiError, ApiResult, Call, NoBody, Read, table_stream::TableStream};

/// Sends a table while it is read.
pub async fn handle(call: Call<Read, NoBody, ExportQuery, TablePath>) -> ApiResult<TableStream> {
    let ExportQuery {
        format,
        neutralize_formulas,
        as_of,
    } = call.query;
    let encoding = Encoding {
        format,
        neutralize_formulas,
    };
    let (services, actor, name) = (call.services(), &call.actor, &call.path.name);
    let mut plans = Plans::default();
    let stream = loop {
        let export = if plans.is_first() {
            export_table(services, actor, name, as_of).await?
        } else {
            export_table_again(services, actor, name, as_of).await?
        };
        let (services, columns) = (services.clone(), export.columns());
        let stream = TableStream::begin(encoding, columns, call.app.stall, |sink| async move {
            export.send(&services, sink).await
        });
        match stream.await {
            Err(ApiError::UseCase(failure)) => plans.again(failure)?,
            begun => break begun?,
        }
    };
    let extension = ResultForm::File(format).extension();
    let file_name = format!("{name}.{extension}");
    Ok(stream.named(&file_name))
}
