//! Tables above the table that was found.
//!
//! Its header has a number in it, such as `450` or `260/280`, so the table is found by its rows.

use std::collections::HashSet;

use super::{
    cell_kind::{CellKind, kind_of, kind_of_text},
    layout::{Block, HeadRow, columns_of_values},
    number::NumberForm,
    raw::{RawCell, RawRow},
};

/// Number of lines from which names beside numbers are a table, unless the names are codes.
const MIN_NAMED_NUMBERS: usize = 4;

/// A table above the header of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TableAbove {
    /// Index of its first line, which is its header if it has one.
    pub(super) index: usize,
    /// True if the line has names above values, so that it is the header beyond doubt.
    pub(super) has_header: bool,
}

/// Returns the first table whose lines are all above the header with an index.
pub(super) fn table_above(rows: &[HeadRow], header: usize) -> Option<TableAbove> {
    let above = rows.get(..header)?;
    let mut index = 0;
    while index < above.len() {
        let count = run_at(above, index);
        let lines = above.get(index..index + count)?;
        if is_table(lines) {
            return Some(first_line(above, index, count));
        }
        // A run has no line where a title or a single cell stands, which is passed over.
        index += count.max(1);
    }
    None
}

/// Number of adjoining lines from an index that may be a table: none is wider than the first one, and all
/// have several columns.
fn run_at(rows: &[HeadRow], index: usize) -> usize {
    let lines = rows.get(index..).unwrap_or_default();
    let width = lines.first().map_or(0, |first| first.row.width());
    let is_line = |(position, HeadRow { row, follows_blank }): (usize, &HeadRow)| {
        !row.is_title && (2..=width).contains(&row.width()) && (position == 0 || !follows_blank)
    };
    lines
        .iter()
        .enumerate()
        .take_while(|line| is_line(*line))
        .count()
}

/// The first line of a table: some programs write a blank line behind the header.
fn first_line(rows: &[HeadRow], index: usize, count: usize) -> TableAbove {
    let width = |index: usize| rows.get(index).map_or(0, |line| line.row.width());
    let is_lone = |line: usize| {
        let follows_blank = rows.get(line).is_some_and(|line| line.follows_blank);
        let is_below_other = line
            .checked_sub(1)
            .is_some_and(|above| width(above) >= width(line));
        follows_blank || !is_below_other
    };
    let header = index
        .checked_sub(1)
        .filter(|above| width(*above) == width(index) && is_lone(*above))
        .unwrap_or(index);
    let block = Block {
        header,
        width: width(header),
        rows: index + count - header - 1,
    };
    let is_name = |column: usize| {
        rows.get(header)
            .is_some_and(|line| kind_of(&line.row, line.row.cell(column)) == CellKind::Text)
    };
    TableAbove {
        index: header,
        has_header: block.width > 2 && columns_of_values(rows, block).into_iter().any(is_name),
    }
}

/// Returns whether adjoining lines are a table, and not names of settings with their values.
fn is_table(lines: &[HeadRow]) -> bool {
    let Some((first, body)) = lines.split_first().filter(|(_, body)| !body.is_empty()) else {
        return false;
    };
    // The table of a sheet may begin in any column.
    let filled = |line: &HeadRow| {
        let mut cells = line.row.cells.iter();
        cells.position(|cell| !line.row.is_blank(*cell))
    };
    let names = lines.iter().filter_map(filled).min().unwrap_or(0);
    // Two columns may be settings with their values, so they take a closer look.
    match first.row.width() - names {
        0 | 1 => false,
        2 => is_table_of_pairs(lines, body, names),
        _ => body
            .iter()
            .any(|line| (0..line.row.width()).any(|column| is_value(&line.row, column))),
    }
}

fn is_value(row: &RawRow, column: usize) -> bool {
    matches!(
        kind_of(row, row.cell(column)),
        CellKind::Value | CellKind::Mark
    )
}

