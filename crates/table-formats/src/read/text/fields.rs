//! Division of a text into rows and fields.
//!
//! The `csv` crate does not tell whether a field was quoted, nor that a quotation mark is never
//! closed, nor that text follows one, all of which decide here whether a value can be believed.

use std::io::Read as _;

use memchr::memchr3;

use super::decoded::DecodedText;
use crate::read::{
    ReadError,
    raw::{RawCell, RawRow, RowFault, RowSource, Span},
};

/// Maximum size of a row in bytes.
const MAX_ROW: usize = 16 << 20;

/// Maximum number of fields of a row.
const MAX_FIELDS: usize = 16_384;

/// Number of bytes that are read at a time.
const CHUNK: usize = 64 << 10;

/// Signs of a delimited text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dialect {
    pub(super) delimiter: u8,
    pub(super) quote: Option<u8>,
    /// True if the first line names the delimiter (`sep=;`).
    pub(super) skips_first_line: bool,
}

/// Rows of a text. Lines end with a line feed, a carriage return, or both.
pub(super) struct Fields {
    text: DecodedText,
    dialect: Dialect,
    /// Bytes that are read, of which those before `taken` are parsed.
    input: Vec<u8>,
    taken: usize,
    has_ended: bool,
    /// Bytes of the decoded file that are parsed.
    position: u64,
    line: u64,
    /// Bytes of the row, which become its text.
    output: Vec<u8>,
}

impl Fields {
    pub(super) fn new(text: DecodedText, dialect: Dialect) -> Result<Self, ReadError> {
        let mut fields = Self {
            text,
            dialect,
            input: Vec::new(),
            taken: 0,
            has_ended: false,
            position: 0,
            line: 1,
            output: Vec::new(),
        };
        fields.rewind()?;
        Ok(fields)
    }

    /// Returns the next byte without taking it; `None` at the end.
    fn peek(&mut self) -> Result<Option<u8>, ReadError> {
        if self.taken >= self.input.len() {
            if self.has_ended {
                return Ok(None);
            }
            self.input.resize(CHUNK, 0);
            let read = self.text.read(&mut self.input)?;
            self.input.truncate(read);
            self.taken = 0;
            self.has_ended = read == 0;
        }
        Ok(self.input.get(self.taken).copied())
    }

    fn skip(&mut self) {
        self.taken += 1;
        self.position += 1;
    }

    /// Takes a line break.
    fn skip_break(&mut self, byte: u8) -> Result<(), ReadError> {
        self.skip();
        if byte == b'\r' && self.peek()? == Some(b'\n') {
            self.skip();
        }
        self.line += 1;
        Ok(())
    }

    /// Copies bytes up to the one that is found, which it returns.
    fn copy_until(
        &mut self,
        find: impl Fn(&[u8]) -> Option<usize>,
    ) -> Result<Option<u8>, ReadError> {
        loop {
            if self.peek()?.is_none() {
                return Ok(None);
            }
            let ready = self.input.get(self.taken..).unwrap_or_default();
            let found = find(ready);
            let run = ready
                .get(..found.unwrap_or(ready.len()))
                .unwrap_or_default();
            self.output.extend_from_slice(run);
            let count = run.len();
            self.taken += count;
            self.position += u64::try_from(count).unwrap_or(0);
            // While copying: a row may be as long as the file.
            if self.output.len() > MAX_ROW {
                return Err(ReadError::RowTooLong(u64::try_from(MAX_ROW).unwrap_or(0)));
            }
            if found.is_some() {
                return self.peek();
            }
        }
    }

    /// Copies bytes up to a sign or the end of the line.
    fn copy_until_sign(&mut self, sign: u8) -> Result<Option<u8>, ReadError> {
        self.copy_until(|ready| memchr3(sign, b'\r', b'\n', ready))
    }

