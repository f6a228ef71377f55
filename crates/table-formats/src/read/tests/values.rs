//! Values of cells, and types of columns.

use super::*;
use crate::read::{head::Extent, table::open_extent};

#[test]
fn texts_are_as_they_are_and_numbers_are_trimmed() {
    is_clear(
        "name,n\n\" a \" , 1 \nb, 2\n",
        &["name", "n"],
        &[&[" a ", "1"], &["b", "2"]],
    );
    let found = read("a,b\nx,\n\"\",1\n");
    assert_eq!(found.cells(), [["x", "-"], ["", "1"]]);
    let composed = read("a\nu\u{308}\n");
    assert_eq!(composed.cells(), [["\u{fc}"]]);
    // Also if the reading is sent back, which names the default null values.
    is_clear(
        "n,name\nNA,NA\n1,Ada\n",
        &["n", "name"],
        &[&["-", "NA"], &["1", "Ada"]],
    );
    let given = read_with(
        "n,name\nn.d.,n.d.\n1,NA\n",
        json!({"null_values": ["n.d."]}),
    );
    assert_eq!(given.cells(), [["-", "-"], ["1", "NA"]]);
    for ids in [["007", "12"], ["12345678901234567890", "1"]] {
        let found = read(format!("id\n{}\n{}\n", ids[0], ids[1]));
        assert_eq!(found.cells(), ids.map(|id| [id]));
        assert_eq!(found.types(), [DataType::Text]);
    }
}

#[test]
fn texts_in_a_column_of_numbers_become_null_on_request() {
    let text = "n\n1\n2\n3\n4\nOVRFLW\n";
    let found = read(text);
    assert_eq!(found.codes(), [("text_numbers", "columns.n")]);
    assert_eq!(found.types(), [DataType::Text]);
    assert!(found.table.check().is_ok());
    let nulls = read_with(text, json!({"text_numbers": "null"}));
    assert_eq!(nulls.types(), [DataType::Integer]);
    assert_eq!(nulls.cells().concat(), ["1", "2", "3", "4", "-"]);
    assert_eq!(nulls.table.reading().null_text_numbers, 1);
    // Infinity is never null.
    let infinite = read_with("n\n1\n2\n3\n4\ninf\n", json!({"text_numbers": "null"}));
    assert_eq!(infinite.cells()[4], ["inf"]);
    let mut table = infinite.table;
    table.source_rewound();
    assert!(matches!(table.next_part(), Err(ReadError::Row(_))));
    let mostly_text = read_with("n\n1\nx\ny\n", json!({"text_numbers": "null"}));
    assert_eq!(mostly_text.types(), [DataType::Text]);
}

#[test]
fn dates_are_found_and_two_ways_to_read_them_are_a_doubt() {
    let found = read("d\n05.03.2024\n13.03.2024\n");
    assert_eq!(
        (found.types(), found.cells().concat()),
        (
            vec![DataType::Date],
            vec!["2024-03-05".to_owned(), "2024-03-13".to_owned()]
        )
    );
    let format = found.table.reading().options.date_format.clone().unwrap();
    assert_eq!(format.as_str(), "%d.%m.%Y");
    // An import reads ISO dates only, so that the format is to be confirmed.
    assert_eq!(found.codes(), [("date_format", "columns.d")]);
    let read_as = settles("d\n13.3.2024\n", "date_format");
    assert_eq!(read_as, [[["2024-03-13"]]]);
    assert_eq!(read("d\n2024-03-13\n").codes(), []);
    assert_eq!(read("d\n3/13/2024\n3/5/2024\n").cells()[1], ["2024-03-05"]);
    assert_eq!(read("d\n13/3/2024\n3/5/2024\n").cells()[1], ["2024-05-03"]);
    let read_as = settles("d\n3/5/2024\n", "date_format");
    assert_eq!(read_as, [[["2024-05-03"]], [["2024-03-05"]]]);
    let iso = read("at\n2024-03-05T14:22:01+0100\n2024-03-05 14:22Z\n");
    assert_eq!(iso.types(), [DataType::Datetime]);
    assert_eq!(iso.cells()[0], ["2024-03-05T13:22:01Z"]);
    let two = read("d,e\n05.03.2024,2024/03/05\n");
    assert_eq!(two.codes(), [("date_format", "columns.e")]);
    let message = "these dates are %Y/%m/%d, and those of another column %d.%m.%Y; an import reads one format";
    assert_eq!(two.table.doubts()[0].message, message);
    assert_eq!(two.cells(), [["2024-03-05", "2024-03-05"]]);
    assert!(two.table.check().is_ok());
    settles("d,e\n05.03.2024,2024/03/05\n", "date_format");
    let mixed = read("d\n2024-03-05\n1\n");
    assert_eq!(mixed.types(), [DataType::Text]);
}

