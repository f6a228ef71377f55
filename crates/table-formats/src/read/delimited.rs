//! CSV, TSV and their kin.

use std::io::{self, Read};

use csv::{ReaderBuilder, StringRecord};
use labdata_domain::scalar::{DataType, Values};

use super::{
    MAX_COLUMNS, PART_BYTES, PART_ROWS, ReadError, Source, TableReader,
    decoded::{DecodedText, file_encoding},
    infer::{ColumnInference, Decimal, push},
};

/// Delimiters that are tried, in order of preference.
const DELIMITERS: [u8; 4] = [b',', b'\t', b';', b'|'];

/// Number of records that decide on the delimiter.
const SAMPLE: usize = 50;

/// Number of bytes in which these records are looked for.
const SAMPLE_BYTES: u64 = 256 << 10;

/// Maximum size of a record in bytes.
pub(super) const MAX_RECORD: u64 = 16 << 20;

/// Character between the fields of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delimiter {
    /// The one of comma, tab, semicolon and bar that divides the first lines into the same number of
    /// fields, the more the better.
    Sniffed,
    /// A tab.
    Tab,
}

/// Begins to read a file of delimited fields, of which the first line names the columns. With `;`, a
/// comma separates decimals, as spreadsheets write it in countries that do.
///
/// Fields may be quoted (RFC 4180). Blanks around a field are removed, blank lines are skipped, and a
/// column without a name is called `column_` and its number. Fields after the header's last one must be
/// blank. The file is read twice: once for the types of the columns, and once for the values.
///
/// # Errors
/// [`ReadError`] if it is no table, or has more than `max_rows` rows.
pub fn open_delimited(
    source: Box<dyn Source>,
    delimiter: Delimiter,
    max_rows: usize,
) -> Result<impl TableReader + use<>, ReadError> {
    let (text, delimiter) = open_text(source, delimiter)?;
    let decimal = match delimiter {
        // Spreadsheets separate fields by `;` where the comma is the decimal separator.
        b';' => Decimal::Comma,
        _ => Decimal::Point,
    };
    let mut records = Records::begin(text, delimiter)?;
    let mut inferences = vec![ColumnInference::new(decimal); records.names.len()];
    let mut row_count = 0;
    while records.next()? {
        // During the first reading, so that a file that is too long is not read twice.
        if row_count == max_rows {
            return Err(ReadError::TooManyRows(max_rows));
        }
        row_count += 1;
        let fields = inferences.iter_mut().zip(&records.record);
        for (inference, field) in fields.filter(|(_, field)| !field.is_empty()) {
            inference.add(field);
        }
    }
    let records = Records::begin(records.reader.into_inner(), delimiter)?;
    let types = inferences.into_iter().map(ColumnInference::finish);
    Ok(DelimitedReader {
        columns: records.names.iter().cloned().zip(types).collect(),
        records,
        decimal,
    })
}

/// Finds the encoding and the delimiter of a file; returns its text from the beginning.
pub(super) fn open_text(
    mut source: Box<dyn Source>,
    delimiter: Delimiter,
) -> Result<(DecodedText, u8), ReadError> {
    let encoding = file_encoding(&mut *source)?;
    let mut text = DecodedText::new(source, encoding);
    text.rewind()?;
    let delimiter = match delimiter {
        Delimiter::Sniffed => sniff(&sample(&mut text)?),
        Delimiter::Tab => b'\t',
    };
    text.rewind()?;
    Ok((text, delimiter))
}

struct DelimitedReader {
    columns: Vec<(String, DataType)>,
    records: Records,
    decimal: Decimal,
}

impl TableReader for DelimitedReader {
    fn columns(&self) -> &[(String, DataType)] {
        &self.columns
    }

    fn next_part(&mut self) -> Result<Option<Vec<Values>>, ReadError> {
        let types = self.columns.iter().map(|(_, data_type)| *data_type);
        let mut columns: Vec<Values> = types
            .map(|data_type| Values::with_capacity(data_type, 0))
            .collect();
        let (mut rows, mut bytes) = (0, 0);
        while rows < PART_ROWS && bytes < PART_BYTES && self.records.next()? {
            rows += 1;
            bytes += self.records.record.as_slice().len() + columns.len();
            for (values, field) in columns.iter_mut().zip(&self.records.record) {
                if field.is_empty() {
                    values.push_null();
                } else {
                    push(values, field, self.decimal);
                }
            }
        }
        Ok((rows > 0).then_some(columns))
    }
}

