//! `GET /api/v1/tools/series/{table}`

use labdata_application::read_series::{ReadSeries, Series, read_series};
use labdata_domain::{
    for_each_values,
    scalar::{Scalar, Values},
    timestamp,
};
use labdata_table_formats::{FormatError, Frame};
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::written::{Written, turn};
use crate::http::{
    Answer, Call, NoBody, Read,
    accept::ResultForm,
    error::ErrorBody,
    shape::{Fields, Place, Shape, readers::text},
};

/// The table.
#[derive(Debug)]
pub struct SeriesPath {
    table: String,
}

impl Shape for SeriesPath {
    fn read(value: Value, place: &Place<'_>) -> Option<Self> {
        let table = Fields::of(value, place)?.required("table", text(..));
        Some(Self { table: table? })
    }
}

/// Whose series.
#[derive(Clone, Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct SeriesQuery {
    /// The primary key of the row that owns the points.
    parent: String,
    /// The reference by which it owns them; needed where the table has several.
    parent_column: Option<String>,
}

impl Shape for SeriesQuery {
    fn read(value: Value, place: &Place<'_>) -> Option<Self> {
        let mut fields = Fields::of(value, place)?;
        let parent = fields.required("parent", text(..));
        let parent_column = fields.nullable("parent_column", text(..));
        Some(Self {
            parent: parent?,
            parent_column: parent_column?,
        })
    }
}

/// A series, column by column.
#[derive(Debug, ToSchema)]
pub struct SeriesView {
    /// The primary key of the row that owns the points.
    #[schema(value_type = Value)]
    pub parent: (),
    /// The values of each column, as a write accepts them; the parent's own is left out.
    #[schema(value_type = Object)]
    pub columns: (),
    /// How many points there are.
    pub points: usize,
}

/// A series as it is sent, without a copy of its values.
#[derive(Serialize)]
struct SeriesJson<'s> {
    parent: Value,
    columns: Columns<'s>,
    points: usize,
}

struct Columns<'s>(&'s [(String, Values)]);

impl Serialize for Columns<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, values) in self.0 {
            map.serialize_entry(name, &Column(values))?;
        }
        map.end()
    }
}

struct Column<'s>(&'s Values);

impl Serialize for Column<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Values::Datetime(v) => {
                serializer.collect_seq(v.iter().map(|at| at.map(timestamp::render)))
            }
            Values::Date(v) => {
                serializer.collect_seq(v.iter().map(|date| date.map(timestamp::render_date)))
            }
            other => for_each_values!(other, vector => serializer.collect_seq(vector)),
        }
    }
}

/// The series in a form.
fn written(series: &Series, form: ResultForm) -> Result<Vec<u8>, FormatError> {
    let found = &series.points;
    match form {
        ResultForm::Json => serde_json::to_vec(&SeriesJson {
            parent: Scalar::from(series.parent.clone()).to_json(),
            columns: Columns(&found.columns),
            points: found.points,
        })
        .map_err(|error| FormatError::Failed(error.to_string())),
        ResultForm::File(format) => {
            let columns = found
                .columns
                .iter()
                .map(|(name, values)| (name.as_str(), values));
            Frame::of_columns(columns, found.points)?.encode(format)
        }
    }
}

/// Read a series
///
/// All points of one parent, column by column, in the order in which they were written; a row
/// without points has a series of none. At most 2,000,000 values and 32 MiB: beyond, 400 says so.
///
/// `Accept` chooses the form: JSON unless it names CSV, an Arrow stream or Parquet. Their columns
/// are int64, float64, bool, timestamp\[µs, UTC\], date32, and utf8 for all else, JSON included.
#[utoipa::path(
    get,
    path = "/api/v1/tools/series/{table}",
    tag = "tools",
    operation_id = "read_series",
    params(("table" = String, Path, description = "A raw table's name"), SeriesQuery),
    responses(
        (status = 200, description = "The series", content(
            (SeriesView = "application/json"),
            (String = "text/csv"),
            (String = "application/vnd.apache.arrow.stream"),
            (String = "application/vnd.apache.parquet"),
        )),
        (status = 406, description = "The series has no form that `Accept` allows", body = ErrorBody),
    )
)]
pub async fn handle(call: Call<Read, NoBody, SeriesQuery, SeriesPath>) -> Answer<Written> {
    let form = call.accepted.form()?;
    let query = ReadSeries {
        table: call.path.table.clone(),
        parent: call.query.parent.clone(),
        parent_column: call.query.parent_column.clone(),
    };
    let turn = turn().await?;
    let series = read_series(call.ports(), &call.actor, query).await?;
    Written::by(form, move || {
        let body = written(&series, form);
        drop(turn);
        body
    })
    .await
}
