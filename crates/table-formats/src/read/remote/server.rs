//! The reader's side.

use std::{
    io::{self, Read, Seek, SeekFrom, Write},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde::{Serialize, de::DeserializeOwned};

use super::{
    cells,
    frames::{self, Kind},
    messages::{Counts, Failure, Head, Preview, Request, Target, types_from_json},
};
use crate::read::{
    ImportTarget, ReadError, ReadOptions, ReadTable, head::Extent, preview::summarize, sought,
    table::open_extent,
};

/// Number of bytes that are asked for at least.
const READ_AHEAD: usize = 256 << 10;

/// Size of a frame of rows from which no row is added.
const ROWS_BYTES: usize = 256 << 10;

/// Reads the file that the platform asks for over these pipes. `confine` is called once the request is known,
/// before the first byte of the file.
///
/// # Errors
/// Those of the pipes, such as when the platform has exited.
pub fn serve(
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    confine: impl FnOnce() -> Result<(), String>,
) -> io::Result<()> {
    let mut link = Link {
        input: Box::new(input),
        output: Box::new(output),
    };
    let request: Request = link.receive_json(Kind::Request)?;
    // The pipes are all that the reader needs from here on. Without confinement no byte of the file is read.
    let confined = confine();
    let link = Arc::new(Mutex::new(link));
    let done = match confined {
        Err(reason) => Err(Failure::Internal(reason)),
        Ok(()) => respond(&link, &request).map_err(Failure::from),
    };
    match done {
        Ok(()) => Ok(()),
        Err(failure) => lock(&link).send_json(Kind::Failed, &failure),
    }
}

fn respond(link: &Arc<Mutex<Link>>, request: &Request) -> Result<(), ReadError> {
    // The platform renders options that it has read, so others come from no file.
    let options = ReadOptions::from_json(&request.options).map_err(|_| ReadError::Damaged)?;
    let source = RemoteSource {
        link: Arc::clone(link),
        length: request.length,
        position: 0,
        start: 0,
        bytes: Vec::new(),
    };
    let extent = match request.displayed_rows {
        Some(_) => Extent::HEAD,
        None => Extent::Whole,
    };
    let target = request.import_fields.clone().map(ImportTarget::new);
    let (source, target) = (Box::new(source), target.as_ref());
    let mut table = open_extent(source, &options, request.max_rows, extent, target)?;
    match request.displayed_rows {
        Some(displayed_rows) => {
            let preview = Preview::from(summarize(&mut table, displayed_rows)?);
            Ok(lock(link).send_json(Kind::Preview, &preview)?)
        }
        None => send_rows(link, &mut table),
    }
}

fn send_rows(link: &Mutex<Link>, table: &mut ReadTable) -> Result<(), ReadError> {
    let head = Head::new(
        table.reading(),
        table.columns(),
        table.doubts(),
        table.sheets(),
        table.row_count(),
    );
    lock(link).send_json(Kind::Head, &head)?;
    let target: Target = lock(link).receive_json(Kind::Target)?;
    if let Some(types) = target.types {
        table.read_as(&types_from_json(&types));
    }
    table.read_in(&target.units);
    let mut rows = Vec::new();
    while let Some(row) = table.next_row()? {
        cells::put_row(&row, &mut rows);
        // Checked after each row, as one alone may exceed a frame.
        if rows.len() > frames::MAX_FRAME {
            return Err(ReadError::TooLarge);
        }
        if rows.len() >= ROWS_BYTES {
            lock(link).send(Kind::Rows, &rows)?;
            rows.clear();
        }
    }
    let mut link = lock(link);
    link.send(Kind::Rows, &rows)?;
    let counts = Counts {
        null_text_numbers: table.reading().null_text_numbers,
        null_error_cells: table.reading().null_error_cells,
    };
    Ok(link.send_json(Kind::End, &counts)?)
}

fn lock(link: &Mutex<Link>) -> MutexGuard<'_, Link> {
    link.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The pipes to the platform.
struct Link {
    input: Box<dyn Read + Send>,
    output: Box<dyn Write + Send>,
}

impl Link {
    fn send(&mut self, kind: Kind, body: &[u8]) -> io::Result<()> {
        frames::write(&mut *self.output, kind, body)
    }

    fn send_json(&mut self, kind: Kind, message: &impl Serialize) -> io::Result<()> {
        self.send(kind, &serde_json::to_vec(message)?)
    }

    fn receive_json<T: DeserializeOwned>(&mut self, expected: Kind) -> io::Result<T> {
        let mut body = Vec::new();
        let kind = frames::read(&mut *self.input, &mut body)?;
        if kind != expected {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(serde_json::from_slice(&body)?)
    }

    /// Asks for bytes of the file.
    fn read_at(&mut self, offset: u64, length: usize, bytes: &mut Vec<u8>) -> io::Result<()> {
        let length = u64::try_from(length).unwrap_or(u64::MAX);
        let mut asked = offset.to_le_bytes().to_vec();
        asked.extend(length.to_le_bytes());
        self.send(Kind::ReadAt, &asked)?;
        match frames::read(&mut *self.input, bytes)? {
            Kind::Data => Ok(()),
            _ => Err(io::Error::other("the platform cannot read the file")),
        }
    }
}

/// The file, whose bytes the platform has.
struct RemoteSource {
    link: Arc<Mutex<Link>>,
    length: u64,
    position: u64,
    /// Position of `bytes`.
    start: u64,
    /// The bytes that came last.
    bytes: Vec<u8>,
}

impl RemoteSource {
    /// Bytes at the position that are at hand.
    fn at_hand(&self) -> &[u8] {
        let offset = self.position.checked_sub(self.start);
        let offset = offset.and_then(|offset| usize::try_from(offset).ok());
        offset
            .and_then(|offset| self.bytes.get(offset..))
            .unwrap_or_default()
    }
}

impl Read for RemoteSource {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() || self.position >= self.length {
            return Ok(0);
        }
        if self.at_hand().is_empty() {
            let length = buffer.len().clamp(READ_AHEAD, frames::MAX_FRAME / 4);
            // Before the bytes, some of which are there even if reading them fails.
            self.start = self.position;
            lock(&self.link).read_at(self.position, length, &mut self.bytes)?;
        }
        let ready = self.at_hand();
        let count = ready.len().min(buffer.len());
        if let (Some(into), Some(from)) = (buffer.get_mut(..count), ready.get(..count)) {
            into.copy_from_slice(from);
        }
        self.position += u64::try_from(count).unwrap_or(0);
        Ok(count)
    }
}

impl Seek for RemoteSource {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.position = sought(to, self.position, self.length)?;
        Ok(self.position)
    }
}
