//! Values of cells: times, errors, formulas, numbers.

use super::*;

#[test]
fn elapsed_times_keep_sign_and_fraction() {
    let times = ["0", "0.5", "1", "1.010416666666667", "-0.04166666666666666"];
    let mut rows = row(1, &[inline("A1", "name"), inline("B1", "t")]);
    for (time, number) in times.iter().zip(2..) {
        rows += &row(
            number,
            &[
                inline(&format!("A{number}"), "x"),
                styled(&format!("B{number}"), 3, time),
            ],
        );
    }
    let mut table = open_clear(workbook(&rows));
    assert_eq!(table.columns()[1].data_type, DataType::Float);
    assert_eq!(table.columns()[1].unit.as_deref(), Some("s"));
    let seconds: Vec<String> = cells(&mut table)
        .into_iter()
        .map(|row| row[1].clone())
        .collect();
    assert_eq!(seconds, ["0", "43200", "86400", "87300", "-3600"]);
    let mut table = open_clear(workbook(&rows));
    table.read_as(&[None, Some(DataType::Text)]);
    let texts: Vec<String> = cells(&mut table)
        .into_iter()
        .map(|row| row[1].clone())
        .collect();
    assert_eq!(texts, ["PT0S", "PT12H", "PT24H", "PT24H15M", "-PT1H"]);
    // Times of a day only are times of day.
    let rows = row(1, &[inline("A1", "t")]) + &row(2, &[styled("A2", 3, "0.3541666666666667")]);
    assert_eq!(cells(&mut open_clear(workbook(&rows))), [["08:30:00"]]);
}

#[test]
fn errors_and_formulas_without_a_value_are_problems() {
    let header = row(1, &[inline("A1", "name"), inline("B1", "val")]);
    let error = row(
        2,
        &[
            inline("A2", "A1"),
            "<c r=\"B2\" t=\"e\"><v>#DIV/0!</v></c>".to_owned(),
        ],
    );
    let formula = row(
        3,
        &[
            inline("A3", "A2"),
            "<c r=\"B3\"><f>B2*2</f><v/></c>".to_owned(),
        ],
    );
    let stored = row(
        4,
        &[
            inline("A4", "A3"),
            "<c r=\"B4\"><f>1+1</f><v>2</v></c>".to_owned(),
        ],
    );
    let empty_text = row(
        5,
        &[
            inline("A5", "A4"),
            "<c r=\"B5\" t=\"str\"><f>\"\"</f><v></v></c>".to_owned(),
        ],
    );
    let bytes = workbook(&[header, error, formula, stored, empty_text].concat());
    let table = open_with(bytes.clone(), json!({})).unwrap();
    let doubts = table.doubts().iter();
    let doubts: Vec<_> = doubts
        .map(|doubt| (&*doubt.code, doubt.path.as_str()))
        .collect();
    assert_eq!(
        doubts,
        [("error_cell", "rows[2]"), ("error_cell", "rows[3]")]
    );
    let mut nulls = open_with(bytes, json!({"error_cells": "null"})).unwrap();
    assert_eq!(nulls.doubts(), []);
    let found = cells(&mut nulls);
    assert_eq!(found, [["A1", "-"], ["A2", "-"], ["A3", "2"], ["A4", "-"]]);
    assert_eq!(nulls.reading().null_error_cells, 2);
}

#[test]
fn errors_that_the_library_does_not_know_are_error_cells() {
    let error =
        |place: &str, text: &str| format!("<c{place} t=\"e\"><f>SEQUENCE(3)</f><v>{text}</v></c>");
    // With and without positions, which decide where the cells behind are.
    for placed in [true, false] {
        let at = |place: &str| {
            if placed {
                format!(" r=\"{place}\"")
            } else {
                String::new()
            }
        };
        let number = |place: &str, number: &str| format!("<c{}><v>{number}</v></c>", at(place));
        for text in [
            "#SPILL!",
            "#CALC!",
            "#FIELD!",
            "#BLOCKED!",
            "#CONNECT!",
            "#UNKNOWN!",
            "#BUSY!",
        ] {
            let rows = [
                row(
                    1,
                    &[inline("A1", "a"), inline("B1", "b"), inline("C1", "c")],
                ),
                row(
                    2,
                    &[error(&at("A2"), text), number("B2", "1"), number("C2", "2")],
                ),
                row(
                    3,
                    &[number("A3", "3"), number("B3", "4"), error(&at("C3"), text)],
                ),
            ];
            let bytes = workbook(&rows.concat());
            let table = open_with(bytes.clone(), json!({})).unwrap();
            let messages: Vec<&str> = table
                .doubts()
                .iter()
                .map(|it| it.message.as_str())
                .collect();
            let expected = [2, 3].map(|row| format!("row {row}: the cell has the error {text}"));
            assert_eq!(messages, expected, "{placed}");
            let mut table = open_with(bytes, json!({"error_cells": "null"})).unwrap();
            assert_eq!(table.columns()[0].data_type, DataType::Integer);
            assert_eq!(
                cells(&mut table),
                [["-", "1", "2"], ["3", "4", "-"]],
                "{placed} {text}"
            );
        }
    }
}

