//! What the program says to the person who called it.

use std::io::Write;

/// Prints to standard output. A reader who has gone is no reason to stop.
pub(crate) fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// Prints to standard error, under the program's name.
pub(crate) fn complain(text: &str) {
    let mut out = std::io::stderr().lock();
    let _ = writeln!(out, "labdata: {text}").and_then(|()| out.flush());
}