/// The records of a file below its header.
struct Records {
    reader: csv::Reader<DecodedText>,
    /// Names of the header's fields.
    names: Vec<String>,
    record: StringRecord,
}

impl Records {
    /// Reads the header.
    fn begin(mut text: DecodedText, delimiter: u8) -> Result<Self, ReadError> {
        text.rewind()?;
        let mut records = Self {
            reader: reader(text, delimiter),
            names: Vec::new(),
            record: StringRecord::new(),
        };
        if !records.read()? {
            return Err(ReadError::NoHeader);
        }
        records.names = field_names(records.record.iter());
        match records.names.len() {
            0 => Err(ReadError::NoHeader),
            count if count > MAX_COLUMNS => Err(ReadError::TooManyColumns(count)),
            _ => Ok(records),
        }
    }

    /// Reads the next record that is not blank, and checks its length; false at the end.
    fn next(&mut self) -> Result<bool, ReadError> {
        let expected = self.names.len();
        while self.read()? {
            if self.record.iter().all(str::is_empty) {
                continue;
            }
            // Spreadsheets pad rows with empty fields up to the widest row of the sheet.
            let mut further = self.record.iter().skip(expected);
            if self.record.len() < expected || further.any(|field| !field.is_empty()) {
                return Err(ReadError::Ragged {
                    line: self.line()?,
                    found: self.record.len(),
                    expected,
                });
            }
            return Ok(true);
        }
        Ok(false)
    }

    fn read(&mut self) -> Result<bool, ReadError> {
        // The parser has no limit; a missing quotation mark would read the file as one record.
        self.reader.get_mut().allow(MAX_RECORD);
        self.reader
            .read_record(&mut self.record)
            .map_err(|error| match error.into_kind() {
                csv::ErrorKind::Io(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                    ReadError::RowTooLong(MAX_RECORD)
                }
                csv::ErrorKind::Io(error) => error.into(),
                // With a flexible number of fields, nothing else fails in UTF-8.
                other => ReadError::Source(io::Error::other(format!("{other:?}"))),
            })
    }

    /// Returns the number of the record's line, for which it reads the file again. The record's own
    /// position is before the blank lines that were skipped.
    fn line(&mut self) -> Result<u64, ReadError> {
        let Some(start) = self.record.position().map(csv::Position::byte) else {
            return Ok(0);
        };
        let text = self.reader.get_mut();
        text.rewind()?;
        let mut line = 1;
        for (byte, at) in io::BufReader::new(text).bytes().zip(0_u64..) {
            match byte? {
                b'\n' => line += 1,
                b'\r' => {}
                // The record begins behind the blank lines, at the first character that is no line break.
                _ if at >= start => break,
                _ => {}
            }
        }
        Ok(line)
    }
}

/// Reads the beginning of a text.
fn sample(text: &mut DecodedText) -> Result<String, ReadError> {
    let mut sample = Vec::new();
    text.by_ref().take(SAMPLE_BYTES).read_to_end(&mut sample)?;
    Ok(String::from_utf8_lossy(&sample).into_owned())
}

fn reader<R: Read>(text: R, delimiter: u8) -> csv::Reader<R> {
    ReaderBuilder::new()
        .delimiter(delimiter)
        // The parser's own error about lengths does not tolerate blank fields at the end.
        .flexible(true)
        .has_headers(false)
        .trim(csv::Trim::All)
        .from_reader(text)
}

/// The names of a header without the blank fields at its end.
pub(super) fn field_names<'h>(header: impl Iterator<Item = &'h str>) -> Vec<String> {
    let header: Vec<&str> = header.collect();
    let length = header.iter().rposition(|name| !name.is_empty());
    let fields = header.into_iter().take(length.map_or(0, |last| last + 1));
    fields
        .zip(1..)
        .map(|(name, number)| {
            if name.is_empty() {
                format!("column_{number}")
            } else {
                name.to_owned()
            }
        })
        .collect()
}

fn length_of(text: &str) -> u64 {
    u64::try_from(text.len()).unwrap_or(u64::MAX)
}