#[test]
fn times_without_an_offset_need_a_zone() {
    let text = "at,n\n05.03.2024 14:22,1\n06.03.2024 14:22,2\n";
    let found = read(text);
    let unsettled = [("timezone", "columns.at"), ("date_format", "columns.at")];
    assert_eq!(found.codes(), unsettled);
    assert_eq!(found.types()[0], DataType::Text);
    assert_eq!(found.cells()[0][0], "05.03.2024 14:22");
    let zoned = read_with(text, json!({"timezone": "Europe/Berlin"}));
    assert_eq!(zoned.types()[0], DataType::Datetime);
    assert_eq!(zoned.cells()[0][0], "2024-03-05T13:22:00Z");
    let gap = read_with(
        "at\n2024-03-31 02:30\n",
        json!({"timezone": "Europe/Berlin"}),
    );
    assert!(
        gap.problems[0].contains("left this time out"),
        "{:?}",
        gap.problems
    );
    let fold = read_with(
        "at\n2024-10-27 02:30\n",
        json!({"timezone": "Europe/Berlin"}),
    );
    assert!(fold.problems[0].contains("repeats"), "{:?}", fold.problems);
}

#[test]
fn columns_have_the_first_type_that_all_cells_have() {
    for (cells, data_type) in [
        (["true", "FALSE"], DataType::Boolean),
        (["1", "-20"], DataType::Integer),
        (["1", "2.5"], DataType::Float),
        (["1e3", "2"], DataType::Float),
        (["2026-03-01", "NA"], DataType::Date),
        (["1", "two"], DataType::Text),
        (["NA", "NaN"], DataType::Text),
        (["0:15:00", "0:16:00"], DataType::Text),
    ] {
        let found = read(format!("x,y\n{},a\n{},b\n", cells[0], cells[1]));
        assert_eq!(found.types()[0], data_type, "{cells:?}");
    }
}

#[test]
fn a_column_has_a_type_or_a_doubt_by_its_cells() {
    for (cells, zone, data_type, code) in [
        (
            &["1", "2", "3", "4", "x"][..],
            "",
            DataType::Text,
            "text_numbers",
        ),
        (&["1", "2", "3", "x"], "", DataType::Text, ""),
        (&["1", "2", "3", "007", "x"], "", DataType::Text, ""),
        (&["1", "", "2"], "", DataType::Integer, ""),
        (&["1", "NA", "2.5"], "", DataType::Float, ""),
        (&["true", "1"], "", DataType::Text, ""),
        (&["true", "", "NA"], "", DataType::Boolean, ""),
        (&["", "NA"], "", DataType::Text, ""),
        (&["2024-03-05", "2024-03-06"], "", DataType::Date, ""),
        (
            &["2024-03-05T10:00Z", "2024-03-06T10:00+01:00"],
            "",
            DataType::Datetime,
            "",
        ),
        (
            &["2024-03-05", "2024-03-06T10:00Z"],
            "UTC",
            DataType::Text,
            "",
        ),
        (
            &["2024-03-05", "2024-03-06T10:00"],
            "UTC",
            DataType::Text,
            "",
        ),
        (
            &["2024-03-05T10:00", "2024-03-06T10:00Z"],
            "",
            DataType::Text,
            "timezone",
        ),
        (
            &["2024-03-05T10:00", "2024-03-06T10:00Z"],
            "UTC",
            DataType::Datetime,
            "",
        ),
        (
            &["2024-03-05T10:00", "2024-03-06T10:00"],
            "UTC",
            DataType::Datetime,
            "",
        ),
        (
            &["13.03.2024", "2024-03-06"],
            "",
            DataType::Date,
            "date_format",
        ),
        (&["13.03.2024", "x"], "", DataType::Text, ""),
        (&["13.03.2024", "1"], "", DataType::Text, ""),
    ] {
        let rows = cells.join(",k\n");
        let options = if zone.is_empty() {
            json!({})
        } else {
            json!({"timezone": zone})
        };
        let found = read_with(format!("v,key\n{rows},k\n"), options);
        let codes: Vec<&str> = found.codes().into_iter().map(|(code, _)| code).collect();
        let expected: Vec<&str> = [code].into_iter().filter(|code| !code.is_empty()).collect();
        assert_eq!(
            (found.types()[0], codes),
            (data_type, expected),
            "{cells:?} {zone}"
        );
    }
}

