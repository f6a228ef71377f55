//! The tool `run_python`.

use async_trait::async_trait;
use labdata_application::{
    Error,
    agent::{
        run_python::{
            DescribedContent, DescribedInput, InputSource, MAX_PARENTS, PythonRun, RequestedInput,
            RunPython, run_python,
        },
        tools::ToolContext,
    },
    data::query_data::QueryData,
};
use labdata_domain::{
    agent::{Attachment, InvalidPythonInput, MAX_PYTHON_CODE, MAX_PYTHON_INPUTS, ToolOutput},
    ids::{ChatFileId, FileId},
    refusal::Resource,
};
use labdata_ports::IdSource;
use labdata_request_body::{
    fields::{optional, or, required},
    output,
    readers::{MaybeId, any, id, list, shape, text},
    shape,
};
use serde_json::{Value, json};

use super::own::{OwnTool, ToolResult};
use crate::OrNotFound;

shape! {
    /// Arguments of `run_python`.
    pub(super) struct RunPythonInput {
        /// The code. The value of a last expression is returned, as in a notebook.
        code: String = required(text(1..=MAX_PYTHON_CODE)),
        /// Data for the code, which reads no other: items of the dictionary `inputs`.
        inputs: Vec<DataInput> = or(json!([]), list(shape::<DataInput>()).of(0..=MAX_PYTHON_INPUTS)),
    }
}

shape! {
    /// An input: exactly one of query, series and file_id.
    pub(super) struct DataInput {
        /// Its name: inputs["name"] is the pandas DataFrame of a query or of series, or the path of a file.
        name: String = required(text(1..)),
        /// One SELECT statement, as in query_data; up to 200,000 rows.
        query: Option<String> = optional(text(1..)),
        /// Values of the placeholders $1, $2, … in the query.
        params: Vec<Value> = or(json!([]), list(any())),
        /// Series of a raw table: one row per point, with the key of the parent in the column "parent".
        series: Option<SeriesInput> = optional(shape::<SeriesInput>()),
        /// Id of an uploaded file.
        file_id: Option<MaybeId<FileId>> = optional(id()),
    }
}

shape! {
    /// Series of one raw table.
    pub(super) struct SeriesInput {
        /// The raw table.
        table: String = required(text(..)),
        /// Primary keys of the rows that the series belong to.
        parents: Vec<String> = required(list(text(..)).of(1..=MAX_PARENTS)),
        /// The reference to these rows, where the table has several.
        parent_column: Option<String> = optional(text(..)),
    }
}

impl DataInput {
    /// The data that it asks for.
    fn requested(self, index: usize) -> Result<RequestedInput, Error> {
        let source = match (self.query, self.series, self.file_id) {
            (Some(sql), None, None) => InputSource::Query(QueryData {
                sql,
                params: self.params,
            }),
            (None, Some(series), None) => InputSource::Series {
                table: series.table,
                parent_column: series.parent_column,
                parents: series.parents,
            },
            (None, None, Some(id)) => InputSource::File(id.or_not_found(Resource::File)?),
            _ => return Err(Error::refused(InvalidPythonInput::Source(index))),
        };
        Ok(RequestedInput {
            name: self.name,
            source,
        })
    }
}

output! {
    /// Outcome of a snippet, for the model.
    struct PythonView {
        /// Why it failed.
        #[optional]
        error: Option<String>,
        /// Standard output.
        #[optional]
        stdout: Option<String>,
        /// The end of standard error.
        #[optional]
        stderr: Option<String>,
        /// Value of the last expression.
        #[optional]
        value: Option<String>,
        /// Figures, which only the user sees.
        figures: Vec<FigureView>,
        /// Why figures are missing.
        #[optional]
        figures_left_out: Option<Vec<String>>,
        /// The data that the code got.
        inputs: Vec<InputView>,
    }
}

