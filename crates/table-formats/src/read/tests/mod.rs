mod encodings;
mod ends;
mod messages;
mod nulls;
mod random;
mod titles;
mod units;
mod values;

use std::io::Cursor;

use labdata_domain::{data::write::FileCell, scalar::DataType};
use serde_json::{Value, json};

use super::*;

/// A table as a sink of its cells.
struct Read {
    table: ReadTable,
    rows: Vec<(u64, Vec<Option<FileCell>>)>,
    problems: Vec<String>,
}

impl Read {
    fn of(bytes: &[u8], options: &ReadOptions) -> Result<Self, ReadError> {
        let source = Box::new(Cursor::new(bytes.to_vec()));
        let mut table = open_table(source, options, 1_000)?;
        for doubt in table.doubts() {
            assert!(doubt.message.contains(' '), "{doubt:?}");
        }
        let (mut rows, mut problems) = (Vec::new(), Vec::new());
        while let Some(row) = table.next_row()? {
            problems.extend_from_slice(row.problems);
            rows.push((row.line, row.cells.to_vec()));
        }
        Ok(Self {
            table,
            rows,
            problems,
        })
    }

    fn headers(&self) -> Vec<&str> {
        let columns = self.table.columns().iter();
        columns.map(|column| column.header.as_str()).collect()
    }

    fn types(&self) -> Vec<DataType> {
        let columns = self.table.columns().iter();
        columns.map(|column| column.data_type).collect()
    }

    /// Cells as a text column shows them; blank ones are `-`.
    fn cells(&self) -> Vec<Vec<String>> {
        let text = |cell: &Option<FileCell>| match cell {
            Some(cell) => cell.to_string(),
            None => "-".to_owned(),
        };
        let rows = self.rows.iter();
        rows.map(|(_, cells)| cells.iter().map(text).collect())
            .collect()
    }

    fn codes(&self) -> Vec<(&str, &str)> {
        let doubts = self.table.doubts().iter();
        doubts
            .map(|doubt| (&*doubt.code, doubt.path.as_str()))
            .collect()
    }
}

fn options(value: &Value) -> ReadOptions {
    ReadOptions::from_json(value.as_object().unwrap()).unwrap()
}

#[track_caller]
fn read(bytes: impl AsRef<[u8]>) -> Read {
    read_with(bytes, json!({}))
}

#[expect(clippy::needless_pass_by_value, reason = "each call makes its options")]
#[track_caller]
fn read_with(bytes: impl AsRef<[u8]>, given: Value) -> Read {
    Read::of(bytes.as_ref(), &options(&given)).unwrap()
}

/// Reads a file that leaves no doubt; returns headers and cells. Read again with its own reading, it is
/// the same.
#[track_caller]
fn clear(bytes: impl AsRef<[u8]>) -> (Vec<String>, Vec<Vec<String>>) {
    clear_with(bytes, json!({}))
}

#[track_caller]
fn clear_with(bytes: impl AsRef<[u8]>, given: Value) -> (Vec<String>, Vec<Vec<String>>) {
    let found = read_with(&bytes, given);
    assert_eq!(found.codes(), []);
    assert_eq!(found.problems, Vec::<String>::new());
    let again = read_with(&bytes, Value::Object(found.table.reading().to_json()));
    assert_eq!(again.cells(), found.cells());
    assert_eq!(again.types(), found.types());
    let headers = found.headers().into_iter().map(str::to_owned);
    (headers.collect(), found.cells())
}

#[track_caller]
fn is_clear(bytes: &str, headers: &[&str], cells: &[&[&str]]) {
    let (found_headers, found) = clear(bytes);
    assert_eq!(found_headers, headers, "{bytes:?}");
    assert_eq!(found, cells, "{bytes:?}");
}

/// Settles each doubt with each of its options, after which it is gone.
#[track_caller]
fn settles(bytes: impl AsRef<[u8]>, code: &str) -> Vec<Vec<Vec<String>>> {
    let found = read(&bytes);
    let doubt = found
        .table
        .doubts()
        .iter()
        .find(|doubt| doubt.code == code)
        .expect("the doubt");
    let settled = doubt.options.iter().map(|given| {
        let settled = read_with(&bytes, Value::Object(given.clone()));
        let codes: Vec<&str> = settled.codes().iter().map(|(code, _)| *code).collect();
        assert!(!codes.contains(&code), "{given:?}: {codes:?}");
        settled.cells()
    });
    settled.collect()
}

