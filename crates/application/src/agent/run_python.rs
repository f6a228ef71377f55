//! Runs a snippet of Python on data that is read with the rights of the caller.

use labdata_domain::{
    agent::{InvalidPythonInput, MAX_PYTHON_INPUT_BYTES, PythonOutcome, check_input_names},
    data::query::PYTHON_QUERY_LIMITS,
    ids::FileId,
    people::actor::Actor,
    refusal::{Refusal, RefusalKind},
    scalar::{DataType, KeyValue, Scalar},
};
use labdata_ports::agent::{PythonContent, PythonInput, PythonSnippet};
use serde_json::Value;

use crate::{
    Error, Services,
    data::{
        query_data::{QueryData, query_data_within},
        read_series::{ReadSeries, Series, read_series},
    },
    files::read_file::read_file,
};

/// Maximum number of series of one input.
pub const MAX_PARENTS: usize = 500;

/// Maximum number of columns of an input that are described.
const DESCRIBED_COLUMNS: usize = 50;

/// A snippet and its data.
#[derive(Clone, Debug)]
pub struct RunPython {
    /// The code.
    pub code: String,
    /// Its data.
    pub inputs: Vec<RequestedInput>,
}

/// Data of a snippet.
#[derive(Clone, Debug)]
pub struct RequestedInput {
    /// Its name in the code.
    pub name: String,
    /// Its source.
    pub source: InputSource,
}

/// Source of an input.
#[derive(Clone, Debug)]
pub enum InputSource {
    /// The result of a query.
    Query(QueryData),
    /// Series of one raw table.
    Series {
        /// The table.
        table: String,
        /// The reference to the parents, where there are several.
        parent_column: Option<String>,
        /// Keys of the parents, as texts.
        parents: Vec<String>,
    },
    /// An uploaded file.
    File(FileId),
}

/// The outcome of a snippet, and its inputs.
#[derive(Debug)]
pub struct PythonRun {
    /// The outcome.
    pub outcome: PythonOutcome,
    /// The inputs, without their data.
    pub inputs: Vec<DescribedInput>,
}

/// An input without its data.
#[derive(Debug)]
pub struct DescribedInput {
    /// Its name.
    pub name: String,
    /// Its content.
    pub content: DescribedContent,
}

/// Content of an input.
#[derive(Debug)]
pub enum DescribedContent {
    /// Rows.
    Table {
        /// Number of rows.
        rows: usize,
        /// Names of the first columns.
        columns: Vec<String>,
    },
    /// A file.
    File {
        /// Its name.
        file_name: String,
        /// Its size in bytes.
        bytes: usize,
    },
}

/// Runs a snippet.
///
/// # Errors
/// `Invalid` for names of inputs that are no identifiers or not unique, for inputs that are too large; the
/// errors of reading the inputs; errors of the sandbox.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn run_python(
    services: &Services,
    actor: &Actor,
    command: RunPython,
) -> Result<PythonRun, Error> {
    let names: Vec<&str> = command.inputs.iter().map(|input| &*input.name).collect();
    // Before anything is read: a wrong name would fail the snippet after minutes of queries.
    check_input_names(&names).map_err(Error::refused)?;
    let mut inputs = Inputs::default();
    for input in command.inputs {
        // One after the other: the limit of bytes is for all of them together.
        inputs.fetch(services, actor, input).await?;
    }
    let described = inputs.described();
    let snippet = PythonSnippet {
        organization: actor.organization,
        code: command.code,
        inputs: inputs.read,
    };
    let outcome = services.python.run(snippet).await;
    Ok(PythonRun {
        outcome: outcome.map_err(Error::refused)?,
        inputs: described,
    })
}

/// Inputs that were read.
#[derive(Default)]
struct Inputs {
    read: Vec<PythonInput>,
    bytes: u64,
}

impl Inputs {
    /// Reads an input.
    async fn fetch(
        &mut self,
        services: &Services,
        actor: &Actor,
        input: RequestedInput,
    ) -> Result<(), Error> {
        let RequestedInput { name, source } = input;
        let content = match source {
            InputSource::Query(query) => self.of_query(services, actor, query).await,
            InputSource::Series {
                table,
                parent_column,
                parents,
            } => {
                let queries = parents.into_iter().map(|parent| ReadSeries {
                    as_of: None,
                    table: table.clone(),
                    parent_column: parent_column.clone(),
                    parent,
                });
                self.of_series(services, actor, queries).await
            }
            InputSource::File(id) => self.of_file(services, actor, id).await,
        };
        // The model corrects the input that is named; among twenty it could not tell which one.
        let content = content.map_err(|error| named(error, &name))?;
        self.read.push(PythonInput { name, content });
        Ok(())
    }

    async fn of_query(
        &mut self,
        services: &Services,
        actor: &Actor,
        query: QueryData,
    ) -> Result<PythonContent, Error> {
        // The use case of queries, so that a snippet sees exactly what its caller may see.
        let result = query_data_within(services, actor, query, PYTHON_QUERY_LIMITS).await?;
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
        services: &Services,
        actor: &Actor,
        queries: impl Iterator<Item = ReadSeries>,
    ) -> Result<PythonContent, Error> {
        let (mut columns, mut rows) = (Vec::new(), Vec::new());
        for query in queries {
            let series = read_series(services, actor, query.clone()).await;
            let series = series.map_err(|error| match error {
                // Among hundreds of parents, the message has to name the missing one.
                Error::Refused(refusal) if refusal.kind == RefusalKind::NotFound => {
                    let message = format!("{refusal}: {} of {:?}", query.table, query.parent);
                    Refusal::invalid(refusal.code, message).into()
                }
                other => other,
            })?;
            if columns.is_empty() {
                // All series are of one table, so the first one has the columns of all.
                columns = columns_of(&series);
            }
            let added = rows_of(series.value);
            self.count(added.iter().map(String::len).sum())?;
            rows.extend(added);
        }
        Ok(PythonContent::Table { columns, rows })
    }

    async fn of_file(
        &mut self,
        services: &Services,
        actor: &Actor,
        id: FileId,
    ) -> Result<PythonContent, Error> {
        // Known before the bytes are fetched: a file of 500 MB must not be read to find it too large.
        let left = MAX_PYTHON_INPUT_BYTES.saturating_sub(self.bytes);
        let read = read_file(services, actor, id, left).await?;
        let (file, bytes) = read.ok_or_else(too_large)?;
        self.count(bytes.len())?;
        let file_name = file.path.file_name().to_owned();
        Ok(PythonContent::File { file_name, bytes })
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

    /// The inputs, for the model: the code may have failed because one is something else.
    fn described(&self) -> Vec<DescribedInput> {
        let inputs = self.read.iter().map(|input| DescribedInput {
            name: input.name.clone(),
            content: match &input.content {
                PythonContent::Table { columns, rows } => {
                    let columns = columns.iter().take(DESCRIBED_COLUMNS);
                    DescribedContent::Table {
                        rows: rows.len(),
                        columns: columns.map(|(name, _)| name.clone()).collect(),
                    }
                }
                PythonContent::File { file_name, bytes } => DescribedContent::File {
                    file_name: file_name.clone(),
                    bytes: bytes.len(),
                },
            },
        });
        inputs.collect()
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
    // As JSON, like the rows of queries: the harness in Python reads both in one way.
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
