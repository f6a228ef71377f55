//! The platform's side.

use std::{
    io::{self, Read, SeekFrom, Write},
    mem,
};

use bytes::Buf as _;
use labdata_domain::{
    data::write::FileCell,
    scalar::{DataType, Values},
};
use serde::{Serialize, de::DeserializeOwned};

use super::{
    cells,
    frames::{self, Kind},
    messages::{Counts, Failure, Head, Preview, Request, TableHead, Target, types_to_json},
};
use crate::read::{
    Doubt, ImportTarget, ReadColumn, ReadError, ReadOptions, Reading, Sheet, Source, TableRow,
    doubt,
    parts::{RowReader, next_part},
    preview::TableSummary,
};

/// Connection to a reader that was started.
pub struct Connection {
    /// Its input.
    pub input: Box<dyn Write + Send>,
    /// Its output.
    pub output: Box<dyn Read + Send>,
    /// Why the reader has ended; called when the connection breaks.
    pub explain: Box<dyn Fn() -> ReadError + Send>,
}

/// Begins to read the table of a file with that reader. See [`open_table`](crate::read::open_table).
///
/// # Errors
/// [`ReadError`] if it is no table, or has more than `max_rows` rows; what the connection says if the reader
/// has ended.
pub fn open_remote(
    connection: Connection,
    source: Box<dyn Source>,
    options: &ReadOptions,
    max_rows: usize,
) -> Result<RemoteTable, ReadError> {
    open(connection, source, Request::new(options, max_rows))
}

/// Begins to read the table of a file with that reader, for an import into a table.
///
/// # Errors
/// See [`open_remote`].
pub fn open_remote_import(
    connection: Connection,
    source: Box<dyn Source>,
    options: &ReadOptions,
    max_rows: usize,
    target: &ImportTarget,
) -> Result<RemoteTable, ReadError> {
    let request = Request {
        import_fields: Some(target.fields().to_vec()),
        ..Request::new(options, max_rows)
    };
    open(connection, source, request)
}

fn open(
    connection: Connection,
    source: Box<dyn Source>,
    request: Request,
) -> Result<RemoteTable, ReadError> {
    let mut reader = Reader::request(connection, source, request)?;
    let head: Head = reader.receive_json(Kind::Head)?;
    let head = head.into_table().ok_or(ReadError::Damaged)?;
    Ok(RemoteTable {
        cells: vec![None; head.columns.len()],
        reader,
        head,
        target: Some(Target::default()),
        rows: Vec::new(),
        taken: 0,
        is_ended: false,
        problems: Vec::new(),
    })
}

/// Reads the table of a file to its end with that reader, and returns its first rows.
///
/// # Errors
/// See [`open_remote`].
pub fn preview_remote(
    connection: Connection,
    source: Box<dyn Source>,
    options: &ReadOptions,
    max_rows: usize,
    displayed_rows: usize,
) -> Result<TableSummary, ReadError> {
    let request = Request {
        displayed_rows: Some(displayed_rows),
        ..Request::new(options, max_rows)
    };
    let mut reader = Reader::request(connection, source, request)?;
    let preview: Preview = reader.receive_json(Kind::Preview)?;
    preview.into_summary().ok_or(ReadError::Damaged)
}

/// A table that a reader reads.
pub struct RemoteTable {
    reader: Reader,
    head: TableHead,
    /// Types in which columns are read; `None` once the reader has them.
    target: Option<Target>,
    /// Rows that were received, of which those before `taken` were returned.
    rows: Vec<u8>,
    taken: usize,
    is_ended: bool,
    cells: Vec<Option<FileCell>>,
    problems: Vec<String>,
}

impl RemoteTable {
    /// Returns the reading of the table. Its counts of cells are complete after the last row.
    #[must_use]
    pub const fn reading(&self) -> &Reading {
        &self.head.reading
    }

    /// The columns, in order.
    #[must_use]
    pub fn columns(&self) -> &[ReadColumn] {
        &self.head.columns
    }

    /// Returns the points that an import would have to guess, or refuses.
    #[must_use]
    pub fn doubts(&self) -> &[Doubt] {
        &self.head.doubts
    }

    /// The sheets of a workbook.
    #[must_use]
    pub fn sheets(&self) -> Option<&[Sheet]> {
        self.head.sheets.as_deref()
    }

    /// Number of rows.
    #[must_use]
    pub const fn row_count(&self) -> usize {
        self.head.row_count
    }

    /// Checks that nothing would have to be guessed.
    ///
    /// # Errors
    /// [`ReadError::Doubtful`] with the first doubts.
    pub fn check(&self) -> Result<(), ReadError> {
        doubt::check(self.doubts())
    }

    /// Reads the cells of the columns as values of other types, `None` to leave a column out. Has no effect
    /// after the first row.
    pub fn read_as(&mut self, types: &[Option<DataType>]) {
        if let Some(target) = &mut self.target {
            target.types = Some(types_to_json(types));
        }
    }

    /// Reads the cells as values in these units, those of the table's columns; `None` for the file's own. Has no effect
    /// after the first row.
    pub fn read_in(&mut self, units: &[Option<String>]) {
        if let Some(target) = &mut self.target {
            target.units = units.to_vec();
        }
    }