#[test]
fn an_error_for_a_missing_number_is_one_in_a_column_of_texts() {
    let missing = "<c r=\"A3\" t=\"e\"><v>#N/A</v></c>".to_owned();
    let sheet = |first: String| {
        let rows = [
            row(1, &[inline("A1", "a"), inline("B1", "n")]),
            row(2, &[first, number("B2", "1")]),
            row(3, &[missing.clone(), number("B3", "2")]),
        ];
        workbook(&rows.concat())
    };
    let mut numbers = open_with(sheet(number("A2", "1")), json!({})).unwrap();
    assert_eq!(numbers.doubts(), []);
    while let Some(row) = numbers.next_row().unwrap() {
        assert_eq!(row.problems, Vec::<String>::new());
    }
    let texts = open_with(sheet(inline("A2", "x")), json!({})).unwrap();
    let [doubt] = texts.doubts() else {
        panic!("{:?}", texts.doubts());
    };
    assert_eq!(
        (&*doubt.code, doubt.path.as_str()),
        ("error_cell", "rows[3]")
    );
    assert_eq!(doubt.message, "row 3: the cell has the error #N/A");
    let nulls = open_with(sheet(inline("A2", "x")), json!({"error_cells": "null"})).unwrap();
    assert_eq!(nulls.doubts(), []);
}

#[test]
fn a_row_of_formulas_is_a_row() {
    let rows = row(1, &[inline("A1", "a"), inline("B1", "b")])
        + &row(
            2,
            &[
                "<c r=\"A2\"><f>1+1</f></c>".to_owned(),
                "<c r=\"B2\"><f>1+1</f></c>".to_owned(),
            ],
        );
    let table = open_with(workbook(&rows), json!({})).unwrap();
    assert_eq!(table.row_count(), 1);
    assert_eq!(table.doubts()[0].code, "error_cell");
}

#[test]
fn a_percent_cell_is_its_fraction_and_a_format_does_not_round() {
    let rows = row(1, &[inline("A1", "p"), inline("B1", "x")])
        + &row(2, &[styled("A2", 4, "0.87"), styled("B2", 5, "1.23456")]);
    assert_eq!(
        cells(&mut open_clear(workbook(&rows))),
        [["0.87", "1.23456"]]
    );
}

#[test]
fn texts_of_sheets_are_numbers_in_their_style() {
    let rows = row(1, &[inline("A1", "name"), inline("B1", "od")])
        + &row(2, &[inline("A2", " A1 "), inline("B2", "0,05")])
        + &row(3, &[inline("A3", "A2"), number("B3", "0.08")]);
    assert_eq!(
        cells(&mut open_clear(workbook(&rows))),
        [[" A1 ", "0.05"], ["A2", "0.08"]]
    );
}

#[test]
fn times_of_sheets_have_no_offset() {
    let rows = row(1, &[inline("A1", "at")])
        + &row(2, &[styled("A2", 2, "46082.5")])
        + &row(3, &[styled("A3", 2, "46083")]);
    let mut table = open_with(workbook(&rows), json!({})).unwrap();
    assert_eq!(table.doubts()[0].code, "timezone");
    assert_eq!(cells(&mut table), [["2026-03-01T12:00:00"], ["2026-03-02"]]);
    let zone = json!({"timezone": "UTC"});
    let mut table = open_with(workbook(&rows), zone).unwrap();
    assert_eq!(table.columns()[0].data_type, DataType::Datetime);
    let row = table.next_row().unwrap().unwrap();
    let cell = row.cells[0].clone().unwrap().to_scalar(DataType::Datetime);
    assert_eq!(cell, Ok(Scalar::Datetime(datetime!(2026-03-01 12:00 UTC))));
    assert_eq!(cells(&mut table), [["2026-03-02T00:00:00Z"]]);
}

