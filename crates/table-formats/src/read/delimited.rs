//! CSV, TSV and their kin.

use csv::{ReaderBuilder, StringRecord};

use super::{
    MAX_COLUMNS, ReadError, SourceTable,
    infer::{Decimal, infer},
};
use crate::frame::distinct;

/// Delimiters that are tried, in order of preference.
const DELIMITERS: [u8; 4] = [b',', b'\t', b';', b'|'];

/// Number of records that decide on the delimiter.
const SAMPLE: usize = 50;

/// Reads a text of delimited fields, of which the first line names the columns. The delimiter is the
/// one that divides the first lines into the same number of fields, the more the better. With `;`, a comma
/// separates decimals, as spreadsheets write it in countries that do.
///
/// Fields may be quoted (RFC 4180). Blanks around a field are removed, blank lines are skipped, and a
/// column without a name is called `column_` and its number. Fields after the header's last one must be blank.
///
/// # Errors
/// [`ReadError`] if it is no table, or has more than `max_rows` rows.
pub fn read_delimited(text: &str, max_rows: usize) -> Result<SourceTable, ReadError> {
    let delimiter = sniff(text);
    let mut reader = reader(text, delimiter);
    let mut record = StringRecord::new();
    if !read(&mut reader, &mut record) {
        return Err(ReadError::NoHeader);
    }
    let names = names(&record);
    if names.len() > MAX_COLUMNS {
        return Err(ReadError::TooManyColumns(names.len()));
    }
    let mut columns: Vec<Vec<Option<String>>> = vec![Vec::new(); names.len()];
    let mut row_count = 0;
    while read(&mut reader, &mut record) {
        if record.iter().all(str::is_empty) {
            continue;
        }
        let further = record.iter().skip(names.len());
        if record.len() < names.len() || further.clone().any(|field| !field.is_empty()) {
            return Err(ReadError::Ragged {
                line: line_of(text, &record),
                found: record.len(),
                expected: names.len(),
            });
        }
        if row_count == max_rows {
            return Err(ReadError::TooManyRows(max_rows));
        }
        row_count += 1;
        for (column, field) in columns.iter_mut().zip(&record) {
            column.push((!field.is_empty()).then(|| field.to_owned()));
        }
    }
    let decimal = match delimiter {
        b';' => Decimal::Comma,
        _ => Decimal::Point,
    };
    let values = columns.into_iter().map(|cells| infer(cells, decimal));
    Ok(SourceTable {
        columns: distinct(&names).into_iter().zip(values).collect(),
        row_count,
    })
}

fn reader(text: &str, delimiter: u8) -> csv::Reader<&[u8]> {
    ReaderBuilder::new()
        .delimiter(delimiter)
        .flexible(true)
        .has_headers(false)
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes())
}

/// Reads the next record; false at the end. Of a text in memory, with a flexible number of fields,
/// nothing can fail.
fn read(reader: &mut csv::Reader<&[u8]>, record: &mut StringRecord) -> bool {
    reader.read_record(record).unwrap_or(false)
}

/// Number of a record's line. Its position is before the blank lines that were skipped.
fn line_of(text: &str, record: &StringRecord) -> u64 {
    let Some(position) = record.position() else {
        return 0;
    };
    let start = usize::try_from(position.byte()).unwrap_or(usize::MAX);
    let rest = text.as_bytes().get(start..).unwrap_or_default();
    let ends = rest.iter().take_while(|byte| matches!(byte, b'\r' | b'\n'));
    let blank = ends.filter(|byte| **byte == b'\n').count();
    position.line() + u64::try_from(blank).unwrap_or_default()
}

/// The names of a header without the blank fields at its end.
fn names(header: &StringRecord) -> Vec<String> {
    let named = header.iter().zip(1..).filter(|(name, _)| !name.is_empty());
    let length = named.last().map_or(0, |(_, number)| number);
    let fields = header.iter().take(length).zip(1..);
    fields
        .map(|(name, number)| {
            if name.is_empty() {
                format!("column_{number}")
            } else {
                name.to_owned()
            }
        })
        .collect()
}

fn sniff(text: &str) -> u8 {
    let mut best = (1, b',');
    for delimiter in DELIMITERS {
        let mut reader = reader(text, delimiter);
        let mut record = StringRecord::new();
        let mut lengths = Vec::new();
        while lengths.len() < SAMPLE && read(&mut reader, &mut record) {
            lengths.push(record.len());
        }
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
        .rev()
        .max_by_key(|delimiter| count(*delimiter))
        .unwrap_or(b',')
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use labdata_domain::scalar::Values;
    use proptest::prelude::*;

    use super::*;
    use crate::{Format, Frame};

    fn table(text: &str) -> SourceTable {
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
    fn every_column_has_a_name_that_no_other_has() {
        assert_eq!(names_of("a,,a\n1,2,3\n"), ["a", "column_2", "a_2"]);
    }

    #[test]
    fn a_file_without_rows_is_a_table_and_an_empty_one_is_none() {
        assert_eq!(table("a,b\n").row_count, 0);
        for text in ["", "\n\n"] {
            assert_eq!(
                read_delimited(text, 9),
                Err(ReadError::NoHeader),
                "{text:?}"
            );
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
        let pieces = frame.encode(Format::Csv).expect("a writer");
        let bytes: Vec<u8> = pieces.flat_map(|piece| piece.expect("a piece")).collect();
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
                let names: BTreeSet<&String> = table.columns.iter().map(|(name, _)| name).collect();
                prop_assert_eq!(names.len(), table.columns.len());
            }
        }
    }

    #[test]
    fn a_table_has_limits() {
        assert_eq!(
            read_delimited("a\n1\n2\n", 1),
            Err(ReadError::TooManyRows(1))
        );
        let wide = "a,".repeat(MAX_COLUMNS) + "a\n";
        assert_eq!(
            read_delimited(&wide, 9),
            Err(ReadError::TooManyColumns(MAX_COLUMNS + 1))
        );
    }
}