    /// Reads a field in quotation marks, of which the first is taken; returns a fault.
    fn quoted(&mut self, quote: u8) -> Result<Option<RowFault>, ReadError> {
        let opened = self.line;
        let delimiter = self.dialect.delimiter;
        loop {
            let read = self.copy_until_sign(quote);
            let next = match read {
                // A quotation without an end fills the row, and where it begins is the fault to name.
                Err(ReadError::RowTooLong(_)) => return Err(ReadError::UnclosedQuote(opened)),
                next => next?,
            };
            match next {
                None => return Ok(Some(RowFault::UnclosedQuote(opened))),
                Some(byte) if byte == quote => {
                    self.skip();
                    if self.peek()? != Some(quote) {
                        break;
                    }
                    self.skip();
                    self.output.push(quote);
                }
                // The breaks of the text are retained as they are.
                Some(byte) => {
                    self.output.push(byte);
                    self.skip();
                    if byte == b'\r' && self.peek()? == Some(b'\n') {
                        self.skip();
                        self.output.push(b'\n');
                    }
                    self.line += 1;
                }
            }
        }
        // Blanks between the mark and the delimiter belong to nothing.
        let end = self.output.len();
        let next = self.copy_until(|ready| ready.iter().position(|byte| *byte != b' '))?;
        let Some(next) = next.filter(|byte| *byte != delimiter && !matches!(byte, b'\r' | b'\n'))
        else {
            self.output.truncate(end);
            return Ok(None);
        };
        // The rest of the field is read, so that the next fields are in their columns.
        self.copy_until_sign(delimiter)?;
        Ok(Some(RowFault::TextAfterQuote { line: opened, next }))
    }
}

impl RowSource for Fields {
    fn next(&mut self, row: &mut RawRow) -> Result<bool, ReadError> {
        row.clear();
        row.line = self.line;
        self.output.clear();
        if self.peek()?.is_none() {
            return Ok(false);
        }
        let delimiter = self.dialect.delimiter;
        loop {
            let start = self.output.len();
            // At the start of a field only: the mark of `5" pipe` is a part of the text.
            let is_quoted = self.dialect.quote.is_some() && self.peek()? == self.dialect.quote;
            if let Some(quote) = self.dialect.quote.filter(|_| is_quoted) {
                self.skip();
                let fault = self.quoted(quote)?;
                row.fault = row.fault.or(fault);
            } else {
                self.copy_until_sign(delimiter)?;
            }
            let span = Span {
                start,
                end: self.output.len(),
            };
            row.cells.push(match is_quoted {
                true => RawCell::Quoted(span),
                false if span.start == span.end => RawCell::Blank,
                false => RawCell::Text(span),
            });
            if row.cells.len() > MAX_FIELDS {
                return Err(ReadError::MoreColumns(MAX_FIELDS));
            }
            match self.peek()? {
                Some(byte) if byte == delimiter => self.skip(),
                Some(byte) => {
                    self.skip_break(byte)?;
                    break;
                }
                None => break,
            }
        }
        // The decoder writes UTF-8, and all signs are ASCII.
        row.text
            .push_str(std::str::from_utf8(&self.output).unwrap_or_default());
        if self.text.had_malformed_before(self.position) {
            row.fault = row.fault.or(Some(RowFault::InvalidBytes));
        }
        Ok(true)
    }

    fn rewind(&mut self) -> Result<(), ReadError> {
        self.text.rewind()?;
        self.input.clear();
        self.taken = 0;
        self.has_ended = false;
        self.position = 0;
        self.line = 1;
        if self.dialect.skips_first_line {
            let mut row = RawRow::default();
            self.next(&mut row)?;
        }
        Ok(())
    }

