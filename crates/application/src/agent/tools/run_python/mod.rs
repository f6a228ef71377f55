//! The tool `run_python`.

mod inputs;

use async_trait::async_trait;
use labdata_domain::{
    agent::{
        Attachment, MAX_PYTHON_CODE, MAX_PYTHON_INPUTS, PythonOutcome, ToolOutput,
        check_input_names,
    },
    ids::{ChatFileId, FileId},
};
use labdata_ports::{IdSource, agent::PythonSnippet};
use labdata_request_body::{
    fields::{optional, or, required},
    readers::{MaybeId, any, id, list, shape, text},
    shape,
};
use serde_json::{Map, Value, json};

use self::inputs::{Inputs, MAX_PARENTS};
use super::{
    Tool, ToolContext,
    tool::{arguments, failure, schema_of},
};
use crate::Error;

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

/// Runs Python on data of the platform.
pub(super) struct RunPython;

const NAME: &str = "run_python";

#[async_trait]
impl Tool for RunPython {
    fn name(&self) -> &'static str {
        NAME
    }

    fn description(&self) -> &'static str {
        "Runs Python with numpy, pandas, pyarrow, scipy, matplotlib and plotly. It has no network, no \
         credentials and no state of earlier calls: pass data as inputs, and write results with write_data. \
         Returns what it prints, the value of the last expression, and errors. The user sees matplotlib \
         figures that are open at the end and Plotly figures; you see their names only, so print the numbers \
         that you need. Limits: 120 s, 1 GiB of memory."
    }

    fn schema(&self) -> Map<String, Value> {
        schema_of::<RunPythonInput>()
    }

    fn needs_write(&self) -> bool {
        false
    }

    async fn call(&self, context: &ToolContext<'_>, input: Map<String, Value>) -> ToolOutput {
        let input = match arguments::<RunPythonInput>(NAME, &self.schema(), input) {
            Ok(input) => input,
            Err(refused) => return refused,
        };
        match run(context, input).await {
            Ok(output) => output,
            Err(error) => failure(NAME, &error),
        }
    }
}

async fn run(context: &ToolContext<'_>, input: RunPythonInput) -> Result<ToolOutput, Error> {
    let names: Vec<&str> = input.inputs.iter().map(|input| &*input.name).collect();
    check_input_names(&names).map_err(Error::refused)?;
    let mut inputs = Inputs::default();
    for (index, wanted) in input.inputs.into_iter().enumerate() {
        // One after the other: the limit of bytes is for all of them together.
        inputs.fetch(context, index, wanted).await?;
    }
    let described = inputs.described();
    let snippet = PythonSnippet {
        organization: context.actor.organization,
        code: input.code,
        inputs: inputs.into_contents(),
    };
    let outcome = context.ports.python.run(snippet).await;
    let outcome = outcome.map_err(Error::refused)?;
    Ok(output_of(&*context.ports.ids, outcome, described))
}

/// The output: a text for the model, and the figures.
fn output_of(ids: &dyn IdSource, outcome: PythonOutcome, inputs: Value) -> ToolOutput {
    let mut displayed = Map::new();
    let error = outcome.end.error();
    let is_error = error.is_some();
    let texts = [
        ("error", error),
        ("stdout", Some(outcome.stdout.display())),
        ("stderr", Some(outcome.displayed_errors())),
        ("value", outcome.displayed_value()),
    ];
    for (name, text) in texts {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            displayed.insert(name.to_owned(), text.into());
        }
    }
    let figures = outcome.figures.into_iter().map(|figure| {
        let id = ChatFileId::new(ids.next_id());
        Attachment::new(id, &figure.name, figure.kind, figure.content)
    });
    let figures: Vec<Attachment> = figures.collect();
    let names = figures.iter().map(|figure| {
        json!({
            "name": figure.name,
            "media_type": figure.kind.media_type(),
            "size": figure.size,
        })
    });
    displayed.insert("figures".to_owned(), names.collect());
    if !outcome.omitted_figures.is_empty() {
        let reasons = outcome.omitted_figures.into();
        displayed.insert("figures_left_out".to_owned(), reasons);
    }
    displayed.insert("inputs".to_owned(), inputs);
    let text = Value::Object(displayed).to_string();
    let output = if is_error {
        ToolOutput::error(text)
    } else {
        ToolOutput::result(text)
    };
    output.with_attachments(figures)
}