/// Returns whether lines with a name in a column, and something in the next one, are a table.
fn is_table_of_pairs(lines: &[HeadRow], body: &[HeadRow], names: usize) -> bool {
    let name = |line: &HeadRow| {
        let text = line.row.text_of(line.row.cell(names));
        text.map(|text| text.trim().to_owned())
    };
    let ends_as_setting = |line| name(line).is_some_and(|name| name.ends_with([':', '=']));
    if lines.iter().any(ends_as_setting) {
        return false;
    }
    let has_value = |line: &HeadRow| is_value(&line.row, names + 1);
    let values = body.iter().filter(|line| has_value(line)).count();
    let is_code = |line: &HeadRow| {
        is_value(&line.row, names)
            || name(line).is_some_and(|name| name.contains(|char: char| char.is_ascii_digit()))
    };
    // Codes and times name the rows of a table, also beside texts; one such setting is not rare.
    if body.iter().all(is_code) && (body.len() > 1 || values > 0) {
        return true;
    }
    // No setting has two values.
    let different: HashSet<Option<String>> = body.iter().map(name).collect();
    if different.len() < body.len() && values > 0 {
        return true;
    }
    // Settings are numbers, texts and dates in turn.
    let is_number = |line: &HeadRow| match line.row.cell(names + 1) {
        RawCell::Integer(_)
        | RawCell::Float(_)
        | RawCell::Padded(..)
        | RawCell::Labeled(..)
        | RawCell::Percent(_) => true,
        cell => line.row.text_of(cell).is_some_and(|text| {
            NumberForm::of(text.trim()).numbers != 0 || kind_of_text(text) == CellKind::Mark
        }),
    };
    lines.len() >= MIN_NAMED_NUMBERS && body.iter().all(is_number)
}

#[cfg(test)]
mod tests {
    use super::{super::layout::tests::head, *};

    /// The line of the table above the last block of lines, and whether its header is certain.
    fn above(text: &str) -> Option<(u64, bool)> {
        let rows = head(text);
        let header = rows.iter().rposition(|line| line.follows_blank);
        let found = table_above(&rows, header.unwrap())?;
        Some((rows[found.index].row.line, found.has_header))
    }

    #[test]
    fn lines_with_values_are_a_table() {
        for (lines, expected) in [
            ("well,450\nA1,0.5\nA2,0.6\n", (1, false)),
            ("well,450\nA1,0.5\n", (1, false)),
            ("well,600\nA1,pos\nA2,neg\n", (1, false)),
            ("well,call\nA1,pos\nA2,neg\n", (1, false)),
            ("t,600\n0,0.5\n1,OVRFLW\n", (1, false)),
            ("0,0.5\n1,0.6\n", (1, false)),
            ("dye,600\nred,0.5\nred,0.6\n", (1, false)),
            ("dye,600\nred,0.5\nblue,0.6\nnone,n.d.\n", (1, false)),
            ("well,450,600\nA1,0.5,0.6\n", (1, false)),
            (",well,450\n,A1,0.5\n,A2,0.6\n", (1, false)),
            ("well,260/280,conc\nA1,0.5,4\nA2,0.6,5\n", (1, true)),
            ("well,260/280,conc\n\nA1,0.5,4\nA2,0.6,5\n", (1, true)),
            (
                "Report\nwell,260/280,conc\nA1,0.5,4\nA2,0.6,5\nA3,0.7\n",
                (2, true),
            ),
            (
                "Run ID,17\nProtocol,demo\n\nwell,450\nA1,1\nA2,2\n",
                (4, false),
            ),
        ] {
            let text = format!("{lines}\nwell,od,sd\nB1,1,2\n");
            assert_eq!(above(&text), Some(expected), "{text}");
        }
    }

    #[test]
    fn titles_and_settings_are_no_table() {
        for lines in [
            "Report\n",
            "Run ID,17\n",
            "Run ID,17\nProtocol,demo\n",
            "Run ID,17\nPlate 2,demo\n",
            "Temperature,37\nGain,100\n",
            "Temperature,37\nDate,2024-01-05\nTime,12:30\nGain,100\nReads,8\n",
            "Temperature:,37\nGain:,100\nReads:,8\nInterval:,5\nWavelength 1:,450\n",
            "Exported by Smith, Jane\nExported by Smith, Jane\n",
            "Plate report,,\nCreated by X,,\n",
            "Run ID,x\nNote,late\nNote,early\n",
            "Operator,Smith,Jane\nPlate,X,Y\n",
            "Samples,96,Min Events,100\n",
            // In the second column of a sheet.
            ",Temperature,37\n,Gain,100\n,Operator,Smith\n",
            ",Report\n,Created by X\n",
        ] {
            let text = format!("{lines}\nwell,od,sd\nB1,1,2\n");
            assert_eq!(above(&text), None, "{text}");
        }
    }
}