#[test]
fn digits_that_no_float_holds_are_texts_or_problems() {
    for (cells, data_type) in [
        (["9007199254740993", "2"], DataType::Integer),
        (["9007199254740993", "1.5"], DataType::Text),
        (["9007199254740992", "1.5"], DataType::Float),
        (["-9007199254740993", "1e3"], DataType::Text),
        (["9007199254740993.5", "1"], DataType::Text),
        (["9007199254740994.0", "1"], DataType::Float),
        (["0.12345678901234567890", "1"], DataType::Float),
        (["1.2345678901234567890e20", "1"], DataType::Float),
    ] {
        let found = read(format!("v,y\n{},a\n{},b\n", cells[0], cells[1]));
        assert_eq!(found.types()[0], data_type, "{cells:?}");
        assert_eq!(found.codes(), [], "{cells:?}");
    }
    let styled = json!({"decimal": ",", "thousands": ".", "delimiter": ";"});
    for (cell, options, is_kept) in [
        ("9007199254740993", json!({}), false),
        ("9007199254740993.5", json!({}), false),
        ("12345678901234567890", json!({}), false),
        ("9.007.199.254.740.993", styled.clone(), false),
        ("9.007.199.254.740.993,5", styled, false),
        ("9007199254740992", json!({}), true),
        ("18446744073709551616", json!({}), true),
        ("100000000000000000000", json!({}), true),
        ("1.2345678901234567890e20", json!({}), true),
    ] {
        let mut table = read_with(format!("v\n{cell}\n"), options).table;
        table.source_rewound();
        table.read_as(&[Some(DataType::Float)]);
        let row = table.next_row().unwrap().unwrap();
        let value = row.cells[0].clone().unwrap().to_scalar(DataType::Float);
        assert_eq!(value.is_ok(), is_kept, "{cell}: {value:?}");
    }
}

#[test]
fn digits_below_a_microsecond_are_kept_or_a_problem() {
    for (cell, data_type) in [
        ("2026-03-01T12:00:00.123456789Z", DataType::Text),
        ("2026-03-01T12:00:00.123456Z", DataType::Datetime),
        ("2026-03-01T12:00:00.123456000Z", DataType::Datetime),
        ("20260301T120000.1234567Z", DataType::Text),
    ] {
        let found = read(format!("at\n{cell}\n"));
        assert_eq!(found.types(), [data_type], "{cell}");
        let mut table = found.table;
        table.source_rewound();
        table.read_as(&[Some(DataType::Datetime)]);
        let row = table.next_row().unwrap().unwrap();
        let value = row.cells[0].clone().unwrap().to_scalar(DataType::Datetime);
        assert_eq!(value.is_ok(), data_type == DataType::Datetime, "{cell}");
    }
}

#[test]
fn an_integer_column_takes_a_whole_number_in_any_form() {
    for (cell, expected) in [
        ("1e18", Some(1_000_000_000_000_000_000)),
        ("-9.007199254740993E+15", Some(-9_007_199_254_740_993)),
        ("9007199254740993.0", Some(9_007_199_254_740_993)),
        ("1200e-2", Some(12)),
        ("1e19", None),
        ("1e300", None),
        ("9007199254740993.5", None),
        ("90071992547409935e-1", None),
    ] {
        let mut table = read(format!("v\n{cell}\n")).table;
        table.source_rewound();
        table.read_as(&[Some(DataType::Integer)]);
        let row = table.next_row().unwrap().unwrap();
        let value = row.cells[0].clone().unwrap().to_scalar(DataType::Integer);
        assert_eq!(
            value.ok(),
            expected.map(labdata_domain::scalar::Scalar::Integer),
            "{cell}"
        );
    }
}