#[test]
fn a_decimal_comma_belongs_to_its_number() {
    is_clear(
        "Zeit;OD, 600 nm\n0;0,05\n30;0,08\n60;0,13\n",
        &["Zeit", "OD, 600 nm"],
        &[&["0", "0.05"], &["30", "0.08"], &["60", "0.13"]],
    );
    is_clear(
        "name;vol\nA1;1,5\nA2;2,25\n",
        &["name", "vol"],
        &[&["A1", "1.5"], &["A2", "2.25"]],
    );
    is_clear("a\tb\n1,5\t2\n", &["a", "b"], &[&["1.5", "2"]]);
    is_clear("a,b\n\"1,5\",2\n", &["a", "b"], &[&["1.5", "2"]]);
    is_clear(
        "a;b\n1.234,5;2\n12,5;3\n",
        &["a", "b"],
        &[&["1234.5", "2"], &["12.5", "3"]],
    );
    is_clear(
        "a;b\n1 234,5;x\n12,5;y\n",
        &["a", "b"],
        &[&["1234.5", "x"], &["12.5", "y"]],
    );
    is_clear(
        "a,b\n\"1,234.5\",x\n0.5,y\n",
        &["a", "b"],
        &[&["1234.5", "x"], &["0.5", "y"]],
    );
    is_clear("vol\n1,5\n2,5\n", &["vol"], &[&["1.5"], &["2.5"]]);
    // Fields that commas separate have no decimal commas.
    is_clear("a,b\n1.234,x\n", &["a", "b"], &[&["1.234", "x"]]);
}

#[test]
fn two_readings_that_fit_equally_well_are_a_doubt() {
    let read_as = settles("a;b\n1.234;x\n", "number_format");
    assert_eq!(read_as, [[["1.234", "x"]], [["1234", "x"]]]);
    let read_as = settles("a,b\n\"1,234\",x\n", "number_format");
    assert_eq!(read_as, [[["1.234", "x"]], [["1234", "x"]]]);
    settles("a,b;c\nx,y;z\nu,v;w\n", "delimiter");
    let read_as = settles("OD, 600 nm\n0,05\n0,08\n", "delimiter");
    assert_eq!(read_as[1], [["0.05"], ["0.08"]]);
    // Groups that no other number of the column confirms.
    settles("a;b\n1.234;0,5\n", "number_format");
    let found = read("a;b\n1.234;0,5\n");
    assert!(found.table.check().is_err());
    assert_eq!(found.table.doubts()[0].columns, [0]);
}

#[test]
fn groups_must_be_in_threes() {
    let found = read_with("a\n12,34\n", json!({"thousands": ",", "delimiter": ";"}));
    assert_eq!(found.types(), [DataType::Text]);
    let mut table = found.table;
    table.read_as(&[Some(DataType::Float)]);
    table.source_rewound();
    let row = table.next_row().unwrap().unwrap();
    let cell = row.cells[0].clone().unwrap();
    assert!(cell.to_scalar(DataType::Float).is_err());
}

#[test]
fn a_first_line_may_name_the_delimiter() {
    is_clear(
        "sep=;\nname;vol\nA1;1,5\n",
        &["name", "vol"],
        &[&["A1", "1.5"]],
    );
    let found = read("sep=\t\r\na\tb\r\n1\t2\r\n");
    assert_eq!(found.rows[0].0, 3);
}

#[test]
fn a_last_line_without_a_break_is_a_line() {
    is_clear("a,b;c\nx;1", &["a,b", "c"], &[&["x", "1"]]);
}

