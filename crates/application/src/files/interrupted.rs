//! Reading of a file by a thread that stops when its result is no longer needed.

use std::io::{self, Read, Seek, SeekFrom};

/// Source whose reads fail once `is_abandoned` returns true.
pub(crate) struct Interrupted<S, A> {
    source: S,
    is_abandoned: A,
}

impl<S, A: Fn() -> bool> Interrupted<S, A> {
    pub(crate) const fn new(source: S, is_abandoned: A) -> Self {
        Self {
            source,
            is_abandoned,
        }
    }
}

impl<S: Read, A: Fn() -> bool> Read for Interrupted<S, A> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // Threads cannot be cancelled from outside; an error of its source ends a reader.
        if (self.is_abandoned)() {
            return Err(io::Error::other("the caller has left"));
        }
        self.source.read(buffer)
    }
}

impl<S: Seek, A> Seek for Interrupted<S, A> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.source.seek(to)
    }
}
