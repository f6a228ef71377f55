//! `POST /api/v1/tools/series`

use actix_web::Either;
use labdata_application::data::{
    read_many_series::{read_many_series, stream_many_series},
    read_series::{Series, SeriesSlots},
};
use labdata_domain::data::read::SeriesSelection;
use labdata_operations::ResultForm;
use labdata_request_body::{
    ProblemKind,
    fields::{optional, required},
    readers::{any, list, object, text},
    shape,
};
use labdata_table_formats::{Format, FormatError};
use serde_json::{Map, Value, json};

use super::{
    read::MAX_COLUMNS,
    series::{SeriesView, json_chunks, once},
    written::{Chunks, Written, joined},
};
use crate::http::{ApiResult, Call, JsonBody, Read, error::ErrorBody, table_stream::TableStream};

shape! {
    /// The series to read.
    #[derive(Clone, Debug)]
    pub struct ManySeriesBody {
        /// A raw table's name.
        table: String = required(text(..)),
        /// Primary keys of the parents, whose series come in this order; each once.
        parents: Option<Vec<Value>> = optional(list(any())),
        /// Conditions on the parents, as in `tools/read`, instead of `parents`. Their series come by
        /// ascending key; those of all rows if neither is given.
        filters: Option<Map<String, Value>> = optional(object()),
        /// Columns of the series, in this order; all unless given.
        columns: Option<Vec<String>> = optional(list(text(..)).of(1..=MAX_COLUMNS)),
        /// The reference by which the parents own the points; needed where the table has several.
        parent_column: Option<String> = optional(text(..)),
    }
    example json!({
        "table": "growth_curve",
        "filters": {"name__contains": "A"},
        "columns": ["time", "od600"],
    });
    rules |at| {
        if let (Some(Some(_)), Some(Some(_))) = (parents, filters) {
            at.field("filters").report(ProblemKind::value_error("not together with parents"));
        }
    }
}

/// The series as the text of a JSON array.
fn written(series: Vec<Series>) -> Chunks {
    let one = |(index, series): (usize, Series)| {
        let before: &[u8] = if index > 0 { b"," } else { b"" };
        once(before.to_vec()).chain(json_chunks(series))
    };
    let series = series.into_iter().enumerate().flat_map(one);
    Box::new(joined(
        once(b"[".to_vec()).chain(series).chain(once(b"]".to_vec())),
    ))
}

/// Read many series
///
/// All points of many parents, column by column, in the order in which they were written. A parent
/// without points has empty lists. As JSON at most 2,000,000 values and 32 MiB: beyond, 400 says so.
///
/// `Accept` chooses the form: JSON unless it names CSV, an Arrow stream or Parquet. Those are one table
/// of any size, with the parent's key as first column, sent while it is read. It ends early, without
/// its last chunk, if the client keeps it waiting (for 30 s unless set otherwise).
#[utoipa::path(
    post,
    path = "/api/v1/tools/series",
    tag = "tools",
    operation_id = "read_many_series",
    responses(
        (status = 200, description = "The series", content(
            (Vec<SeriesView> = "application/json"),
            (String = "text/csv"),
            (String = "application/vnd.apache.arrow.stream"),
            (String = "application/vnd.apache.parquet"),
        )),
        (status = 406, description = "The series have no form that `Accept` allows", body = ErrorBody),
        (status = 503, description = "Earlier results of the organization are still being sent", body = ErrorBody),
    )
)]
pub async fn handle(
    call: Call<Read, JsonBody<ManySeriesBody>>,
) -> ApiResult<Either<Written, TableStream>> {
    let form = call.accepted.form()?;
    let JsonBody(body) = call.body.clone();
    let selection = SeriesSelection {
        table: body.table,
        parent_column: body.parent_column,
        parents: body.parents,
        filters: body.filters.unwrap_or_default(),
        columns: body.columns,
    };
    match form {
        ResultForm::Json => json(&call, selection).await.map(Either::Left),
        ResultForm::File(format) => table(&call, selection, format).await.map(Either::Right),
    }
}

type SeriesCall = Call<Read, JsonBody<ManySeriesBody>>;

async fn json(call: &SeriesCall, selection: SeriesSelection) -> ApiResult<Written> {
    let series = read_many_series(call.ports(), &call.actor, selection).await?;
    let SeriesSlots { result, encoding } = series.slots;
    Written::by(ResultForm::Json, result, move || {
        let body = written(series.value);
        drop(encoding);
        Ok::<_, FormatError>(body)
    })
    .await
}

async fn table(
    call: &SeriesCall,
    selection: SeriesSelection,
    format: Format,
) -> ApiResult<TableStream> {
    let series = stream_many_series(call.ports(), &call.actor, selection).await?;
    let (ports, columns) = (call.ports().clone(), series.columns());
    TableStream::begin(format, columns, call.app.stall, |sink| async move {
        series.send(&ports, sink).await
    })
    .await
}