    fn has_field_counts(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use encoding_rs::UTF_8;

    use super::{super::encoding::FileEncoding, *};

    const COMMA: Dialect = Dialect {
        delimiter: b',',
        quote: Some(b'"'),
        skips_first_line: false,
    };

    fn fields(text: &[u8], dialect: Dialect) -> Fields {
        let found = FileEncoding {
            encoding: UTF_8,
            mark: 0,
        };
        let text = DecodedText::new(Box::new(Cursor::new(text.to_vec())), found);
        Fields::new(text, dialect).unwrap()
    }

    fn rows(text: &str, dialect: Dialect) -> Vec<RawRow> {
        let mut fields = fields(text.as_bytes(), dialect);
        let mut rows = Vec::new();
        let mut row = RawRow::default();
        while fields.next(&mut row).unwrap() {
            rows.push(row.clone());
        }
        rows
    }

    fn texts(row: &RawRow) -> Vec<&str> {
        let cells = row.cells.iter();
        cells
            .map(|cell| row.text_of(*cell).unwrap_or_default())
            .collect()
    }

    #[test]
    fn rows_have_the_lines_on_which_they_begin() {
        for text in [
            "a,b\n1,\"x\ny\"\n\n3,4",
            "a,b\r\n1,\"x\r\ny\"\r\n\r\n3,4\r\n",
            "a,b\r1,\"x\ry\"\r\r3,4\r",
        ] {
            let rows = rows(text, COMMA);
            let lines: Vec<u64> = rows.iter().map(|row| row.line).collect();
            assert_eq!(lines, [1, 2, 4, 5], "{text:?}");
            assert!(rows[2].is_all_blank());
            assert_eq!(texts(&rows[3]), ["3", "4"]);
        }
    }

    #[test]
    fn quoted_fields_are_told_from_others() {
        let rows = rows("a,\"\",\"b \"\"c\"\"\" , d ,\n", COMMA);
        assert_eq!(texts(&rows[0]), ["a", "", "b \"c\"", " d ", ""]);
        assert!(matches!(rows[0].cells[1], RawCell::Quoted(_)));
        assert!(matches!(rows[0].cells[3], RawCell::Text(_)));
        assert_eq!(rows[0].cells[4], RawCell::Blank);
        assert_eq!(rows[0].fault, None);
    }

    #[test]
    fn faults_of_quotation_marks_name_the_line_where_they_open() {
        let open = rows("a,b\n1,\"no end\n2,3\n", COMMA);
        assert_eq!(open.len(), 2);
        assert_eq!(open[1].fault, Some(RowFault::UnclosedQuote(2)));
        let after = rows("\"a\"b,c\n\"x\ny\"z,\"d\"\n", COMMA);
        let fault = |line, next| Some(RowFault::TextAfterQuote { line, next });
        assert_eq!(after[0].fault, fault(1, b'b'));
        assert_eq!(after[1].fault, fault(2, b'z'));
        assert_eq!(texts(&after[1])[1], "d");
        let inner = rows("5\" pipe,say \"x\"\n", COMMA);
        assert_eq!(texts(&inner[0]), ["5\" pipe", "say \"x\""]);
        let none = Dialect {
            quote: None,
            ..COMMA
        };
        assert_eq!(texts(&rows("\"a,b\"\n", none)[0]), ["\"a", "b\""]);
    }

    #[test]
    fn a_quotation_mark_that_is_never_closed_does_not_fill_the_memory() {
        let text = [b"a\n\"", "x,y\n".repeat(5 << 20).as_bytes()].concat();
        let mut fields = fields(&text, COMMA);
        let mut row = RawRow::default();
        fields.next(&mut row).unwrap();
        let refused = fields.next(&mut row).unwrap_err();
        assert!(matches!(refused, ReadError::UnclosedQuote(2)));
    }

    #[test]
    fn fields_are_not_counted_beyond_their_maximum() {
        let mut fields = fields(",".repeat(20_000).as_bytes(), COMMA);
        let refused = fields.next(&mut RawRow::default()).unwrap_err();
        let message = "the file has more than 16384 columns; 1600 is the most";
        assert_eq!(refused.to_string(), message);
    }

    #[test]
    fn rows_with_malformed_characters_are_known() {
        let mut fields = fields(b"a\n\xff\nb\n\xfe", COMMA);
        for _ in 0..2 {
            let mut row = RawRow::default();
            let mut faults = Vec::new();
            while fields.next(&mut row).unwrap() {
                faults.push(row.fault.is_some());
            }
            assert_eq!(faults, [false, true, false, true]);
            fields.rewind().unwrap();
        }
    }
}
