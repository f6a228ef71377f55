//! Merged cells.

use super::*;

/// The cells of a sheet with columns `a`, `b`, `c` and a merged region.
fn merged(rows: &[Vec<String>], region: &str) -> Vec<Vec<String>> {
    let header = row(
        1,
        &[inline("A1", "a"), inline("B1", "b"), inline("C1", "c")],
    );
    let rows: String = rows
        .iter()
        .zip(2..)
        .map(|(cells, line)| row(line, cells))
        .collect();
    let after = format!("<mergeCells><mergeCell ref=\"{region}\"/></mergeCells>");
    cells(&mut open_clear(sheet_of(&(header + &rows), &after, "")))
}

#[test]
fn a_value_that_lies_hidden_under_a_merged_cell_is_not_read() {
    let plate = |line: u32, cells: [&str; 3]| -> Vec<String> {
        let columns = ["A", "B", "C"].iter().zip(cells);
        let filled = columns.filter(|(_, value)| !value.is_empty());
        filled
            .map(|(column, value)| number(&format!("{column}{line}"), value))
            .collect()
    };
    let rows = |cells: [[&str; 3]; 2]| [plate(2, cells[0]), plate(3, cells[1])];
    for (given, region, expected) in [
        (
            [["1", "2", "3"], ["4", "5", "6"]],
            "A2:A3",
            [["1", "2", "3"], ["1", "5", "6"]],
        ),
        (
            [["1", "2", "3"], ["4", "5", "6"]],
            "A2:B2",
            [["1", "1", "3"], ["4", "5", "6"]],
        ),
        (
            [["1", "2", "3"], ["4", "5", "6"]],
            "B2:C3",
            [["1", "2", "2"], ["4", "2", "2"]],
        ),
        (
            [["1", "2", "3"], ["4", "", "6"]],
            "B2:B3",
            [["1", "2", "3"], ["4", "2", "6"]],
        ),
        // The merged cell itself is blank.
        (
            [["1", "", "3"], ["4", "5", "6"]],
            "B2:B3",
            [["1", "-", "3"], ["4", "-", "6"]],
        ),
    ] {
        assert_eq!(merged(&rows(given), region), expected, "{region}");
    }
}

#[test]
fn a_title_is_one_although_values_lie_hidden_under_it() {
    let title = row(
        1,
        &[
            inline("A1", "Plate report"),
            inline("B1", "old"),
            number("C1", "7"),
        ],
    ) + &row(2, &[inline("B2", "older")]);
    let table = row(
        3,
        &[inline("A3", "well"), inline("B3", "od"), inline("C3", "n")],
    ) + &row(
        4,
        &[inline("A4", "A1"), number("B4", "0.5"), number("C4", "1")],
    );
    let after = "<mergeCells><mergeCell ref=\"A1:C2\"/></mergeCells>";
    let mut found = open_clear(sheet_of(&(title + &table), after, ""));
    assert_eq!(headers(&found), ["well", "od", "n"]);
    assert_eq!(cells(&mut found), [["A1", "0.5", "1"]]);
}

#[test]
fn a_merged_cell_gives_its_value_to_rows_of_nothing_else() {
    let filled = |line: u32| {
        let cells = ["A", "B", "C"].map(|column| number(&format!("{column}{line}"), "1"));
        cells.to_vec()
    };
    let rows = [filled(2), Vec::new(), filled(4)];
    for (region, between) in [("A2:A3", ["1", "-", "-"]), ("A2:B3", ["1", "1", "-"])] {
        let found = merged(&rows, region);
        assert_eq!(found, [["1"; 3], between, ["1"; 3]], "{region}");
    }
    // Behind the last row with a cell of its own there is no table.
    assert_eq!(merged(&[filled(2)], "A2:A9").len(), 1);
}
