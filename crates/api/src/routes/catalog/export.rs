//! `GET /api/v1/tables/{name}/export`

use labdata_application::data::export_table::export_table;
use labdata_request_body::{fields::or, readers::choice, shape};
use labdata_table_formats::Format;

use super::put::TablePath;
use crate::http::{
    ApiResult, Call, NoBody, Read, accept::ResultForm, error::ErrorBody, table_stream::TableStream,
};

/// Formats and their names in the API.
const FORMATS: [(&str, Format); 3] = [
    ("csv", Format::Csv),
    ("arrow", Format::ArrowStream),
    ("parquet", Format::Parquet),
];

shape! {
    /// Options of an export.
    #[derive(Debug)]
    pub struct ExportQuery {
        /// Format of the file; `arrow` is an Arrow IPC stream.
        format: Format = or("csv", choice(FORMATS)),
    }
}

/// Export a table
///
/// All rows of a table as of one moment, of any size; raw tables have one row per point. Columns are
/// those of `tools/read`: int64, float64, bool, timestamp\[µs, UTC\], date32, and utf8 for all else,
/// JSON included. The order of rows is not fixed; points come series by series.
///
/// The answer is sent while the table is read. It ends early, without its last chunk, if the client
/// keeps it waiting (for 30 s unless set otherwise), and if the table cannot be read to its end.
#[utoipa::path(
    get,
    path = "/api/v1/tables/{name}/export",
    tag = "tables",
    operation_id = "export_table",
    responses(
        (status = 200, description = "The table, as an attachment", content(
            (String = "text/csv"),
            (String = "application/vnd.apache.arrow.stream"),
            (String = "application/vnd.apache.parquet"),
        )),
        (status = 503, description = "Other exports of the organization are still being sent", body = ErrorBody),
    )
)]
pub async fn handle(call: Call<Read, NoBody, ExportQuery, TablePath>) -> ApiResult<TableStream> {
    let format = call.query.format;
    let export = export_table(call.ports(), &call.actor, &call.path.name).await?;
    let (ports, columns) = (call.ports().clone(), export.columns());
    let stream = TableStream::begin(format, columns, call.app.stall, |sink| async move {
        export.send(&ports, sink).await
    });
    let file_name = format!(
        "{}.{}",
        call.path.name,
        ResultForm::File(format).extension()
    );
    Ok(stream.await?.named(&file_name))
}
