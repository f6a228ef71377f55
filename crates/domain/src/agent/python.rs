//! Python snippets of the agent: their limits, and how they end.

use std::time::Duration;

use serde::{Deserialize, de::IgnoredAny};

use super::{
    AttachmentType,
    text::{end, start},
};

use crate::refusal::{ErrorCode, Refuse};

/// Time limit of a snippet.
pub const PYTHON_TIME_LIMIT: Duration = Duration::from_mins(2);

/// Memory of a snippet, in bytes.
pub const PYTHON_MEMORY: u64 = 1 << 30;

/// Total size of the files of a snippet, in bytes.
pub const PYTHON_SCRATCH: u64 = 256 << 20;

/// Maximum number of processes and threads of a snippet.
pub const PYTHON_PROCESSES: u32 = 64;

/// Maximum number of characters of a snippet.
pub const MAX_PYTHON_CODE: usize = 65_536;

/// Maximum number of inputs of a snippet.
pub const MAX_PYTHON_INPUTS: usize = 20;

/// Maximum number of bytes of all inputs of a snippet.
pub const MAX_PYTHON_INPUT_BYTES: u64 = 64 << 20;

/// Maximum number of bytes of the first and of the last part of a snippet's output that is displayed.
pub const SHOWN_OUTPUT_PART: usize = 4 << 10;

/// Maximum number of bytes of a traceback that is displayed.
pub const SHOWN_TRACEBACK: usize = 3 << 10;

/// Maximum number of bytes of the value of a snippet's last expression that is displayed.
pub const SHOWN_VALUE: usize = 4 << 10;

/// Maximum number of bytes of the standard error that is displayed.
pub const SHOWN_ERRORS: usize = 2 << 10;

/// Maximum number of characters of the name of an input.
const MAX_INPUT_NAME: usize = 64;

/// End of a snippet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PythonEnd {
    /// It ran to its end.
    Completed,
    /// It raised an exception; the traceback.
    Raised(String),
    /// It reached [`PYTHON_TIME_LIMIT`].
    TimedOut,
    /// It reached [`PYTHON_MEMORY`].
    Memory,
    /// It reached [`PYTHON_PROCESSES`].
    Processes,
    /// It reached [`PYTHON_SCRATCH`].
    Scratch,
    /// The disk of the server is almost full.
    DiskFull,
    /// Its process ended early, with that exit code or by that signal.
    Exited(String),
}

impl PythonEnd {
    /// Returns the reason of an early end, for the model; `None` if the snippet ran to its end.
    #[must_use]
    pub fn error(&self) -> Option<String> {
        Some(match self {
            Self::Completed => return None,
            // Mostly its end, where Python puts the error.
            Self::Raised(traceback) => excerpt(traceback, SHOWN_TRACEBACK / 4, SHOWN_TRACEBACK),
            Self::TimedOut => format!(
                "the snippet was ended after {} s, its time limit: compute less, or on fewer rows",
                PYTHON_TIME_LIMIT.as_secs()
            ),
            Self::Memory => format!(
                "the snippet needed more than {} MiB of memory, its limit: read fewer rows or columns, or \
                 aggregate in SQL",
                PYTHON_MEMORY >> 20
            ),
            Self::Processes => format!(
                "the snippet was ended because it had more than {PYTHON_PROCESSES} processes and threads"
            ),
            Self::Scratch => format!(
                "the snippet was ended because its files had more than {} MiB",
                PYTHON_SCRATCH >> 20
            ),
            Self::DiskFull => {
                "the snippet was ended because the disk of the server is almost full".to_owned()
            }
            Self::Exited(how) => format!("the snippet ended early: {how}"),
        })
    }
}

/// A figure that a snippet made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PythonFigure {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: AttachmentType,
    /// Its bytes, which begin as its type does.
    pub content: Vec<u8>,
}