#[test]
fn a_quotation_that_eats_rows_is_a_problem_where_it_opens() {
    let unclosed = read("name,vol,note\nA1,1.5,ok\nA2,1.6,\"no end\nA3,1.7,fine\nA4,1.8,fine\n");
    assert_eq!(unclosed.codes(), [("quotation_mark", "rows[3]")]);
    assert!(
        unclosed.problems[0].contains("line 3"),
        "{:?}",
        unclosed.problems
    );
    let swallowed = "name,vol,note\nA1,1.5,ok\nA2,1.6,\"no end\nA3,1.7,fine\"\nA4,1.8,x\n";
    let read_as = settles(swallowed, "quotation_mark");
    assert_eq!(read_as[0].len(), 3);
    assert_eq!(read_as[1].len(), 4);
    // A reading that is sent back settles the doubt only if its quotation mark was given.
    let first = read(swallowed);
    let again = read_with(swallowed, first.table.reading().to_json().into());
    assert_eq!(again.codes(), [("quotation_mark", "rows[3]")]);
    let given = read_with(swallowed, json!({"quote": "\""}));
    let again = read_with(swallowed, given.table.reading().to_json().into());
    assert_eq!((given.codes(), again.codes()), (vec![], vec![]));
    let later = read("name,vol,note\nA1,1.5,ok\nA2,1.6,\"no end\nA3,1.7,\"fine\"\n");
    assert_eq!(later.codes(), [("quotation_mark", "rows[3]")]);
    // One of the lines is a row, the last one is none.
    let remark = "name,vol,note\nA1,1.5,ok\nA2,1.6,\"no end\nA3,1.7,fine\na remark\"\nA4,1.8,x\n";
    assert_eq!(read(remark).codes(), [("quotation_mark", "rows[3]")]);
    // A column with as many texts as numbers may hold either.
    let either = read("a,b\nx,1\ny,w\n\"p,q\nr\",s\n");
    assert_eq!(either.codes(), [("quotation_mark", "rows[4]")]);
    let number = read("a,b\nx,1\ny,2\nz,w\n\"p,q\nr\",s\n");
    assert_eq!(number.codes(), []);
    // Rows with a line break of any kind do not say what a column holds.
    for end in ["\n", "\r"] {
        let found = read(format!("a,b\nx,1\n\"p,q{end}r\",s\n"));
        let codes = found.codes();
        assert!(
            codes.iter().all(|(code, _)| *code != "quotation_mark"),
            "{codes:?}"
        );
    }
    let after = read("a,b\n1,\"a\"b\n");
    assert_eq!(after.codes(), [("quotation_mark", "rows[2]")]);
    // Line breaks in a text are fine.
    is_clear(
        "name,note\nA1,\"two\nlines\"\nA2,x\n",
        &["name", "note"],
        &[&["A1", "two\nlines"], &["A2", "x"]],
    );
    is_clear(
        "name,note,vol\nA1,\"first, line\nsecond, line\",1.5\nA2,x,2.5\n",
        &["name", "note", "vol"],
        &[
            &["A1", "first, line\nsecond, line", "1.5"],
            &["A2", "x", "2.5"],
        ],
    );
}

#[test]
fn one_stray_byte_is_a_problem_of_its_line() {
    let lines = "A1,\u{dc}berstand \u{b5}l\n".repeat(300);
    let bytes = [b"name,note\n", lines.as_bytes(), b"A2,5 \xb5l\n"].concat();
    let found = read(&bytes);
    assert_eq!(found.codes(), [("invalid_bytes", "rows[302]")]);
    assert_eq!(found.cells()[0], ["A1", "\u{dc}berstand \u{b5}l"]);
    let replaced = read_with(&bytes, json!({"invalid_bytes": "replace"}));
    assert_eq!(replaced.codes(), []);
    assert_eq!(replaced.cells()[300], ["A2", "5 \u{fffd}l"]);
    // The first line is read again with the head, the last one is behind it.
    let both = [
        b"name,note\nA0,5 \xb5l\n",
        lines.as_bytes(),
        b"A2,5 \xb5l\n",
    ]
    .concat();
    let problems = read(&both).codes().len();
    assert_eq!(problems, 2);
    let latin = b"name,vol\nA1,5 \xb5l\n";
    assert_eq!(clear(latin).1, [["A1", "5 \u{b5}l"]]);
}

#[test]
fn lines_above_and_below_the_table_are_skipped_and_counted() {
    let found = read("Run ID,17\nProtocol,demo\n\nwell,od,note\nA1,0.5,ok\n");
    assert_eq!(found.headers(), ["well", "od", "note"]);
    assert_eq!(found.table.reading().lines_above, 3);
    assert_eq!(found.table.reading().options.header_row, Some(4));
    assert_eq!(found.rows[0].0, 5);
    assert_eq!(found.codes(), []);
    let below = read("well,od,note\nA1,0.5,ok\n\nExported by X\n");
    assert_eq!(below.codes(), [("second_table", "last_row")]);
    assert_eq!(below.cells().len(), 1);
    assert_eq!(below.table.reading().lines_below, 1);
    let read_as = settles(
        "well,od\nA1,0.5\nA2,0.6\nA3,0.7\n\ntime,temp,note\n0,30,x\n5,31,y\n",
        "second_table",
    );
    assert_eq!(read_as[0], [["A1", "0.5"], ["A2", "0.6"], ["A3", "0.7"]]);
    assert_eq!(read_as[1], [["0", "30", "x"], ["5", "31", "y"]]);
    // Another table of the same width has another header.
    settles("well,od\nA1,0.5\n\nwell,temp\nA1,37\n", "second_table");
    settles("well,od\nA1,0.5\n\nwell,od\nA2,0.6\n", "second_table");
    settles("t,od,note\n0,0.5,x\nEnd of run\n", "second_table");
    let narrow = "k,1\n".repeat(60);
    let long = read(format!("t,od,note\n0,0.5,x\n\n{narrow}"));
    assert_eq!(long.codes(), [("second_table", "last_row")]);
    assert_eq!((long.rows.len(), long.table.reading().lines_below), (1, 60));
}