fn sniff(text: &str) -> u8 {
    let mut best = (1, b',');
    for delimiter in DELIMITERS {
        let mut reader = reader(text.as_bytes(), delimiter);
        let mut record = StringRecord::new();
        let mut lengths = Vec::new();
        // Of a text in memory, with a flexible number of fields, nothing can fail.
        while lengths.len() < SAMPLE && reader.read_record(&mut record).unwrap_or(false) {
            lengths.push(record.len());
        }
        // A full sample may end within its last record.
        if lengths.len() < SAMPLE && length_of(text) >= SAMPLE_BYTES {
            lengths.pop();
        }
        // A delimiter within texts divides lines irregularly.
        let is_regular = lengths.windows(2).all(|pair| pair.first() == pair.last());
        if let Some(length) = lengths.first().filter(|_| is_regular)
            && *length > best.0
        {
            best = (*length, delimiter);
        }
    }
    if best.0 > 1 {
        return best.1;
    }
    // No delimiter is regular: the one that is most frequent in the header.
    let header = text.lines().next().unwrap_or_default();
    let count = |delimiter: u8| header.bytes().filter(|byte| *byte == delimiter).count();
    DELIMITERS
        .into_iter()
        // `max_by_key` returns the last of several, and the first delimiter is preferred.
        .rev()
        .max_by_key(|delimiter| count(*delimiter))
        .unwrap_or(b',')
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;
    use crate::{Format, Frame};

    /// A whole table in memory.
    #[derive(Debug)]
    struct Table {
        columns: Vec<(String, Values)>,
        row_count: usize,
    }

    fn read_delimited(text: &str, max_rows: usize) -> Result<Table, ReadError> {
        read_with(text, Delimiter::Sniffed, max_rows)
    }

    fn read_with(text: &str, delimiter: Delimiter, max_rows: usize) -> Result<Table, ReadError> {
        let source = Box::new(Cursor::new(text.as_bytes().to_vec()));
        let mut reader = open_delimited(source, delimiter, max_rows)?;
        let columns = reader.columns().iter();
        let columns = columns.map(|(name, of)| (name.clone(), Values::with_capacity(*of, 0)));
        let mut table = Table {
            columns: columns.collect(),
            row_count: 0,
        };
        while let Some(part) = reader.next_part()? {
            table.row_count += part.first().map_or(0, Values::len);
            for ((_, values), part) in table.columns.iter_mut().zip(&part) {
                values.extend(part);
            }
        }
        Ok(table)
    }

    fn refusal(text: &str, max_rows: usize) -> String {
        let refused = read_delimited(text, max_rows).expect_err("a refusal");
        refused.to_string()
    }

    fn table(text: &str) -> Table {
        read_delimited(text, 100).expect("a table")
    }

    fn names_of(text: &str) -> Vec<String> {
        let columns = table(text).columns.into_iter();
        columns.map(|(name, _)| name).collect()
    }

    #[test]
    fn columns_have_names_and_types() {
        let table = table("well,od,note\r\nA1,0.5,\"a, b\"\r\nA2,,\r\n");
        assert_eq!(table.row_count, 2);
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(
            table.columns,
            [
                (
                    "well".to_owned(),
                    Values::Text(vec![text("A1"), text("A2")])
                ),
                ("od".to_owned(), Values::Float(vec![Some(0.5), None])),
                ("note".to_owned(), Values::Text(vec![text("a, b"), None])),
            ]
        );
    }

    #[test]
    fn the_delimiter_is_the_one_that_fits() {
        for text in [
            "a,b\n1,2\n",
            "a\tb\n1\t2\n",
            "a;b\n1;2\n",
            "a|b\n1|2\n",
            "a\tb\n1,5\t2,5\n",
            "a;b\n1,5;2\n3,5;4\n",
        ] {
            assert_eq!(names_of(text), ["a", "b"], "{text:?}");
        }
        assert_eq!(names_of("alone\n1\n2\n"), ["alone"]);
        // No delimiter is regular.
        let ragged = read_delimited("a,b,c\n1,2\n", 9);
        assert!(matches!(ragged, Err(ReadError::Ragged { .. })));
    }

    #[test]
    fn a_semicolon_goes_with_decimal_commas() {
        let table = table("t;od\n0;0,25\n1;0,5\n");
        let (_, od) = &table.columns[1];
        assert_eq!(*od, Values::Float(vec![Some(0.25), Some(0.5)]));
    }

    #[test]
    fn a_ragged_line_is_named() {
        let refused = read_delimited("a,b\n1,2\n\n3\n", 9).expect_err("ragged");
        assert_eq!(
            refused.to_string(),
            "line 4 has 1 fields, but the header has 2"
        );
        let longer = read_delimited("a,b\n1,2,3\n", 9).expect_err("ragged");
        assert_eq!(
            longer.to_string(),
            "line 2 has 3 fields, but the header has 2"
        );
    }

    #[test]
    fn blank_lines_and_delimiters_at_the_end_are_skipped() {
        let table = table("a,b,\n1,2,\n,,\n3,4,\n");
        assert_eq!(table.row_count, 2);
        assert_eq!(table.columns.len(), 2);
    }

    #[test]
    fn every_column_has_a_name() {
        assert_eq!(names_of("a,,a,\n1,2,3,\n"), ["a", "column_2", "a"]);
    }

    #[test]
    fn tabs_are_the_delimiter_where_the_file_says_so() {
        let text = "a,b\tc\n1,5\t2\n";
        let table = read_with(text, Delimiter::Tab, 9).expect("a table");
        let names: Vec<_> = table.columns.iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["a,b", "c"]);
    }

    #[test]
    fn a_long_table_arrives_in_parts() {
        let rows: Vec<String> = (0..20_000).map(|n| format!("{n},{}", n % 7)).collect();
        let text = format!("n,m\n{}\n", rows.join("\n"));
        let source = Box::new(Cursor::new(text.into_bytes()));
        let mut reader = open_delimited(source, Delimiter::Sniffed, 20_000).expect("a table");
        let mut lengths = Vec::new();
        while let Some(part) = reader.next_part().expect("a part") {
            lengths.push(part[0].len());
        }
        assert_eq!(lengths, [PART_ROWS, PART_ROWS, 20_000 - 2 * PART_ROWS]);
    }

    #[test]
    fn a_quotation_mark_that_is_never_closed_does_not_fill_the_memory() {
        let text = format!("a,b\n\"{}", "x,y\n".repeat(6 << 20));
        assert_eq!(
            refusal(&text, 9),
            "a row of the file is longer than 16 MiB; perhaps a quotation mark is missing"
        );
    }

    #[test]
    fn a_late_value_of_another_type_makes_the_column_text() {
        let numbers = "1\n".repeat(10_000);
        let table = read_delimited(&format!("a\n{numbers}x\n"), 20_000).expect("a table");
        let (_, values) = &table.columns[0];
        assert!(matches!(values, Values::Text(texts) if texts.len() == 10_001));
    }

    #[test]
    fn a_file_without_rows_is_a_table_and_an_empty_one_is_none() {
        assert_eq!(table("a,b\n").row_count, 0);
        for text in ["", "\n\n"] {
            let refused = read_delimited(text, 9);
            assert!(matches!(refused, Err(ReadError::NoHeader)), "{text:?}");
        }
    }

    #[test]
    fn numbers_round_trip() {
        let numbers = vec![Some(0.1), None, Some(-1e-300), Some(3.0), Some(f64::MAX)];
        let columns = vec![
            ("n".to_owned(), Values::Float(numbers.clone())),
            ("i".to_owned(), Values::Integer((0..5).map(Some).collect())),
        ];
        let frame = Frame::of_columns(columns.clone(), numbers.len()).expect("a frame");
        let chunks = frame.encode(Format::Csv).expect("a writer");
        let bytes: Vec<u8> = chunks.flat_map(|chunk| chunk.expect("a piece")).collect();
        let text = String::from_utf8(bytes).expect("UTF-8");
        assert_eq!(table(&text).columns, columns);
    }

    proptest! {
        /// Every text is a table, whose columns are equally long, or is refused.
        #[test]
        fn any_text_is_a_table_or_refused(text in "[a\"',;|\t\r\n 0-9.é-]{0,120}") {
            if let Ok(table) = read_delimited(&text, 20) {
                for (_, values) in &table.columns {
                    prop_assert_eq!(values.len(), table.row_count);
                }
            }
        }
    }

    #[test]
    fn a_table_has_limits() {
        assert_eq!(refusal("a\n1\n2\n", 1), "the file has more than 1 rows");
        let wide = "a,".repeat(MAX_COLUMNS) + "a\n";
        assert_eq!(
            refusal(&wide, 9),
            "the file has 1601 columns; 1600 is the most"
        );
    }
}
