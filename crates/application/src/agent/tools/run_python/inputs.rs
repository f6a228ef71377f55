//! Inputs of a snippet, read by the use cases with the rights of the caller.

use labdata_domain::{
    agent::{InvalidPythonInput, MAX_PYTHON_INPUT_BYTES},
    data::query::PYTHON_QUERY_LIMITS,
    refusal::{Refusal, RefusalKind, Resource},
    scalar::{DataType, KeyValue, Scalar},
};
use labdata_ports::agent::{PythonContent, PythonInput};
use serde_json::{Value, json};

use super::{super::ToolContext, DataInput, SeriesInput};
use crate::{
    Error,
    data::{
        query_data::{QueryData, query_data_within},
        read_series::{ReadSeries, Series, read_series},
    },
    files::read_file::read_file,
};

/// Maximum number of series of one input.
pub(super) const MAX_PARENTS: usize = 500;

/// Maximum number of columns of an input that the model is shown.
const SHOWN_COLUMNS: usize = 50;

/// Inputs that were read.
#[derive(Default)]
pub(super) struct Inputs {
    read: Vec<PythonInput>,
    bytes: u64,
}

impl Inputs {
    /// Reads an input.
    pub(super) async fn fetch(
        &mut self,
        context: &ToolContext<'_>,
        index: usize,
        wanted: DataInput,
    ) -> Result<(), Error> {
        let DataInput {
            name,
            query,
            params,
            series,
            file_id,
        } = wanted;
        let data = match (query, series, file_id) {
            (Some(sql), None, None) => self.of_query(context, QueryData { sql, params }).await,
            (None, Some(series), None) => self.of_series(context, series).await,
            (None, None, Some(id)) => {
                let id = id.known().ok_or_else(|| Error::not_found(Resource::File))?;
                let left = MAX_PYTHON_INPUT_BYTES.saturating_sub(self.bytes);
                let read = read_file(context.ports, context.actor, id, left).await?;
                let (file, bytes) = read.ok_or_else(too_large)?;
                self.count(bytes.len())?;
                let file_name = file.path.file_name().to_owned();
                Ok(PythonContent::File { file_name, bytes })
            }
            _ => {
                let refusal = InvalidPythonInput::Source(index);
                return Err(Error::refused(refusal));
            }
        };
        let data = data.map_err(|error| named(error, &name))?;
        self.read.push(PythonInput {
            name,
            content: data,
        });
        Ok(())
    }

    async fn of_query(
        &mut self,
        context: &ToolContext<'_>,
        query: QueryData,
    ) -> Result<PythonContent, Error> {
        let limits = PYTHON_QUERY_LIMITS;
        let result = query_data_within(context.ports, context.actor, query, limits).await?;
        self.count(result.rows.iter().map(String::len).sum())?;
        let result = result.value;
        let columns = result.columns.into_iter().zip(result.types);
        Ok(PythonContent::Table {
            columns: columns.collect(),
            rows: result.rows,
        })
    }

    async fn of_series(
        &mut self,
        context: &ToolContext<'_>,
        series: SeriesInput,
    ) -> Result<PythonContent, Error> {
        let (mut columns, mut rows) = (Vec::new(), Vec::new());
        for parent in series.parents {
            let wanted = ReadSeries {
                table: series.table.clone(),
                parent_column: series.parent_column.clone(),
                parent: parent.clone(),
            };
            let read = read_series(context.ports, context.actor, wanted).await;
            let read = read.map_err(|error| match error {
                // Among hundreds of parents, the message has to name the missing one.
                Error::Refused(refusal) if refusal.kind == RefusalKind::NotFound => {
                    let message = format!("{refusal}: {} of {parent:?}", series.table);
                    Refusal::invalid(refusal.code, message).into()
                }
                other => other,
            })?;
            if columns.is_empty() {
                columns = columns_of(&read);
            }
            let added = rows_of(read.value);
            self.count(added.iter().map(String::len).sum())?;
            rows.extend(added);
        }
        Ok(PythonContent::Table { columns, rows })
    }

    /// Counts the bytes of an input.
    fn count(&mut self, bytes: usize) -> Result<(), Error> {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > MAX_PYTHON_INPUT_BYTES {
            return Err(too_large());
        }
        Ok(())
    }

    /// What the snippet gets, for the model: the code may have failed because it is something else.
    pub(super) fn described(&self) -> Value {
        let inputs = self.read.iter().map(|input| match &input.content {
            PythonContent::Table { columns, rows } => {
                let columns = columns.iter().take(SHOWN_COLUMNS);
                let columns = columns.map(|(name, _)| name.as_str());
                json!({
                    "name": input.name,
                    "rows": rows.len(),
                    "columns": columns.collect::<Vec<_>>(),
                })
            }
            PythonContent::File { file_name, bytes } => {
                json!({ "name": input.name, "file_name": file_name, "bytes": bytes.len() })
            }
        });
        inputs.collect()
    }

    pub(super) fn into_contents(self) -> Vec<PythonInput> {
        self.read
    }
}

fn too_large() -> Error {
    Error::refused(InvalidPythonInput::TooLarge)
}

/// The error of an input with the input's name.
fn named(error: Error, name: &str) -> Error {
    match error {
        Error::Refused(refusal) if refusal.kind == RefusalKind::Invalid => {
            refusal.within(format_args!("inputs.{name}: ")).into()
        }
        other => other,
    }
}

/// The key of the parent, then the columns of the series.
fn columns_of(series: &Series) -> Vec<(String, DataType)> {
    let kind = match series.parent {
        KeyValue::Integer(_) => DataType::Integer,
        _ => DataType::Text,
    };
    let own = series.points.columns.iter();
    let own = own.map(|(name, values)| (name.clone(), values.data_type()));
    std::iter::once(("parent".to_owned(), kind))
        .chain(own)
        .collect()
}

/// One JSON array per point.
fn rows_of(series: Series) -> Vec<String> {
    let parent = Scalar::from(series.parent).to_json();
    let columns = series.points.columns;
    let rows = (0..series.points.points).map(|index| {
        let values = columns.iter().map(|(_, values)| {
            values
                .get(index)
                .map_or(Value::Null, |value| value.to_json())
        });
        let row: Vec<Value> = std::iter::once(parent.clone()).chain(values).collect();
        Value::Array(row).to_string()
    });
    rows.collect()
}
