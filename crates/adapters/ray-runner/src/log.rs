//! Log of a job: the markers of `entry.py`, and the script's output between them.

use std::borrow::Cow;

use labdata_ports::work::runner::{EndReason, LOG_PIECE, LogChunk, RunExit, ScriptEnd};
use serde::Deserialize;

/// Parsed log.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Log {
    /// True once the script has started, after its dependencies were installed.
    pub(crate) started: bool,
    /// End of the run.
    pub(crate) end: Option<ScriptEnd>,
    /// Chunks of the output, with their offsets.
    chunks: Vec<(u64, String)>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Marker {
    Begun(()),
    Started(()),
    LeftOut(u64),
    Ended(Ended),
}

#[derive(Deserialize)]
struct Ended {
    reason: Reason,
    exit: Option<Exit>,
    tail: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Reason {
    Exited,
    PreparationFailed,
    KeyNotReceived,
    TimedOut,
    Memory,
    Cancelled,
    Lost,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Exit {
    Code(i32),
    Signal(i32),
}

impl Log {
    /// Parses the log of the job of that id.
    pub(crate) fn parse(id: &str, text: &str) -> Self {
        // With the id: a script that prints this kind of line by accident does not end its own log.
        let separator = format!("\u{1e}labdata {id} ");
        let mut log = Self::default();
        // The text before the first marker is Ray's.
        let mut parts = text.split(&*separator).skip(1).peekable();
        while let Some(part) = parts.next() {
            // A marker without its line's end is still being written.
            let Some((marker, output)) = part.split_once('\n') else {
                break;
            };
            match serde_json::from_str(marker) {
                // A marker of a later version, or a script's own text: the output after it still counts.
                Ok(Marker::Begun(())) | Err(_) => {}
                Ok(Marker::Started(())) => log.started = true,
                Ok(Marker::LeftOut(bytes)) => {
                    // Offsets continue behind the omitted part, so that readers resume where they were.
                    let at = log.length() + bytes;
                    log.chunks.push((at, String::new()));
                }
                Ok(Marker::Ended(ended)) => {
                    log.end = Some(ended.into());
                    break;
                }
            }
            // A growing log may end with half a character, or half a marker.
            let output = if parts.peek().is_none() {
                let whole = output.split('\u{1e}').next().unwrap_or_default();
                whole.trim_end_matches('\u{fffd}')
            } else {
                output
            };
            log.push(&without_line_of_ray(id, output));
        }
        log
    }

    fn push(&mut self, output: &str) {
        match self.chunks.last_mut() {
            Some((_, text)) => text.push_str(output),
            None => self.chunks.push((0, output.to_owned())),
        }
    }

    /// Returns the length of the output, including the omitted part.
    pub(crate) fn length(&self) -> u64 {
        self.chunks.last().map_or(0, |(at, text)| at + size(text))
    }

    /// Returns a chunk of the output, from the first retained byte at or after that offset.
    pub(crate) fn read(&self, offset: u64) -> LogChunk {
        for (at, text) in &self.chunks {
            if offset < at + size(text) {
                // An offset within the omitted part continues behind it.
                let from = usize::try_from(offset.saturating_sub(*at)).unwrap_or(usize::MAX);
                let rest = text.as_bytes().get(from..).unwrap_or_default();
                let chunk = rest.get(..LOG_PIECE).unwrap_or(rest);
                return LogChunk {
                    offset: offset.max(*at),
                    bytes: chunk.to_vec().into(),
                };
            }
        }
        LogChunk {
            offset,
            bytes: Vec::new().into(),
        }
    }
}

fn size(text: &str) -> u64 {
    u64::try_from(text.len()).unwrap_or(u64::MAX)
}

/// Leaves out the line with which Ray names the job's command. Another process of Ray writes it, so under
/// load it comes behind the first marker.
fn without_line_of_ray<'o>(id: &str, output: &'o str) -> Cow<'o, str> {
    let start = format!("Running entrypoint for job {id}: ");
    match output.split_once(&*start) {
        Some((before, line)) if before.is_empty() || before.ends_with('\n') => {
            let after = line.split_once('\n').map_or("", |(_, after)| after);
            Cow::Owned(format!("{before}{after}"))
        }
        _ => Cow::Borrowed(output),
    }
}

impl From<Ended> for ScriptEnd {
    fn from(ended: Ended) -> Self {
        Self {
            reason: match ended.reason {
                Reason::Exited => EndReason::Exited,
                Reason::PreparationFailed => EndReason::PreparationFailed,
                Reason::KeyNotReceived => EndReason::KeyNotReceived,
                Reason::TimedOut => EndReason::TimedOut,
                Reason::Memory => EndReason::Memory,
                Reason::Cancelled => EndReason::Cancelled,
                Reason::Lost => EndReason::Lost,
            },
            exit: ended.exit.map(|exit| match exit {
                Exit::Code(code) => RunExit::Code(code),
                Exit::Signal(signal) => RunExit::Signal(signal),
            }),
            error_tail: ended.tail,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "2026 INFO Runtime env is setting up.\n\u{1e}labdata j {\"begun\": null}\n";

    #[test]
    fn a_line_of_ray_behind_the_first_marker_is_no_output() {
        let line = "Running entrypoint for job j: exec python3";
        for (text, output) in [
            (format!("{line}\nrunning\n"), "running\n"),
            (format!("running\n{line}\n"), "running\n"),
            (line.to_owned(), ""),
            (
                "Running entrypoint for job k: x\n".to_owned(),
                "Running entrypoint for job k: x\n",
            ),
        ] {
            let log = Log::parse("j", &format!("{HEAD}{text}"));
            assert_eq!(&*log.read(0).bytes, output.as_bytes(), "{text:?}");
        }
    }

    #[test]
    fn the_output_is_between_the_markers() {
        let text = format!(
            "{HEAD}Installed\n\u{1e}labdata j {{\"started\": null}}\nno newline\u{1e}labdata j \
             {{\"ended\": {{\"reason\": \"exited\", \"exit\": {{\"code\": 7}}, \"tail\": \"e\"}}}}\n"
        );
        let log = Log::parse("j", &text);
        assert!(log.started);
        let end = log.end.clone().unwrap();
        assert_eq!(
            (end.reason, end.exit, &*end.error_tail),
            (EndReason::Exited, Some(RunExit::Code(7)), "e")
        );
        assert_eq!(&*log.read(0).bytes, b"Installed\nno newline");
        assert_eq!(&*log.read(15).bytes, b"wline");
        assert_eq!(log.length(), 20);
    }

    #[test]
    fn omitted_output_is_a_gap() {
        let text = format!("{HEAD}abc\u{1e}labdata j {{\"left_out\": 100}}\nxyz");
        let log = Log::parse("j", &text);
        assert_eq!(log.length(), 106);
        assert_eq!(
            (log.read(3).offset, &*log.read(3).bytes),
            (103, &b"xyz"[..])
        );
        assert_eq!(&*log.read(104).bytes, b"yz");
    }

    #[test]
    fn half_written_characters_and_markers_are_hidden() {
        for half in ["\u{1e}labd", "\u{1e}labdata j {\"ended\": {", "\u{fffd}"] {
            let log = Log::parse("j", &format!("{HEAD}abc{half}"));
            assert_eq!((log.length(), log.end), (3, None), "{half:?}");
        }
    }

    #[test]
    fn the_text_before_the_first_marker_is_ignored() {
        let log = Log::parse("j", "2026 INFO Runtime env is setting up.\n");
        assert_eq!(log, Log::default());
    }
}
