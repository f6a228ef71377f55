//! The way of bytes from the thread that writes them to the storage.

use bytes::Bytes;
use futures::{
    SinkExt, StreamExt,
    channel::mpsc::{Receiver, Sender},
    executor::block_on,
    stream,
};
use labdata_ports::files::blob::{BodyBroken, ByteStream};

use super::table::SnapshotError;

/// Maximum size of a chunk in bytes.
const PIECE_BYTES: usize = 1 << 20;

/// Part of a body.
pub(super) enum Chunk {
    Bytes(Bytes),
    /// The body is whole.
    End,
}

/// Takes the bytes of an object. Blocks the thread while the storage is slower.
pub(in crate::models) struct Outlet(Sender<Chunk>);

impl Outlet {
    pub(super) const fn new(chunks: Sender<Chunk>) -> Self {
        Self(chunks)
    }

    pub(super) fn send(&mut self, bytes: Vec<u8>) -> Result<(), SnapshotError> {
        let mut bytes = Bytes::from(bytes);
        while !bytes.is_empty() {
            // Bounds the memory of what waits in the channel.
            let chunk = bytes.split_to(bytes.len().min(PIECE_BYTES));
            self.put(Chunk::Bytes(chunk))?;
        }
        Ok(())
    }

    pub(super) fn end(&mut self) -> Result<(), SnapshotError> {
        self.put(Chunk::End)
    }

    fn put(&mut self, chunk: Chunk) -> Result<(), SnapshotError> {
        block_on(self.0.send(chunk)).map_err(|_| SnapshotError::Abandoned)
    }
}

/// The chunks as a body, which breaks off unless they end as they should.
pub(super) fn body_of(chunks: Receiver<Chunk>) -> ByteStream {
    stream::unfold(Some(chunks), |chunks| async {
        let mut chunks = chunks?;
        match chunks.next().await {
            Some(Chunk::Bytes(bytes)) => Some((Ok(bytes), Some(chunks))),
            Some(Chunk::End) => None,
            // Without the mark of its end, a failed writer would leave a short object that looks complete.
            None => Some((Err(BodyBroken("its writer stopped".to_owned())), None)),
        }
    })
    .boxed()
}
