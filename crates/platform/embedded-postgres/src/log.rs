//! Log of the server: at most two files of bounded size.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Size at which the log is renamed to `….log.1`, replacing the previous one.
const LIMIT: u64 = 4 * 1024 * 1024;

/// Maximum excerpt of a log or of a program's output in an error message, in bytes.
const EXCERPT: usize = 1500;

/// Time that a failed start waits for the last lines of the log.
const DRAIN: Duration = Duration::from_secs(1);

/// Thread that writes the server's output to the bounded log, until the server has ended.
#[derive(Debug)]
pub(crate) struct LogPump {
    done: mpsc::Receiver<()>,
    path: PathBuf,
}

impl LogPump {
    /// Starts copying the server's standard error to the file.
    pub(crate) fn start(source: impl Read + Send + 'static, path: &Path) -> io::Result<Self> {
        let (sender, done) = mpsc::channel();
        let target = path.to_owned();
        thread::Builder::new()
            .name("labdata-pg-log".to_owned())
            .spawn(move || {
                if let Err(error) = copy(source, &target, LIMIT) {
                    tracing::warn!(%error, log = %target.display(), "PostgreSQL's log ends");
                }
                drop(sender);
            })?;
        Ok(Self {
            done,
            path: path.to_owned(),
        })
    }

    /// Returns the last lines of the log, after the server has ended.
    pub(crate) fn tail(&self) -> String {
        // A timeout is fine: orphans may hold the pipe.
        let _ = self.done.recv_timeout(DRAIN);
        last_lines(&fs::read(&self.path).unwrap_or_default())
    }
}

/// Copies to the end of the source. A full disk loses lines, but never blocks the server.
fn copy(mut source: impl Read, path: &Path, limit: u64) -> io::Result<()> {
    let mut file = open(path)?;
    let mut size = file.metadata()?.len();
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let count = match source.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if size >= limit && fs::rename(path, path.with_extension("log.1")).is_ok() {
            match open(path) {
                Ok(fresh) => (file, size) = (fresh, 0),
                Err(error) => tracing::warn!(%error, "cannot open PostgreSQL's next log"),
            }
        }
        let chunk = buffer.get(..count).unwrap_or_default();
        // Lines that do not fit on a full disk are lost. The pipe has to be read on, because
        // PostgreSQL would wait for room in it.
        if file.write_all(chunk).is_ok() {
            size = size.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)
}

/// The end of a text, as far as it is worth repeating in an error message.
pub(crate) fn last_lines(bytes: &[u8]) -> String {
    let tail = bytes
        .get(bytes.len().saturating_sub(EXCERPT)..)
        .unwrap_or_default();
    let text = String::from_utf8_lossy(tail);
    // The cut may be in the middle of a line, or of a character.
    let whole = if tail.len() < bytes.len() {
        text.split_once('\n').map_or(&*text, |(_, rest)| rest)
    } else {
        &text
    };
    whole.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_bounded_to_two_files() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = directory.path().join("postgres.log");
        for round in 0..10 {
            let text = format!("round {round}\n").repeat(10);
            copy(text.as_bytes(), &path, 150).expect("copied");
        }
        let files = fs::read_dir(directory.path()).expect("directory").flatten();
        let sizes: Vec<u64> = files
            .map(|file| file.metadata().expect("file").len())
            .collect();
        assert_eq!(sizes.len(), 2);
        assert!(sizes.iter().all(|size| *size < 300), "{sizes:?}");
        let newest = fs::read_to_string(&path).expect("log");
        assert!(newest.ends_with("round 9\n"));
    }

    #[test]
    fn an_excerpt_begins_with_a_whole_line() {
        assert_eq!(last_lines(b" one\ntwo \n"), "one\ntwo");
        let long = "0123456789\n".repeat(1000);
        assert!(last_lines(long.as_bytes()).starts_with("0123456789\n"));
    }
}