impl PythonFigure {
    /// True if the bytes are of its type, as far as that can be reported without decoding an image.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        match self.kind {
            AttachmentType::Png => self.content.starts_with(b"\x89PNG\r\n\x1a\n"),
            // Only the shape: the console hands it to plotly.js, which checks the rest.
            AttachmentType::Plotly => serde_json::from_slice::<PlotlyFigure>(&self.content).is_ok(),
        }
    }
}

/// A Plotly figure, as far as it is checked.
#[derive(Deserialize)]
struct PlotlyFigure {
    #[serde(rename = "data")]
    _data: Vec<IgnoredAny>,
}

/// Standard output of a snippet: its start and its end, if it is long.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PythonOutput {
    /// Its first characters, at most [`SHOWN_OUTPUT_PART`] bytes.
    pub start: String,
    /// Its last characters, at most [`SHOWN_OUTPUT_PART`] bytes; empty if the start is all of it.
    pub end: String,
    /// Number of bytes between both.
    pub omitted: u64,
}

impl PythonOutput {
    /// Returns both parts with a note of how much is missing between them.
    #[must_use]
    pub fn display(&self) -> String {
        let (first, last) = (
            printable(start(&self.start, SHOWN_OUTPUT_PART)),
            printable(end(&self.end, SHOWN_OUTPUT_PART)),
        );
        if self.omitted == 0 {
            // Nothing is missing, so the two parts are one text.
            return first + &last;
        }
        format!("{first}\n[{} bytes are left out]\n{last}", self.omitted)
    }
}

/// Outcome of a snippet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PythonOutcome {
    /// Its end.
    pub end: PythonEnd,
    /// Its standard output.
    pub stdout: PythonOutput,
    /// Last lines of its standard error.
    pub stderr: String,
    /// Text of the value of its last expression.
    pub value: Option<String>,
    /// Its figures.
    pub figures: Vec<PythonFigure>,
    /// Why figures are missing, one sentence each.
    pub omitted_figures: Vec<String>,
}

impl PythonOutcome {
    /// Returns the last lines of standard error that are displayed.
    #[must_use]
    pub fn displayed_errors(&self) -> String {
        printable(end(&self.stderr, SHOWN_ERRORS))
    }

    /// Returns the value of the last expression as it is displayed.
    #[must_use]
    pub fn displayed_value(&self) -> Option<String> {
        let value = self.value.as_ref()?;
        Some(excerpt(value, SHOWN_VALUE / 2, SHOWN_VALUE))
    }
}

/// Why no snippet was run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PythonUnavailable {
    /// The packages are being installed.
    #[error(
        "Python is being prepared on this server, which takes some minutes at its first use; try again later"
    )]
    Preparing,
    /// The packages could not be installed.
    #[error(
        "the packages of run_python could not be installed: the package index cannot be reached, or has not \
         all of them; the log of the server has the details"
    )]
    NotInstalled,
    /// This server runs no scripts, for that reason.
    #[error("this server cannot run Python: {0}")]
    Unavailable(String),
    /// As many snippets run as may.
    #[error("other Python snippets are running; try again in a moment")]
    Busy,
}

impl Refuse for PythonUnavailable {
    fn code(&self) -> ErrorCode {
        ErrorCode::PythonUnavailable
    }
}

/// Refusal of the inputs of a snippet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPythonInput {
    /// The name cannot be used.
    #[error(
        "inputs[{0}].name: a name has up to {MAX_INPUT_NAME} letters, digits and underscores, and no other \
         input has it"
    )]
    Name(usize),
    /// It has no source, or several.
    #[error("inputs[{0}]: give exactly one of query, series and file_id")]
    Source(usize),
    /// All of them are too large.
    #[error(
        "the inputs have more than {} MiB together: select fewer rows or columns",
        MAX_PYTHON_INPUT_BYTES >> 20
    )]
    TooLarge,
}

impl Refuse for InvalidPythonInput {
    fn code(&self) -> ErrorCode {
        ErrorCode::InvalidPythonInput
    }
}

