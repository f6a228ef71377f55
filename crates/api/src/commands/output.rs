//! Output to the person who runs the program.

use std::io::Write;

/// Prints a line to standard output. Ignores errors: a closed pipe must not stop the server.
pub(crate) fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// Prints a line to standard error, prefixed with the program's name.
pub(crate) fn complain(text: &str) {
    let mut out = std::io::stderr().lock();
    let _ = writeln!(out, "labdata: {text}").and_then(|()| out.flush());
}