output! {
    /// A figure.
    struct FigureView from figure: &Attachment {
        /// Its name.
        name: String = figure.name.clone(),
        /// Its type.
        media_type: &'static str = figure.kind.media_type(),
        /// Its size in bytes.
        size: u64 = figure.size,
    }
}

output! {
    /// Data of a snippet: rows, or a file.
    struct InputView {
        /// Its name.
        name: String,
        /// Number of rows.
        #[optional]
        rows: Option<usize>,
        /// Names of the first columns.
        #[optional]
        columns: Option<Vec<String>>,
        /// Name of the file.
        #[optional]
        file_name: Option<String>,
        /// Size of the file.
        #[optional]
        bytes: Option<usize>,
    }
}

impl From<DescribedInput> for InputView {
    fn from(input: DescribedInput) -> Self {
        let (rows, columns, file_name, bytes) = match input.content {
            DescribedContent::Table { rows, columns } => (Some(rows), Some(columns), None, None),
            DescribedContent::File { file_name, bytes } => {
                (None, None, Some(file_name), Some(bytes))
            }
        };
        Self {
            name: input.name,
            rows,
            columns,
            file_name,
            bytes,
        }
    }
}

/// Runs Python on data of the platform.
pub(super) struct RunPythonTool;

#[async_trait]
impl OwnTool for RunPythonTool {
    type Input = RunPythonInput;
    type Output = PythonResult;
    const NAME: &'static str = "run_python";
    const DESCRIPTION: &'static str = "Runs Python with numpy, pandas, pyarrow, scipy, matplotlib and plotly. It has no network, no \
         credentials and no state of earlier calls: pass data as inputs, and write results with write_data. \
         Returns what it prints, the value of the last expression, and errors. The user sees matplotlib \
         figures that are open at the end and Plotly figures; you see their names only, so print the numbers \
         that you need. Limits: 120 s, 1 GiB of memory.";

    async fn run(
        &self,
        context: &ToolContext<'_>,
        input: RunPythonInput,
    ) -> Result<PythonResult, Error> {
        let inputs = input.inputs.into_iter().enumerate();
        let inputs = inputs.map(|(index, input)| input.requested(index));
        let command = RunPython {
            code: input.code,
            inputs: inputs.collect::<Result<_, _>>()?,
        };
        let run = run_python(context.services, context.actor, command).await?;
        Ok(PythonResult::of(&*context.services.ids, run))
    }
}

/// Outcome of a snippet: a text for the model, and figures for the user.
pub(super) struct PythonResult {
    view: PythonView,
    is_error: bool,
    figures: Vec<Attachment>,
}

impl PythonResult {
    fn of(ids: &dyn IdSource, run: PythonRun) -> Self {
        let outcome = run.outcome;
        let (stdout, stderr) = (outcome.stdout.display(), outcome.displayed_errors());
        let (error, value) = (outcome.end.error(), outcome.displayed_value());
        let figures = outcome.figures.into_iter().map(|figure| {
            let id = ChatFileId::new(ids.next_id());
            Attachment::new(id, &figure.name, figure.kind, figure.content)
        });
        let figures: Vec<Attachment> = figures.collect();
        let present = |text: String| Some(text).filter(|text| !text.is_empty());
        let is_error = error.is_some();
        let view = PythonView {
            error: error.and_then(present),
            stdout: present(stdout),
            stderr: present(stderr),
            value: value.and_then(present),
            figures: figures.iter().map(Into::into).collect(),
            figures_left_out: Some(outcome.omitted_figures).filter(|reasons| !reasons.is_empty()),
            inputs: run.inputs.into_iter().map(Into::into).collect(),
        };
        Self {
            view,
            is_error,
            figures,
        }
    }
}

impl ToolResult for PythonResult {
    fn output(self) -> serde_json::Result<ToolOutput> {
        let text = serde_json::to_string(&self.view)?;
        let output = if self.is_error {
            ToolOutput::error(text)
        } else {
            ToolOutput::result(text)
        };
        Ok(output.with_attachments(self.figures))
    }
}