#[test]
fn a_blank_line_divides_settings_from_a_table_of_texts() {
    for blank in ["", ","] {
        let settings = format!("Operator,Smith\nPlate,X\n{blank}\n");
        let found = read(settings + "name,city\nBob,Rome\nAl,Paris\n");
        let mut doubts = found.table.doubts().iter();
        let header = doubts.find(|doubt| doubt.code == "header_row").unwrap();
        assert_eq!(header.options[1]["header_row"], 4, "{blank:?}");
    }
}

#[test]
fn blank_lines_and_short_rows_are_counted_and_long_ones_are_problems() {
    let found = read("a,b,c\n1,2,3\n\n4,5\n,,\n6,7,8\n\n");
    assert_eq!(found.codes(), []);
    assert_eq!(
        found.cells(),
        [["1", "2", "3"], ["4", "5", "-"], ["6", "7", "8"]]
    );
    let reading = found.table.reading();
    assert_eq!((reading.blank_lines, reading.short_rows), (2, 1));
    let long = read("a,b\n1,2\n3,4,5\n");
    assert_eq!(long.codes(), [("long_row", "rows[3]")]);
    assert!(long.problems[0].contains("line 3 has 3 fields"));
    // Blank fields at the end are padding.
    is_clear(
        "a,b,\n1,2,\n,,\n3,4,\n",
        &["a", "b"],
        &[&["1", "2"], &["3", "4"]],
    );
    is_clear("a,,b\n1,,2\n", &["a", "b"], &[&["1", "2"]]);
    is_clear(
        "a,,b\n1,x,2\n",
        &["a", "column_2", "b"],
        &[&["1", "x", "2"]],
    );
}

#[test]
fn a_line_of_units_is_no_row() {
    let found = read("name,vol,conc [ng/ml]\n,\u{b5}l,\nA1,1.5,2\n");
    assert_eq!(found.codes(), []);
    let units: Vec<_> = found
        .table
        .columns()
        .iter()
        .map(|column| column.unit.as_deref())
        .collect();
    assert_eq!(units, [None, Some("\u{b5}l"), Some("ng/ml")]);
    assert_eq!(found.cells(), [["A1", "1.5", "2"]]);
    assert_eq!(found.table.reading().units_row, Some(2));
}

#[test]
fn headers_are_one_line_and_compared_as_they_look() {
    let found = read("name,\"Vol\r\n(\u{b5}l)\"\r\nZ1,1\r\n");
    assert_eq!(found.headers(), ["name", "Vol (\u{b5}l)"]);
    assert_eq!(found.table.columns()[1].name, "vol");
    assert_eq!(found.rows[0].0, 3);
    let twice = read("Units,n,Units\nx,1,y\n");
    assert_eq!(twice.codes(), [("duplicate_header", "columns.Units")]);
    assert_eq!(read("Units,Units\n").codes(), twice.codes());
    let signs = read("\u{b5}l,\u{3bc}l\n1,2\n");
    assert_eq!(signs.codes()[0].0, "duplicate_header");
    let numbered = read_with(
        "Units,n,Units\nx,1,y\n",
        json!({"duplicate_headers": "number"}),
    );
    assert_eq!(numbered.headers(), ["Units", "n", "Units_2"]);
}

