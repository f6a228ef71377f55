//! Requests to the process of a snippet.

use std::io;

use labdata_domain::{
    agent::{AgentLimits, MAX_ATTACHMENT_BYTES, MAX_ATTACHMENTS, SHOWN_OUTPUT_PART},
    scalar::DataType,
};
use labdata_ports::agent::{PythonContent, PythonInput, PythonSnippet};
use labdata_sandbox::frames;
use serde::Serialize;
use serde_json::json;
use tokio::io::AsyncWrite;

/// Maximum number of pixels of a figure: one with four bytes each is drawn in a quarter of the memory.
const MAX_PIXELS: u64 = 40_000_000;

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Declared<'a> {
    Table {
        name: &'a str,
        columns: Vec<(&'a str, &'static str)>,
    },
    File {
        name: &'a str,
        file_name: &'a str,
    },
}

/// Sends a snippet with its inputs.
///
/// # Errors
/// If the process does not read them.
pub(crate) async fn send(
    output: &mut (impl AsyncWrite + Unpin),
    snippet: &PythonSnippet,
) -> io::Result<()> {
    let declared: Vec<Declared<'_>> = snippet.inputs.iter().map(declared).collect();
    let limits = AgentLimits::default();
    let request = json!({
        "code": snippet.code,
        "inputs": declared,
        "limits": {
            "figures": MAX_ATTACHMENTS,
            "figure_bytes": MAX_ATTACHMENT_BYTES,
            "all_figures_bytes": limits.attachment_bytes,
            "pixels": MAX_PIXELS,
            "output_part": SHOWN_OUTPUT_PART,
        },
    });
    // First the names, so that the program knows what each of the following frames is.
    frames::write(output, request.to_string().as_bytes()).await?;
    for input in &snippet.inputs {
        match &input.content {
            PythonContent::File { bytes, .. } => frames::write(output, bytes).await?,
            PythonContent::Table { rows, .. } => {
                // Rows are JSON texts already, so they are joined without being parsed.
                let body = format!("[{}]", rows.join(","));
                frames::write(output, body.as_bytes()).await?;
            }
        }
    }
    Ok(())
}

fn declared(input: &PythonInput) -> Declared<'_> {
    let name = input.name.as_str();
    match &input.content {
        PythonContent::File { file_name, .. } => Declared::File { name, file_name },
        PythonContent::Table { columns, .. } => {
            let columns = columns.iter();
            let columns =
                columns.map(|(column, kind): &(String, DataType)| (column.as_str(), kind.as_str()));
            Declared::Table {
                name,
                columns: columns.collect(),
            }
        }
    }
}
