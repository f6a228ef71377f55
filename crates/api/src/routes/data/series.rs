//! `GET /api/v1/tools/series/{table}`

use std::ops::Range;

use labdata_application::data::read_series::{ReadSeries, Series, SeriesSlots, read_series};
use labdata_domain::{
    for_each_values,
    scalar::{Scalar, Values},
    timestamp,
};
use labdata_operations::{
    ResultForm,
    data::series::{SeriesPath, SeriesQuery},
};
use labdata_table_formats::{FormatError, Frame};
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::written::{Chunks, Written, joined};
use crate::http::{ApiResult, Call, NoBody, Read};

/// Values of a column as they are sent, without a copy.
struct Column<'s> {
    values: &'s Values,
    part: Range<usize>,
}

impl Serialize for Column<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        fn of<'v, T>(vector: &'v [T], part: &Range<usize>) -> std::slice::Iter<'v, T> {
            vector.get(part.clone()).unwrap_or_default().iter()
        }
        let part = &self.part;
        match self.values {
            Values::Datetime(v) => {
                serializer.collect_seq(of(v, part).map(|at| at.map(timestamp::render)))
            }
            Values::Date(v) => {
                serializer.collect_seq(of(v, part).map(|date| date.map(timestamp::render_date)))
            }
            other => for_each_values!(other, vector => serializer.collect_seq(of(vector, part))),
        }
    }
}

/// Maximum number of values per chunk of JSON.
const PIECE: usize = 8192;

/// The series as the text of a JSON object: a beginning, a chunk per column and part of it, an end.
pub(super) fn json_chunks(series: Series) -> impl Iterator<Item = Result<Vec<u8>, FormatError>> {
    let points = series.points.points;
    let parent = Scalar::from(series.parent).to_json();
    let beginning = format!("{{\"parent\":{parent},\"columns\":{{");
    let columns = series.points.columns.into_iter().enumerate();
    let columns = columns.flat_map(move |(index, (name, values))| {
        let separator = if index > 0 { "," } else { "" };
        let name = format!("{separator}{}:[", Value::from(name));
        let parts = (0..points).step_by(PIECE).map(move |start| {
            let part = start..points.min(start + PIECE);
            let column = Column {
                values: &values,
                part,
            };
            let text = serde_json::to_vec(&column)
                .map_err(|error| FormatError::Failed(error.to_string()))?;
            // Its brackets stand around the whole column.
            let inner = text.get(1..text.len().saturating_sub(1));
            let comma: &[u8] = if start > 0 { b"," } else { b"" };
            Ok([comma, inner.unwrap_or_default()].concat())
        });
        once(name.into_bytes())
            .chain(parts)
            .chain(once(b"]".to_vec()))
    });
    let end = format!("}},\"points\":{points}}}");
    once(beginning.into_bytes())
        .chain(columns)
        .chain(once(end.into_bytes()))
}

pub(super) fn once(chunk: Vec<u8>) -> std::iter::Once<Result<Vec<u8>, FormatError>> {
    std::iter::once(Ok(chunk))
}

/// The series in a form.
fn written(series: Series, form: ResultForm) -> Result<Chunks, FormatError> {
    Ok(match form {
        ResultForm::Json => Box::new(joined(json_chunks(series))),
        ResultForm::File(format) => {
            let found = series.points;
            let frame = Frame::of_columns(found.columns, found.points)?;
            Box::new(frame.described(&series.columns)?.encode(format)?)
        }
    })
}

/// Reads a series, and sends it in the form that the client accepts.
pub async fn handle(call: Call<Read, NoBody, SeriesQuery, SeriesPath>) -> ApiResult<Written> {
    let form = call.accepted.form()?;
    let query = ReadSeries {
        table: call.path.table.clone(),
        parent: call.query.parent.clone(),
        parent_column: call.query.parent_column.clone(),
        as_of: call.query.as_of,
    };
    let series = read_series(call.services(), &call.actor, query).await?;
    let SeriesSlots { result, encoding } = series.slots;
    Written::by(form, result, move || {
        let body = written(series.value, form);
        drop(encoding);
        body
    })
    .await
}