#[test]
fn a_file_without_a_header_is_a_doubt() {
    let read_as = settles("1,2\n3,4\n", "header_row");
    assert_eq!(read_as[0], [["3", "4"]]);
    assert_eq!(read_as[1], [["1", "2"], ["3", "4"]]);
    let none = read_with("1,2\n3,4\n", json!({"header_row": 0}));
    assert_eq!(none.headers(), ["column_1", "column_2"]);
    assert_eq!(none.types(), [DataType::Integer; 2]);
    clear_with("1,2\n3,4\n", json!({"header_row": 0}));
    let given = read_with("x\n\na,b\n1,2\n", json!({"header_row": 3}));
    assert_eq!(given.headers(), ["a", "b"]);
    let blank = Read::of(b"a,b\n\n1,2\n", &options(&json!({"header_row": 2})));
    assert!(matches!(blank.err(), Some(ReadError::NoSuchRow(2))));
    let swapped = options(&json!({"header_row": 3, "last_row": 2}));
    let above = Read::of(b"a,b\n1,2\n3,4\n", &swapped).err();
    assert!(matches!(
        above,
        Some(ReadError::EndsAboveHeader { last: 2, header: 3 })
    ));
}

#[test]
fn rows_behind_the_first_megabytes_do_not_choose_the_header() {
    let text = |note: &str| {
        let values = "A1,1\n".repeat(5);
        format!("Report of,May\nname,vol\n{note},n.d.\n{values}")
    };
    assert_eq!(read(text("x")).codes(), [("header_row", "header_row")]);
    let far = "x".repeat(4 << 20);
    assert_eq!(read(text(&far)).codes(), []);
}

#[test]
fn files_that_are_no_tables_are_refused() {
    let refused = |bytes: &[u8]| Read::of(bytes, &ReadOptions::default()).err().unwrap();
    for blank in ["", "\n\n", "\u{feff}", " \n,,\n"] {
        assert!(
            matches!(refused(blank.as_bytes()), ReadError::NoHeader),
            "{blank:?}"
        );
    }
    assert!(matches!(refused(b"\0\x01\x02"), ReadError::NotText));
    assert!(matches!(
        refused(b"PK\x03\x04 and no archive"),
        ReadError::NotWorkbook
    ));
    assert!(matches!(
        refused(b"\xd0\xcf\x11\xe0"),
        ReadError::NotWorkbook
    ));
    let wide = "a,".repeat(1_700);
    assert!(matches!(
        refused(wide.as_bytes()),
        ReadError::TooManyColumns(_)
    ));
    let long = "a\n".repeat(1_002);
    assert!(matches!(
        refused(long.as_bytes()),
        ReadError::TooManyRows(1_000)
    ));
    let sheet = Read::of(b"a\n1\n", &options(&json!({"sheet": "Plate 1"})));
    assert!(matches!(sheet.err(), Some(ReadError::NoSheets)));
}

#[test]
fn a_refusal_has_the_code_of_its_cause() {
    for (bytes, given, code) in [
        ("\0", json!({}), ErrorCode::UnknownFormat),
        (
            "PK\x03\x04 and no archive",
            json!({}),
            ErrorCode::UnreadableFile,
        ),
        ("\n", json!({}), ErrorCode::UnreadableFile),
        (
            "a\n1\n",
            json!({"sheet": "Plate 1"}),
            ErrorCode::SheetUnknown,
        ),
    ] {
        let refused = Read::of(bytes.as_bytes(), &options(&given)).err().unwrap();
        assert_eq!(refused.code(), code, "{bytes:?}");
    }
    let hidden = ReadError::OnlyHidden("\"Raw\"".to_owned());
    assert_eq!(hidden.code(), ErrorCode::SheetUnknown);
    let unknown = ReadError::unknown_sheet("Plate", &[]);
    assert_eq!(unknown.code(), ErrorCode::SheetUnknown);
    let row = ReadError::Row("line 7".to_owned());
    assert_eq!(row.code(), ErrorCode::UnreadableRow);
}

#[test]
fn a_long_table_arrives_in_parts() {
    let rows: Vec<String> = (0..20_000).map(|n| format!("{n},{}", n % 7)).collect();
    let text = format!("n,m\n{}\n", rows.join("\n"));
    let source = Box::new(Cursor::new(text.into_bytes()));
    let mut table = open_table(source, &ReadOptions::default(), 20_000).unwrap();
    assert_eq!(table.row_count(), 20_000);
    let mut lengths = Vec::new();
    while let Some(part) = table.next_part().unwrap() {
        lengths.push(part[0].len());
    }
    assert_eq!(lengths, [PART_ROWS, PART_ROWS, 20_000 - 2 * PART_ROWS]);
}
