//! Rows of CSV, TSV and their kin.

use std::io::Read;

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};
use labdata_domain::data::write::FileCell;

use super::RowSink;
use crate::read::{
    MAX_COLUMNS, ReadError, Source,
    decoded::DecodedText,
    delimited::{Delimiter, MAX_RECORD, field_names, open_text},
};

/// Number of bytes that are read at a time.
const CHUNK: usize = 64 << 10;

/// Reads the rows of a file of delimited fields, of which the first line that is not blank names the
/// columns. Quotes, blanks and blank lines are read as [`crate::read::open_delimited`] does; commas are
/// never decimal.
pub(super) fn read_delimited_rows(
    source: Box<dyn Source>,
    delimiter: Delimiter,
    max_rows: usize,
    sink: &mut dyn RowSink,
) -> Result<(), ReadError> {
    let (text, delimiter) = open_text(source, delimiter)?;
    let mut records = Records::new(text, delimiter);
    let Some(_) = records.next()? else {
        return Err(ReadError::NoHeader);
    };
    let names = field_names(records.fields());
    match names.len() {
        0 => return Err(ReadError::NoHeader),
        count if count > MAX_COLUMNS => return Err(ReadError::TooManyColumns(count)),
        _ => {}
    }
    let Some(wanted) = sink.header(&names) else {
        return Ok(());
    };
    let mut cells: Vec<Option<FileCell>> = vec![None; names.len()];
    let mut rows = 0;
    while let Some(line) = records.next()? {
        if records.fields().all(str::is_empty) {
            continue;
        }
        // Checked at the row beyond the limit, so that a file of exactly that many rows is read.
        if rows == max_rows {
            return Err(ReadError::TooManyRows(max_rows));
        }
        rows += 1;
        let found = records.fields().count();
        let mut further = records.fields().skip(names.len());
        if found < names.len() || further.any(|field| !field.is_empty()) {
            let expected = names.len();
            let reason = ReadError::Ragged {
                line,
                found,
                expected,
            };
            // One bad line does not end the import: its problem is reported with the rest.
            sink.refused(line, &reason);
            continue;
        }
        let fields = records.fields().zip(&wanted);
        for (cell, (field, wanted)) in cells.iter_mut().zip(fields) {
            let is_given = *wanted && !field.is_empty();
            *cell = is_given.then(|| FileCell::Text(field.to_owned()));
        }
        if !sink.row(line, &mut cells) {
            break;
        }
    }
    Ok(())
}

/// Records of a text, with the lines on which they begin.
struct Records {
    text: DecodedText,
    reader: Reader,
    /// Bytes that are read, of which those before `taken` are parsed.
    input: Vec<u8>,
    taken: usize,
    has_ended: bool,
    lines: LineCounter,
    /// The fields of the record, one after the other.
    output: Vec<u8>,
    /// The ends of the fields.
    ends: Vec<usize>,
    field_count: usize,
}

impl Records {
    fn new(text: DecodedText, delimiter: u8) -> Self {
        Self {
            text,
            reader: ReaderBuilder::new().delimiter(delimiter).build(),
            input: Vec::new(),
            taken: 0,
            has_ended: false,
            lines: LineCounter::default(),
            output: vec![0; CHUNK],
            ends: vec![0; 64],
            field_count: 0,
        }
    }

    /// Reads the next record; returns the line on which it begins, or `None` at the end.
    fn next(&mut self) -> Result<Option<u64>, ReadError> {
        // The parser skips them by itself, but then the line of the record would be that of the first blank one.
        self.skip_blank_lines()?;
        let line = self.lines.line();
        let (mut length, mut size, mut fields) = (0, 0_u64, 0);
        loop {
            let input = self.input.get(self.taken..).unwrap_or_default();
            let (output, ends) = (
                self.output.get_mut(length..).unwrap_or_default(),
                self.ends.get_mut(fields..).unwrap_or_default(),
            );
            let (result, read, written, ended) = self.reader.read_record(input, output, ends);
            self.lines.count(input.get(..read).unwrap_or_default());
            self.taken += read;
            length += written;
            fields += ended;
            size = size.saturating_add(u64::try_from(read).unwrap_or(u64::MAX));
            // A missing quotation mark would make the rest of the file one record in memory.
            if size > MAX_RECORD {
                return Err(ReadError::RowTooLong(MAX_RECORD));
            }
            match result {
                ReadRecordResult::InputEmpty => self.fill()?,
                // Doubled, so that a long record is not copied once per chunk.
                ReadRecordResult::OutputFull => self.output.resize(self.output.len() * 2, 0),
                ReadRecordResult::OutputEndsFull => self.ends.resize(self.ends.len() * 2, 0),
                ReadRecordResult::Record => {
                    self.field_count = fields;
                    return Ok(Some(line));
                }
                ReadRecordResult::End => return Ok(None),
            }
        }
    }

    /// The fields of the last record, without blanks around them.
    fn fields(&self) -> impl Iterator<Item = &str> {
        let mut start = 0;
        self.ends.iter().take(self.field_count).map(move |end| {
            let bytes = self.output.get(start..*end).unwrap_or_default();
            start = *end;
            // The text is UTF-8, and delimiters are ASCII.
            std::str::from_utf8(bytes).unwrap_or_default().trim()
        })
    }

    fn skip_blank_lines(&mut self) -> Result<(), ReadError> {
        loop {
            let input = self.input.get(self.taken..).unwrap_or_default();
            let breaks = input
                .iter()
                .take_while(|byte| matches!(byte, b'\r' | b'\n'));
            let count = breaks.count();
            self.lines.count(input.get(..count).unwrap_or_default());
            self.taken += count;
            if self.taken < self.input.len() || self.has_ended {
                return Ok(());
            }
            self.fill()?;
        }
    }

    /// Reads the next bytes; all earlier ones are parsed.
    fn fill(&mut self) -> Result<(), ReadError> {
        self.input.resize(CHUNK, 0);
        let read = self.text.read(&mut self.input)?;
        self.input.truncate(read);
        self.taken = 0;
        self.has_ended = read == 0;
        Ok(())
    }
}

/// Counts lines, which end with a line feed, a carriage return, or both.
#[derive(Debug, Default)]
struct LineCounter {
    ended: u64,
    after_return: bool,
}

impl LineCounter {
    /// The number of the current line, starting at 1.
    const fn line(&self) -> u64 {
        self.ended + 1
    }

    fn count(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match byte {
                b'\n' if self.after_return => self.after_return = false,
                b'\n' => self.ended += 1,
                b'\r' => {
                    self.ended += 1;
                    self.after_return = true;
                }
                _ => self.after_return = false,
            }
        }
    }
}