#[test]
fn numbers_beyond_the_digits_of_a_workbook_are_floats_only() {
    let sheet = |digits: &str| {
        let rows = row(1, &[inline("A1", "code"), inline("B1", "n")])
            + &row(2, &[inline("A2", "K7"), number("B2", digits)])
            + &row(3, &[number("A3", digits), number("B3", "1")]);
        workbook(&rows)
    };
    for digits in ["12345678901234567", "-9007199254740993", "1e300"] {
        let mut table = open_clear(sheet(digits));
        assert_eq!(table.columns()[1].data_type, DataType::Float);
        let summary = summarize(&mut table, 10).unwrap();
        let doubts: Vec<&str> = summary.doubts.iter().map(|it| it.path.as_str()).collect();
        assert_eq!(doubts, ["rows[3]"], "{digits}");
        assert_eq!(summary.rows[0][1].as_f64(), digits.parse().ok());
        assert!(open_clear(sheet(digits)).next_part().is_err());
        let mut table = open_clear(sheet(digits));
        table.read_as(&[None, Some(DataType::Integer)]);
        let row = table.next_row().unwrap().unwrap();
        let cell = row.cells[1].clone().unwrap();
        let message = cell.to_scalar(DataType::Integer).unwrap_err();
        assert!(message.contains("more than 15 digits"), "{message}");
    }
    let mut exact = open_clear(sheet("9007199254740991"));
    let summary = summarize(&mut exact, 10).unwrap();
    assert_eq!(summary.rows[1][0], json!("9007199254740991"));
    assert_eq!(summary.doubts, []);
}

#[test]
fn a_preview_shows_mixed_cells_as_the_texts_that_are_stored() {
    let rows = row(1, &[inline("A1", "x"), inline("B1", "ok")])
        + &row(
            2,
            &[
                number("A2", "1"),
                "<c r=\"B2\" t=\"b\"><v>1</v></c>".to_owned(),
            ],
        )
        + &row(
            3,
            &[
                "<c r=\"A3\" t=\"b\"><v>1</v></c>".to_owned(),
                inline("B3", "false"),
            ],
        )
        + &row(4, &[inline("A4", "K7"), inline("B4", "TRUE")]);
    let summary = summarize(&mut open_clear(workbook(&rows)), 10).unwrap();
    let expected = [
        [json!("1"), json!(true)],
        [json!("true"), json!(false)],
        [json!("K7"), json!(true)],
    ];
    assert_eq!(summary.rows, expected);
    assert_eq!(summary.columns[0].examples, ["1", "true", "K7"]);
}

#[test]
fn headers_of_a_sheet_may_be_values() {
    let boolean = "<c r=\"A1\" t=\"b\"><v>1</v></c>".to_owned();
    let names = [
        boolean,
        number("B1", "450"),
        number("C1", "0.5"),
        styled("D1", 1, "46082"),
        styled("E1", 2, "46082.5"),
        styled("F1", 3, "0.3541666666666667"),
        styled("G1", 3, "1.5"),
        inline("H1", "od"),
    ];
    let values = ["A2", "B2", "C2", "D2", "E2", "F2", "G2", "H2"].map(|place| number(place, "1"));
    let rows = row(1, &names) + &row(2, &values);
    let table = open_with(workbook(&rows), json!({"header_row": 1})).unwrap();
    assert_eq!(
        headers(&table),
        [
            "true",
            "450",
            "0.5",
            "2026-03-01",
            "2026-03-01T12:00:00",
            "08:30:00",
            "36:00:00",
            "od"
        ]
    );
}

