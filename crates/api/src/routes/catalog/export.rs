//! `GET /api/v1/tables/{name}/export`

use labdata_application::data::export_table::export_table;
use labdata_operations::{
    ResultForm,
    catalog::{TablePath, export::ExportQuery},
};
use labdata_table_formats::Encoding;

use crate::http::{ApiResult, Call, NoBody, Read, table_stream::TableStream};

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
    let export = export_table(call.services(), &call.actor, &call.path.name, as_of).await?;
    let (services, columns) = (call.services().clone(), export.columns());
    let stream = TableStream::begin(encoding, columns, call.app.stall, |sink| async move {
        export.send(&services, sink).await
    });
    let extension = ResultForm::File(format).extension();
    let file_name = format!("{}.{extension}", call.path.name);
    Ok(stream.await?.named(&file_name))
}