/// Checks the names of inputs.
///
/// # Errors
/// [`InvalidPythonInput::Name`] of the first one that is not a short word, or that another one has.
pub fn check_input_names(names: &[&str]) -> Result<(), InvalidPythonInput> {
    let is_word = |name: &str| {
        let mut letters = name.chars();
        let is_first = |first: char| first.is_ascii_alphabetic() || first == '_';
        letters.next().is_some_and(is_first)
            && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
            // Bytes are characters here, since all of them are ASCII.
            && name.len() <= MAX_INPUT_NAME
    };
    for (index, name) in names.iter().enumerate() {
        // At most `MAX_PYTHON_INPUTS` names: comparing each with those before it is cheap.
        if !is_word(name) || names.iter().take(index).any(|other| other == name) {
            return Err(InvalidPythonInput::Name(index));
        }
    }
    Ok(())
}

/// The text without control characters, which JSON would spell out.
fn printable(text: &str) -> String {
    let letters = text.chars().map(|letter| match letter {
        '\n' | '\t' => letter,
        _ if letter.is_control() => '\u{fffd}',
        _ => letter,
    });
    letters.collect()
}

/// The first `head` bytes and the last ones, if the text has more than `most` bytes.
fn excerpt(text: &str, head: usize, most: usize) -> String {
    if text.len() <= most {
        return printable(text);
    }
    let (first, last) = (start(text, head), end(text, most - head));
    format!("{}\n…\n{}", printable(first), printable(last))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_long_output_shows_its_start_and_its_end() {
        let mut output = PythonOutput {
            start: "first\u{7}\n".to_owned(),
            end: "last".to_owned(),
            omitted: 0,
        };
        assert_eq!(output.display(), "first\u{fffd}\nlast");
        output.omitted = 70;
        assert_eq!(
            output.display(),
            "first\u{fffd}\n\n[70 bytes are left out]\nlast"
        );
    }

    #[test]
    fn a_traceback_shows_where_it_began_and_the_exception() {
        let traceback = format!("Traceback\n{}ValueError: no", "  File\n".repeat(2_000));
        let displayed = PythonEnd::Raised(traceback).error().unwrap();
        assert!(displayed.starts_with("Traceback\n") && displayed.ends_with("ValueError: no"));
        assert!(
            displayed.len() < SHOWN_TRACEBACK + 10,
            "{}",
            displayed.len()
        );
        assert_eq!(PythonEnd::Completed.error(), None);
    }

    #[test]
    fn inputs_have_different_names_that_are_words() {
        assert_eq!(check_input_names(&["a", "_b2", "A"]), Ok(()));
        for (names, index) in [
            (vec!["a", "a"], 1),
            (vec![""], 0),
            (vec!["a", "2a"], 1),
            (vec!["ä"], 0),
            (vec!["../a"], 0),
        ] {
            let refusal = InvalidPythonInput::Name(index);
            assert_eq!(check_input_names(&names), Err(refusal), "{names:?}");
        }
        let long = "x".repeat(MAX_INPUT_NAME + 1);
        assert!(check_input_names(&[&long]).is_err());
    }

    #[test]
    fn figures_begin_as_their_type_does() {
        let figure = |kind, content: &[u8]| PythonFigure {
            name: "Figure 1".to_owned(),
            kind,
            content: content.to_vec(),
        };
        assert!(figure(AttachmentType::Png, b"\x89PNG\r\n\x1a\n...").is_valid());
        assert!(!figure(AttachmentType::Png, b"<svg>").is_valid());
        assert!(figure(AttachmentType::Plotly, b"{\"data\": [], \"layout\": {}}").is_valid());
        for text in ["[1]", "{", "{\"data\": 1}", "<html>"] {
            assert!(!figure(AttachmentType::Plotly, text.as_bytes()).is_valid());
        }
    }

    proptest! {
        #[test]
        fn any_text_is_shortened(text in "(?s).{0,200}", head in 0_usize..20, rest in 0_usize..20) {
            let displayed = excerpt(&text, head, head + rest);
            prop_assert!(displayed.chars().all(|letter| letter == '\n' || letter == '\t' || !letter.is_control()));
        }
    }
}
