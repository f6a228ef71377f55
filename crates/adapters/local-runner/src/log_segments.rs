//! The log of a run: segments of [`LOG_KEPT`] bytes each, of which the first and the last two are
//! kept, so that a flood of output takes 15 MiB of disk at the most.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    os::fd::OwnedFd,
    path::Path,
};

use bytes::Bytes;
use labdata_ports::runner::{LOG_KEPT, LOG_PIECE, LogPiece};
use nix::{
    fcntl::{OFlag, openat},
    sys::stat::Mode,
    unistd::{UnlinkatFlags, unlinkat},
};

fn name(segment: u64) -> String {
    format!("segment-{segment}")
}

/// Writes a log. It holds its directory open, so it goes on where that has no path any more.
#[derive(Debug)]
pub(crate) struct Writer {
    directory: OwnedFd,
    segment: Option<(u64, File)>,
    length: u64,
}

impl Writer {
    /// Goes on with the log of that length.
    pub(crate) fn open(directory: &Path, length: u64) -> io::Result<Self> {
        Ok(Self {
            directory: File::open(directory)?.into(),
            segment: None,
            length,
        })
    }

    /// How many bytes were written in all.
    pub(crate) const fn length(&self) -> u64 {
        self.length
    }

    /// Appends the bytes. What a full disk does not take is left out.
    pub(crate) fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let number = self.length / LOG_KEPT;
            let room = usize::try_from(LOG_KEPT - self.length % LOG_KEPT).unwrap_or(usize::MAX);
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
            // The first stays, and the one before this.
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

/// Reads a log of that length from an offset on: from the next byte that is still there.
pub(crate) fn read(directory: &Path, length: u64, offset: u64) -> io::Result<LogPiece> {
    let mut at = offset;
    while at < length {
        let file = match OpenOptions::new()
            .read(true)
            .open(directory.join(name(at / LOG_KEPT)))
        {
            Ok(file) => file,
            // Dropped; the next may be there.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                at = (at / LOG_KEPT + 1) * LOG_KEPT;
                continue;
            }
            Err(error) => return Err(error),
        };
        let bytes = read_segment(file, at % LOG_KEPT, length - at)?;
        if !bytes.is_empty() {
            return Ok(LogPiece { offset: at, bytes });
        }
        at = (at / LOG_KEPT + 1) * LOG_KEPT;
    }
    Ok(LogPiece {
        offset,
        bytes: Bytes::new(),
    })
}

fn read_segment(mut file: File, from: u64, known: u64) -> io::Result<Bytes> {
    file.seek(SeekFrom::Start(from))?;
    let most = known.min(u64::try_from(LOG_PIECE).unwrap_or(u64::MAX));
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_the_last_bytes_stay_and_the_disk_is_bounded() {
        let directory = tempfile::tempdir().unwrap();
        let mut writer = Writer::open(directory.path(), 0).unwrap();
        let length = 8 * LOG_KEPT + 1000;
        let block: Vec<u8> = (0..=249).collect();
        while writer.length() < length {
            writer.write(&block).unwrap();
        }
        let length = writer.length();
        let on_disk: u64 = std::fs::read_dir(directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().metadata().unwrap().len())
            .sum();
        assert!(on_disk <= 3 * LOG_KEPT, "{on_disk}");

        let (mut at, mut seen, mut gaps) = (0, 0, 0);
        loop {
            let piece = read(directory.path(), length, at).unwrap();
            if piece.bytes.is_empty() {
                break;
            }
            gaps += u32::from(piece.offset != at);
            for (byte, place) in piece.bytes.iter().zip(piece.offset..) {
                assert_eq!(u64::from(*byte), place % 250);
            }
            let count = u64::try_from(piece.bytes.len()).unwrap();
            seen += count;
            at = piece.offset + count;
        }
        assert_eq!((at, gaps), (length, 1));
        assert!(seen >= 2 * LOG_KEPT);
        let last = read(directory.path(), length, length - LOG_KEPT).unwrap();
        assert_eq!(
            last.offset,
            length - LOG_KEPT,
            "nothing of the end is left out"
        );
    }

    #[test]
    fn a_log_goes_on_where_another_writer_stopped() {
        let directory = tempfile::tempdir().unwrap();
        Writer::open(directory.path(), 0)
            .unwrap()
            .write(b"one ")
            .unwrap();
        Writer::open(directory.path(), 4)
            .unwrap()
            .write(b"two")
            .unwrap();
        let piece = read(directory.path(), 7, 2).unwrap();
        assert_eq!((piece.offset, &*piece.bytes), (2, &b"e two"[..]));
    }
}
