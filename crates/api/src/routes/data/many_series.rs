//! `POST /api/v1/tools/series`

use actix_web::Either;
use labdata_application::data::{
    plans::Plans,
    read_many_series::{read_many_series, stream_many_series},
    read_series::{Series, SeriesSlots},
};
use labdata_domain::data::read::SeriesSelection;
use labdata_operations::{ResultForm, data::many_series::ManySeriesBody};
use labdata_table_formats::{Encoding, FormatError};

use super::{
    series::{json_chunks, once},
    written::{Chunks, Written, joined},
};
use crate::http::{ApiError, ApiResult, Call, JsonBody, Read, table_stream::TableStream};

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

/// Reads many series: as JSON they are whole first, as a file they are sent while they are read.
pub async fn handle(
    call: Call<Read, JsonBody<ManySeriesBody>>,
) -> ApiResult<Either<Written, TableStream>> {
    let form = call.accepted.form()?;
    let JsonBody(body) = call.body.clone();
    let neutralize_formulas = body.neutralize_formulas;
    let selection = SeriesSelection {
        table: body.table,
        parent_column: body.parent_column,
        parents: body.parents,
        filters: body.filters.unwrap_or_default(),
        columns: body.columns,
        as_of: body.as_of,
    };
    match form {
        ResultForm::Json => json(&call, selection).await.map(Either::Left),
        ResultForm::File(format) => {
            let encoding = Encoding {
                format,
                neutralize_formulas,
            };
            table(&call, selection, encoding).await.map(Either::Right)
        }
    }
}

type SeriesCall = Call<Read, JsonBody<ManySeriesBody>>;

async fn json(call: &SeriesCall, selection: SeriesSelection) -> ApiResult<Written> {
    let series = read_many_series(call.services(), &call.actor, selection).await?;
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
    encoding: Encoding,
) -> ApiResult<TableStream> {
    let mut plans = Plans::default();
    loop {
        let series = stream_many_series(call.services(), &call.actor, selection.clone()).await?;
        let (services, columns) = (call.services().clone(), series.columns());
        let stream = TableStream::begin(encoding, columns, call.app.stall, |sink| async move {
            series.send(&services, sink).await
        });
        match stream.await {
            Err(ApiError::UseCase(failure)) => plans.again(failure)?,
            begun => return begun,
        }
    }
}