#[test]
fn each_cell_of_a_merged_region_has_its_value() {
    let names = row(1, &["A1", "B1", "C1"].map(|place| inline(place, place)));
    let merged = |regions: &[&str]| {
        let regions = regions
            .iter()
            .map(|region| format!("<mergeCell ref=\"{region}\"/>"));
        format!("<mergeCells>{}</mergeCells>", regions.collect::<String>())
    };
    let filled = row(2, &[inline("A2", "x"), number("C2", "1")])
        + &row(
            3,
            &[inline("A3", "y"), number("B3", "7"), number("C3", "2")],
        )
        + &row(4, &[number("C4", "3")]);
    for (regions, expected) in [
        (&[][..], [["x", "-", "1"], ["y", "7", "2"], ["-", "-", "3"]]),
        (
            &["A2:B2"],
            [["x", "x", "1"], ["y", "7", "2"], ["-", "-", "3"]],
        ),
        // Values lie hidden under the region, which is longer than the table.
        (
            &["A2:B9"],
            [["x", "x", "1"], ["x", "x", "2"], ["x", "x", "3"]],
        ),
        (
            &["A3:A4"],
            [["x", "-", "1"], ["y", "7", "2"], ["y", "-", "3"]],
        ),
        (
            &["B2:B4"],
            [["x", "-", "1"], ["y", "-", "2"], ["-", "-", "3"]],
        ),
    ] {
        let rows = format!("{names}{filled}");
        let mut table = open_clear(sheet_of(&rows, &merged(regions), ""));
        assert_eq!(cells(&mut table), expected, "{regions:?}");
    }
    // The only cell of a row is a title if it is merged over columns, and a value if over rows.
    let single = row(1, &[inline("A1", "n")]) + &row(2, &[number("A2", "1")]);
    let mut table = open_clear(sheet_of(&single, &merged(&["A2:A2"]), ""));
    assert_eq!(cells(&mut table), [["1"]]);
    let tall = single.clone() + &row(3, &[number("A3", "2")]) + "<row r=\"4\"><c r=\"A4\"/></row>";
    let mut table = open_clear(sheet_of(&tall, &merged(&["A2:A3"]), ""));
    assert_eq!(cells(&mut table), [["1"], ["1"]]);
    let titled = single + &row(3, &[inline("A3", "Plate 2")]) + &row(4, &[number("A4", "2")]);
    let table = open_with(sheet_of(&titled, &merged(&["A3:B3"]), ""), json!({})).unwrap();
    assert_eq!(table.doubts()[0].code, "merged_row");
}

#[test]
fn a_sheet_without_a_header_has_the_columns_of_all_rows() {
    let rows = row(3, &[number("C3", "1"), number("D3", "2")])
        + &row(4, &[number("B4", "3"), number("C4", "4")])
        + &row(6, &[number("C6", "5"), number("D6", "6")]);
    let mut table = open_with(workbook(&rows), json!({"header_row": 0})).unwrap();
    assert_eq!(headers(&table), ["column_1", "column_2", "column_3"]);
    let reading = table.reading();
    assert_eq!((reading.lines_above, reading.blank_lines), (2, 1));
    assert_eq!(
        cells(&mut table),
        [["-", "1", "2"], ["3", "4", "-"], ["-", "5", "6"]]
    );
}

#[test]
fn a_table_of_a_sheet_ends_before_a_row_of_another_place() {
    let table = row(
        2,
        &[inline("B2", "k"), inline("C2", "n"), inline("D2", "m")],
    ) + &row(
        3,
        &[inline("B3", "x"), number("C3", "1"), number("D3", "2")],
    );
    for (cells, is_row) in [
        (
            vec![inline("B5", "y"), number("C5", "1"), number("D5", "2")],
            true,
        ),
        (vec![inline("B5", "y"), number("D5", "2")], true),
        (vec![inline("B5", "y")], false),
        (vec![number("C5", "1")], false),
        (vec![inline("A5", "y"), number("B5", "1")], false),
        (vec![number("D5", "1"), number("E5", "1")], false),
        (
            vec![inline("B5", "k"), inline("C5", "n"), inline("D5", "m")],
            false,
        ),
        (vec![inline("C5", "t"), inline("D5", "u")], false),
    ] {
        let rows = format!("{table}{}", row(5, &cells));
        let found = open_with(workbook(&rows), json!({"header_row": 2})).unwrap();
        let codes: Vec<&str> = found.doubts().iter().map(|doubt| &*doubt.code).collect();
        let expected: &[&str] = if is_row { &[] } else { &["second_table"] };
        assert_eq!(codes, expected, "{cells:?}");
        assert_eq!(found.row_count(), if is_row { 2 } else { 1 });
        assert_eq!(found.reading().blank_lines, u64::from(is_row));
    }
}