#[test]
fn a_cell_is_read_as_the_type_that_is_asked_for() {
    use time::macros::{date, datetime};
    let text = |text: &str| FileCell::Text(text.to_owned());
    for (cell, data_type, expected) in [
        ("1", DataType::Integer, FileCell::Integer(1)),
        ("1.0", DataType::Integer, FileCell::Float(1.0)),
        ("1.5", DataType::Integer, text("1.5")),
        (
            "-9007199254740991.0",
            DataType::Integer,
            FileCell::Float(-9_007_199_254_740_991.0),
        ),
        (
            "9007199254740992.0",
            DataType::Integer,
            FileCell::Integer(9_007_199_254_740_992),
        ),
        (" x ", DataType::Integer, text("x")),
        (" x ", DataType::String, text(" x ")),
        ("1e3", DataType::Float, FileCell::Float(1_000.0)),
        ("1", DataType::Float, FileCell::Integer(1)),
        (" true ", DataType::Boolean, text("true")),
        (
            "2024-03-05",
            DataType::Datetime,
            FileCell::Date(date!(2024 - 03 - 05)),
        ),
        (
            "2024-03-05",
            DataType::Date,
            FileCell::Date(date!(2024 - 03 - 05)),
        ),
        (
            "20240305",
            DataType::Date,
            FileCell::Date(date!(2024 - 03 - 05)),
        ),
        (
            "2024-03-05T00:00",
            DataType::Date,
            FileCell::Date(date!(2024 - 03 - 05)),
        ),
        (
            "2024-03-05T00:00Z",
            DataType::Date,
            FileCell::Date(date!(2024 - 03 - 05)),
        ),
        (
            "2024-03-05T00:00",
            DataType::Datetime,
            FileCell::LocalTime(datetime!(2024-03-05 00:00)),
        ),
        (
            "2024-03-05T00:00Z",
            DataType::Datetime,
            FileCell::Instant(datetime!(2024-03-05 00:00 UTC)),
        ),
        (
            "2024-03-05T10:00",
            DataType::Date,
            FileCell::LocalTime(datetime!(2024-03-05 10:00)),
        ),
        (
            "2024-03-05T10:00Z",
            DataType::Date,
            FileCell::Instant(datetime!(2024-03-05 10:00 UTC)),
        ),
        ("noon", DataType::Datetime, text("noon")),
    ] {
        let mut table = read(format!("v,key\n{cell},k\n")).table;
        table.read_as(&[Some(data_type), None]);
        table.source_rewound();
        let row = table.next_row().unwrap().unwrap();
        assert_eq!(row.cells, [Some(expected), None], "{cell} {data_type:?}");
    }
}

#[test]
fn an_import_is_told_the_formats_of_dates_that_it_does_not_read() {
    let target = ImportTarget::new(vec!["name".to_owned(), "d".to_owned()]);
    let none = ReadOptions::default();
    for (cell, formats) in [
        ("13.03.2024", &["%d.%m.%Y"][..]),
        ("03/04/2024", &["%d/%m/%Y", "%m/%d/%Y"]),
        ("noon", &[]),
    ] {
        let source = Box::new(Cursor::new(format!("name,d\nx,{cell}\n").into_bytes()));
        let mut table = open_extent(source, &none, 9, Extent::Whole, Some(&target)).unwrap();
        table.read_as(&[None, Some(DataType::Date)]);
        let row = table.next_row().unwrap().unwrap();
        let found = match row.cells[1].clone().unwrap() {
            FileCell::UnreadDate(date) => date.formats,
            FileCell::Text(text) => vec![String::new(); usize::from(text != cell)],
            other => vec![other.to_string()],
        };
        assert_eq!(found, formats, "{cell}");
    }
}

#[test]
fn rows_that_end_with_a_delimiter_are_read_in_one_way() {
    for text in [
        "a,b\n1,2,\n3,4,\n",
        "a;b\n1;2;\n3;4;\n",
        "a\tb\n1\t2\t\n3\t4\t\n",
    ] {
        is_clear(text, &["a", "b"], &[&["1", "2"], &["3", "4"]]);
    }
}
