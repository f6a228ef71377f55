//! Log of a workspace: segments of [`LOG_SEGMENT_BYTES`], of which the first and the last two are
//! retained. A log takes at most 15 MiB of disk, however long it is.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    os::fd::OwnedFd,
    path::Path,
};

use nix::{
    fcntl::{OFlag, openat},
    sys::stat::Mode,
    unistd::{UnlinkatFlags, unlinkat},
};

/// Length of a log segment, in bytes. At least this much of the beginning and of the end of a log can
/// be read.
pub const LOG_SEGMENT_BYTES: u64 = 5 << 20;

/// Consecutive bytes of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSlice {
    /// Offset of the first byte. Greater than the requested offset if bytes there were dropped.
    pub offset: u64,
    /// Bytes; empty at the end of the log.
    pub bytes: Vec<u8>,
}

fn name(segment: u64) -> String {
    format!("segment-{segment}")
}

/// Writer of a log. It holds the directory open, so it works after the path has become invisible.
#[derive(Debug)]
pub(crate) struct Writer {
    directory: OwnedFd,
    segment: Option<(u64, File)>,
    length: u64,
}

impl Writer {
    /// Opens the log of that length for appending.
    pub(crate) fn open(directory: &Path, length: u64) -> io::Result<Self> {
        Ok(Self {
            directory: File::open(directory)?.into(),
            segment: None,
            length,
        })
    }

    /// Returns the length of the log, dropped segments included.
    pub(crate) const fn length(&self) -> u64 {
        self.length
    }

    /// Appends the bytes. Those that do not fit on a full disk are lost.
    pub(crate) fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let number = self.length / LOG_SEGMENT_BYTES;
            let room = usize::try_from(LOG_SEGMENT_BYTES - self.length % LOG_SEGMENT_BYTES)
                .unwrap_or(usize::MAX);
            let (now, later) = bytes.split_at(bytes.len().min(room));
            self.file(number)?.write_all(now)?;
            self.length += u64::try_from(now.len()).unwrap_or_default();
            bytes = later;
        }
        Ok(())
    }

    fn file(&mut self, number: u64) -> io::Result<&mut File> {
        let old = self.segment.take_if(|(open, _)| *open != number);
        if old.is_some() && number > 2 {
            // Retains the first segment and the previous one.
            let dropped = name(number - 2);
            unlinkat(&self.directory, &*dropped, UnlinkatFlags::NoRemoveDir)?;
        }
        if self.segment.is_none() {
            let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_APPEND | OFlag::O_CLOEXEC;
            let mode = Mode::S_IRUSR | Mode::S_IWUSR;
            let file = openat(&self.directory, &*name(number), flags, mode)?;
            self.segment = Some((number, file.into()));
        }
        match &mut self.segment {
            Some((_, file)) => Ok(file),
            None => Err(io::Error::other("no segment")),
        }
    }
}

/// Reads at most `max_bytes` of a log of that length, from the first retained byte at or after
/// `offset`.
pub(crate) fn read(
    directory: &Path,
    length: u64,
    offset: u64,
    max_bytes: usize,
) -> io::Result<LogSlice> {
    let mut at = offset;
    while at < length {
        let file = match OpenOptions::new()
            .read(true)
            .open(directory.join(name(at / LOG_SEGMENT_BYTES)))
        {
            Ok(file) => file,
            // Dropped; the next segment may exist.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                at = (at / LOG_SEGMENT_BYTES + 1) * LOG_SEGMENT_BYTES;
                continue;
            }
            Err(error) => return Err(error),
        };
        let bytes = read_segment(file, at % LOG_SEGMENT_BYTES, length - at, max_bytes)?;
        if !bytes.is_empty() {
            return Ok(LogSlice { offset: at, bytes });
        }
        at = (at / LOG_SEGMENT_BYTES + 1) * LOG_SEGMENT_BYTES;
    }
    Ok(LogSlice {
        offset,
        bytes: Vec::new(),
    })
}

fn read_segment(mut file: File, from: u64, length: u64, max_bytes: usize) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(from))?;
    let limit = length.min(u64::try_from(max_bytes).unwrap_or(u64::MAX));
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_the_last_bytes_stay_and_the_disk_is_bounded() {
        let directory = tempfile::tempdir().unwrap();
        let mut writer = Writer::open(directory.path(), 0).unwrap();
        let length = 8 * LOG_SEGMENT_BYTES + 1000;
        let block: Vec<u8> = (0..=249).collect();
        while writer.length() < length {
            writer.write(&block).unwrap();
        }
        let length = writer.length();
        let on_disk: u64 = std::fs::read_dir(directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().metadata().unwrap().len())
            .sum();
        assert!(on_disk <= 3 * LOG_SEGMENT_BYTES, "{on_disk}");

        let (mut at, mut seen, mut gaps) = (0, 0, 0);
        loop {
            let chunk = read(directory.path(), length, at, 1 << 20).unwrap();
            if chunk.bytes.is_empty() {
                break;
            }
            gaps += u32::from(chunk.offset != at);
            for (byte, place) in chunk.bytes.iter().zip(chunk.offset..) {
                assert_eq!(u64::from(*byte), place % 250);
            }
            let count = u64::try_from(chunk.bytes.len()).unwrap();
            seen += count;
            at = chunk.offset + count;
        }
        assert_eq!((at, gaps), (length, 1));
        assert!(seen >= 2 * LOG_SEGMENT_BYTES);
        let last = read(directory.path(), length, length - LOG_SEGMENT_BYTES, 10).unwrap();
        assert_eq!(
            last.offset,
            length - LOG_SEGMENT_BYTES,
            "the end is complete"
        );
    }

    #[test]
    fn a_log_continues_where_another_writer_stopped() {
        let directory = tempfile::tempdir().unwrap();
        Writer::open(directory.path(), 0)
            .unwrap()
            .write(b"one ")
            .unwrap();
        Writer::open(directory.path(), 4)
            .unwrap()
            .write(b"two")
            .unwrap();
        let chunk = read(directory.path(), 7, 2, 10).unwrap();
        assert_eq!((chunk.offset, &*chunk.bytes), (2, &b"e two"[..]));
    }
}