    /// Reads the next row.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn next_row(&mut self) -> Result<Option<TableRow<'_>>, ReadError> {
        // Only with the first row: until then the caller may choose other types.
        if let Some(target) = self.target.take() {
            self.reader.send_json(Kind::Target, &target)?;
        }
        while self.taken >= self.rows.len() {
            if self.is_ended || !self.receive()? {
                return Ok(None);
            }
        }
        let mut rest = self.rows.get(self.taken..).unwrap_or_default();
        let line = cells::take_row(&mut rest, &mut self.cells, &mut self.problems);
        self.taken = self.rows.len() - rest.len();
        Ok(Some(TableRow {
            line: line.map_err(|_| ReadError::Damaged)?,
            cells: &mut self.cells,
            problems: &self.problems,
        }))
    }

    /// Receives more rows; false at the end.
    fn receive(&mut self) -> Result<bool, ReadError> {
        match self.reader.receive()? {
            Kind::Rows => {
                mem::swap(&mut self.rows, &mut self.reader.body);
                self.taken = 0;
                Ok(true)
            }
            Kind::End => {
                let counts: Counts =
                    serde_json::from_slice(&self.reader.body).map_err(|_| ReadError::Damaged)?;
                self.head.reading.null_text_numbers = counts.null_text_numbers;
                self.head.reading.null_error_cells = counts.null_error_cells;
                self.is_ended = true;
                Ok(false)
            }
            _ => Err(ReadError::Damaged),
        }
    }

    /// Reads the next rows as columns of values: one vector per column, all of one length. `None` at
    /// the end.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn next_part(&mut self) -> Result<Option<Vec<Values>>, ReadError> {
        next_part(self)
    }
}

impl RowReader for RemoteTable {
    fn types(&self) -> Vec<DataType> {
        let columns = self.columns().iter();
        columns.map(|column| column.data_type).collect()
    }

    fn next_row(&mut self) -> Result<Option<TableRow<'_>>, ReadError> {
        self.next_row()
    }
}

/// A reader at work, with the file that it reads.
struct Reader {
    connection: Connection,
    source: Box<dyn Source>,
    /// Why the file could not be read.
    failure: Option<io::Error>,
    /// Body of the last message.
    body: Vec<u8>,
    /// Bytes of the file that were sent last.
    bytes: Vec<u8>,
}

impl Reader {
    fn request(
        connection: Connection,
        mut source: Box<dyn Source>,
        mut request: Request,
    ) -> Result<Self, ReadError> {
        request.length = source.seek(SeekFrom::End(0))?;
        let mut reader = Self {
            connection,
            source,
            failure: None,
            body: Vec::new(),
            bytes: Vec::new(),
        };
        reader.send_json(Kind::Request, &request)?;
        Ok(reader)
    }

    fn send(&mut self, kind: Kind, body: &[u8]) -> Result<(), ReadError> {
        let sent = frames::write(&mut *self.connection.input, kind, body);
        sent.map_err(|_| (self.connection.explain)())
    }

    fn send_json(&mut self, kind: Kind, message: &impl Serialize) -> Result<(), ReadError> {
        let body = serde_json::to_vec(message).map_err(io::Error::other)?;
        self.send(kind, &body)
    }

    /// Receives the next message into the body, after it has given the reader the bytes that it asked for before.
    fn receive(&mut self) -> Result<Kind, ReadError> {
        loop {
            let received = frames::read(&mut *self.connection.output, &mut self.body);
            let kind = received.map_err(|error| match error.kind() {
                _ if self.failure.is_some() => self.failed(),
                // No frame of the protocol: it is a reader that a file has taken over.
                io::ErrorKind::InvalidData => ReadError::Damaged,
                _ => (self.connection.explain)(),
            })?;
            match kind {
                Kind::ReadAt => self.give()?,
                // Libraries take a failure for damage, or for the end of the file: what follows it is not believed.
                _ if self.failure.is_some() => return Err(self.failed()),
                Kind::Failed => return Err(self.failed()),
                kind => return Ok(kind),
            }
        }
    }

    fn receive_json<T: DeserializeOwned>(&mut self, expected: Kind) -> Result<T, ReadError> {
        if self.receive()? != expected {
            return Err(ReadError::Damaged);
        }
        serde_json::from_slice(&self.body).map_err(|_| ReadError::Damaged)
    }

    /// Sends bytes of the file.
    fn give(&mut self) -> Result<(), ReadError> {
        let mut asked = self.body.as_slice();
        let offset = asked.try_get_u64_le().map_err(|_| ReadError::Damaged)?;
        let length = asked.try_get_u64_le().map_err(|_| ReadError::Damaged)?;
        let limit = u64::try_from(frames::MAX_FRAME).unwrap_or(u64::MAX);
        // A reader that a file has taken over may ask for any length: no more is read than a frame holds.
        let mut bytes = mem::take(&mut self.bytes);
        let read = read_at(&mut *self.source, offset, length.min(limit), &mut bytes);
        match read {
            Ok(()) => {
                self.send(Kind::Data, &bytes)?;
                self.bytes = bytes;
                Ok(())
            }
            Err(error) => {
                // Stays on this side: the reader learns only that the source failed, and the caller gets the error
                // itself.
                self.failure = Some(error);
                self.send(Kind::SourceFailed, &[])
            }
        }
    }

    fn failed(&mut self) -> ReadError {
        if let Some(failure) = self.failure.take() {
            return ReadError::Source(failure);
        }
        match serde_json::from_slice(&self.body) {
            Ok(Failure::Refused(refusal)) => refusal,
            Ok(Failure::Internal(reason)) => ReadError::Source(io::Error::other(reason)),
            // Without a failure of the source it is a library's, over a file that contradicts itself.
            Ok(Failure::Source) | Err(_) => ReadError::Damaged,
        }
    }
}

fn read_at(
    source: &mut dyn Source,
    offset: u64,
    length: u64,
    bytes: &mut Vec<u8>,
) -> io::Result<()> {
    source.seek(SeekFrom::Start(offset))?;
    bytes.clear();
    source.take(length).read_to_end(bytes)?;
    Ok(())
}
