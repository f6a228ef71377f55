//! Python snippets, in a sandbox.

use std::fmt;

use async_trait::async_trait;
use bytes::Bytes;
use labdata_domain::{
    agent::{PythonOutcome, PythonUnavailable},
    ids::OrganizationId,
    scalar::DataType,
};

/// A snippet to run.
#[derive(Clone)]
pub struct PythonSnippet {
    /// The organization whose data the inputs are.
    pub organization: OrganizationId,
    /// The code.
    pub code: String,
    /// Its inputs: the items of the dictionary `inputs`.
    pub inputs: Vec<PythonInput>,
}

impl fmt::Debug for PythonSnippet {
    /// Without code and inputs, which hold data of the organization.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PythonSnippet")
            .field("organization", &self.organization)
            .field("inputs", &self.inputs.len())
            .finish_non_exhaustive()
    }
}

/// An input of a snippet.
#[derive(Clone, Debug, PartialEq)]
pub struct PythonInput {
    /// Its name, unique in the snippet.
    pub name: String,
    /// Its content.
    pub content: PythonContent,
}

/// Content of an input.
#[derive(Clone, Debug, PartialEq)]
pub enum PythonContent {
    /// Rows, which become a `DataFrame` of pandas.
    Table {
        /// The columns; a name may occur twice.
        columns: Vec<(String, DataType)>,
        /// Each row as the text of a JSON array with one value per column.
        rows: Vec<String>,
    },
    /// A file, which becomes a path.
    File {
        /// Its name, without directories.
        file_name: String,
        /// Its bytes.
        bytes: Bytes,
    },
}

/// Runs Python snippets.
#[async_trait]
pub trait PythonSandbox: Send + Sync {
    /// Runs a snippet to its end.
    ///
    /// An implementation MUST
    /// - isolate the snippet: it reaches no network, no credentials, no file but its inputs, its scratch
    ///   directory and the Python installation, and no other process;
    /// - leave nothing of it behind, neither files nor processes, also when the future is dropped, which
    ///   ends it, and when this program is killed;
    /// - hold [`PYTHON_TIME_LIMIT`](labdata_domain::agent::PYTHON_TIME_LIMIT),
    ///   [`PYTHON_MEMORY`](labdata_domain::agent::PYTHON_MEMORY),
    ///   [`PYTHON_SCRATCH`](labdata_domain::agent::PYTHON_SCRATCH) and
    ///   [`PYTHON_PROCESSES`](labdata_domain::agent::PYTHON_PROCESSES);
    /// - return at most [`MAX_ATTACHMENTS`](labdata_domain::agent::MAX_ATTACHMENTS) figures of at most
    ///   [`MAX_ATTACHMENT_BYTES`](labdata_domain::agent::MAX_ATTACHMENT_BYTES) each, all of them
    ///   [valid](labdata_domain::agent::PythonFigure::is_valid), and a bounded part of every text;
    /// - bound the number of snippets that run at once, so that no organization takes all of them.
    ///
    /// # Errors
    /// [`PythonUnavailable`]; nothing was run then.
    async fn run(&self, snippet: PythonSnippet) -> Result<PythonOutcome, PythonUnavailable>;
}
