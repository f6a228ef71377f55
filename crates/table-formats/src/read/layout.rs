//! Position of a table within a file: titles above it, its header, and a line of units.

use super::{
    above::table_above,
    cell_kind::{CellKind, kind_of},
    raw::RawRow,
    units::is_units_row,
};

/// Maximum number of titles, in a table's own delimiter, that are looked for above its header.
const MAX_TITLES: usize = 5;

/// A row at the beginning of a file.
#[derive(Clone, Debug)]
pub(super) struct HeadRow {
    pub(super) row: RawRow,
    /// True if blank lines are in front of it.
    pub(super) follows_blank: bool,
}

/// The header of a table, by its index among the first rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct HeaderChoice {
    /// `None` without any row.
    pub(super) index: Option<usize>,
    /// Indices of rows that could be the header as well.
    pub(super) alternatives: Vec<usize>,
    /// True if the first row may be a row of values.
    pub(super) may_have_none: bool,
}

/// Rows that could be a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) header: usize,
    pub(super) width: usize,
    /// Number of rows below the header.
    pub(super) rows: usize,
}

/// Finds the header of the first table.
pub(super) fn find_header(rows: &[HeadRow]) -> HeaderChoice {
    let mut choice = header_of_names(rows);
    let Some(header) = choice.index else {
        return choice;
    };
    if let Some(above) = table_above(rows, header) {
        if above.has_header {
            return HeaderChoice {
                index: Some(above.index),
                ..HeaderChoice::default()
            };
        }
        if !choice.alternatives.contains(&above.index) {
            choice.alternatives.insert(0, above.index);
        }
    }
    choice
}

/// Finds the first row of texts only that has rows of the same width below it. Lines with one or two cells
/// above a wider table are its titles.
fn header_of_names(rows: &[HeadRow]) -> HeaderChoice {
    let blocks: Vec<Block> = (0..rows.len())
        .filter_map(|index| block_at(rows, index))
        .collect();
    let Some(chosen) = choose_block(rows, &blocks) else {
        return HeaderChoice {
            // No row has texts only, so the header may have numbers in it, or be missing.
            index: widest(rows),
            alternatives: Vec::new(),
            may_have_none: true,
        };
    };
    let (mut header, mut alternatives) = (chosen.header, Vec::new());
    if let Some(lone) = lone_header(rows, chosen) {
        if lone.has_names_below {
            // One cell above names is a title.
            alternatives.extend((chosen.width > 1).then_some(lone.index));
        } else {
            header = lone.index;
            // Two cells may be a setting above a table, more are the names of its columns.
            alternatives.extend((chosen.width <= 2).then_some(chosen.header));
        }
    }
    let mut choice = HeaderChoice {
        index: Some(header),
        alternatives,
        may_have_none: false,
    };
    if choice.index != Some(chosen.header) || !choice.alternatives.is_empty() {
        return choice;
    }
    // A row as wide as the table above its header may be the header, with a number in it.
    let is_as_wide = |row: &&HeadRow| !row.row.is_title && row.row.width() >= chosen.width;
    let above = rows.get(..chosen.header).unwrap_or_default();
    // Settings above a blank line are pairs as well, and no header of two columns below it.
    let is_apart = rows.get(chosen.header).is_some_and(|row| row.follows_blank);
    if chosen.width > 2 || chosen.width == 2 && !is_apart {
        let as_wide = above.iter().position(|row| is_as_wide(&row));
        choice.alternatives.extend(as_wide);
    }
    let second = second_header(rows, chosen)
        .or_else(|| header_below_sentence(rows, chosen))
        .or_else(|| header_below_settings(rows, chosen));
    choice.alternatives.extend(second);
    choice
}

/// A line above the blank line that precedes a table, as wide as the table.
struct LoneLine {
    index: usize,
    /// True if the first row of the table has names above values, as its header has.
    has_names_below: bool,
}

/// The line above a table if it may be its header, although a blank line separates it from the rows.
fn lone_header(rows: &[HeadRow], chosen: Block) -> Option<LoneLine> {
    let first = rows.get(chosen.header).filter(|row| row.follows_blank)?;
    let index = chosen.header.checked_sub(1)?;
    let line = block_at(rows, index)?;
    let above = index.checked_sub(1).and_then(|above| rows.get(above));
    let is_lone = rows.get(index)?.follows_blank
        || above.is_none_or(|above| above.row.is_title || above.row.width() < line.width);
    if !is_lone || line.width < chosen.width {
        return None;
    }
    // The rows from the second one below the line are those below the first row.
    let as_header = Block {
        header: index,
        width: chosen.width,
        rows: chosen.rows + 1,
    };
    let has_names_below = columns_of_values(rows, as_header)
        .into_iter()
        .any(|column| kind_of(&first.row, first.row.cell(column)) == CellKind::Text);
    Some(LoneLine {
        index,
        has_names_below,
    })
}

/// A row below the header if the header may be a title with the delimiter in it: only in the title do
/// blanks follow the delimiters, as in a sentence.
fn header_below_sentence(rows: &[HeadRow], chosen: Block) -> Option<usize> {
    let is_sentence = |index: usize| {
        let cells = |row: &HeadRow, has_blank: bool| {
            (1..chosen.width).all(|column| {
                let text = row.row.text_of(row.row.cell(column)).unwrap_or_default();
                text.starts_with(' ') == has_blank
            })
        };
        let row = rows.get(index)?;
        Some(cells(row, true)).filter(|is_sentence| *is_sentence || cells(row, false))
    };
    if chosen.width < 2 || is_sentence(chosen.header) != Some(true) {
        return None;
    }
    // Also behind the lines that end the block of a title: the table may stand apart.
    let mut near = chosen.header + 1..=chosen.header + MAX_TITLES;
    near.find(|index| {
        let below = block_at(rows, *index);
        below.is_some_and(|below| below.width == chosen.width) && is_sentence(*index) == Some(false)
    })
}

/// The first rows below a header, which may be the header if that is a title.
fn rows_near(chosen: Block) -> impl Iterator<Item = usize> {
    chosen.header + 1..=chosen.header + chosen.rows.min(MAX_TITLES)
}

/// The row below the blank line that follows a header with one or two rows, if these may be settings above
/// a longer table of texts.
fn header_below_settings(rows: &[HeadRow], chosen: Block) -> Option<usize> {
    if chosen.width > 2 || !(1..=2).contains(&chosen.rows) {
        return None;
    }
    let index = chosen.header + chosen.rows + 1;
    let below = block_at(rows, index).filter(|below| below.width == chosen.width)?;
    let is_apart = rows.get(index).is_some_and(|row| row.follows_blank);
    (is_apart && below.rows > chosen.rows).then_some(index)
}

/// The first row with as many filled cells as any; `None` without rows.
fn widest(rows: &[HeadRow]) -> Option<usize> {
    // Of equal ones the maximum is the last, which is the first of the reversed rows.
    let reversed = rows.iter().enumerate().rev();
    let widest = reversed.max_by_key(|(_, row)| row.row.filled());
    widest.map(|(index, _)| index)
}

/// The table that begins with a row, if the row may be a header.
pub(super) fn block_at(rows: &[HeadRow], index: usize) -> Option<Block> {
    let HeadRow { row, .. } = rows.get(index).filter(|row| may_be_header(&row.row))?;
    let width = row.width();
    let below = rows.get(index + 1..).unwrap_or_default().iter();
    // Neither a row behind blank lines nor a wider one belongs to this header; but some programs write a
    // blank line behind it, and then values.
    let below = below.enumerate().take_while(|(position, below)| {
        let is_behind_header = *position == 0 && !may_be_header(&below.row);
        (is_behind_header || !below.follows_blank) && below.row.width() <= width
    });
    Some(Block {
        header: index,
        width,
        rows: below.count(),
    })
}

/// Returns whether a row has texts only.
fn may_be_header(row: &RawRow) -> bool {
    let kinds = || row.cells.iter().map(|cell| kind_of(row, *cell));
    !row.is_title
        && kinds().all(|kind| kind != CellKind::Value)
        && kinds().any(|kind| kind == CellKind::Text)
}

fn choose_block(rows: &[HeadRow], blocks: &[Block]) -> Option<Block> {
    let mut chosen = *blocks.iter().find(|block| block.rows > 0).or_else(|| {
        blocks
            .iter()
            // The widest, and the first of those.
            .max_by_key(|block| (block.width, usize::MAX - block.header))
    })?;
    // Names and values of settings, and lines of text, are narrower than the table below them.
    while chosen.width <= 2 && !is_data(rows, chosen) {
        let wider = blocks.iter().find(|block| {
            block.header > chosen.header + chosen.rows
                && block.width > chosen.width
                && block.rows > 0
        });
        match wider {
            Some(wider) => chosen = *wider,
            None => break,
        }
    }
    Some(chosen)
}

/// Returns whether two columns are a table of their own: at least three numbers with names.
fn is_data(rows: &[HeadRow], block: Block) -> bool {
    let start = block.header + 1;
    let body = rows.get(start..start + block.rows).unwrap_or_default();
    let are_values = |body: &[HeadRow]| {
        body.iter().all(|HeadRow { row, .. }| {
            let last = block.width.saturating_sub(1);
            kind_of(row, row.cell(last)) != CellKind::Text
        })
    };
    // Fewer may be settings with numbers, such as a temperature.
    body.len() >= 3 && are_values(body)
}

/// Returns a row below the header if it looks like another header: texts above columns of numbers.
fn second_header(rows: &[HeadRow], chosen: Block) -> Option<usize> {
    let header = &rows.get(chosen.header)?.row;
    if chosen.rows < 2 || is_units_row(rows, chosen.header) {
        return None;
    }
    // Values end the titles.
    let mut texts = rows_near(chosen).take_while(|index| {
        rows.get(*index).is_some_and(|HeadRow { row, .. }| {
            let mut kinds = row.cells.iter().map(|cell| kind_of(row, *cell));
            !kinds.any(|kind| matches!(kind, CellKind::Value | CellKind::Mark))
        })
    });
    let is_header = |index: &usize| {
        let above = Block {
            header: index - 1,
            width: chosen.width,
            rows: chosen.header + chosen.rows + 1 - index,
        };
        rows.get(*index).is_some_and(|HeadRow { row, .. }| {
            row.filled() >= header.filled().min(2)
                && columns_of_values(rows, above)
                    .into_iter()
                    .any(|column| kind_of(row, row.cell(column)) == CellKind::Text)
        })
    };
    texts.find(is_header)
}

/// Columns in which the rows from the second one below the header hold values.
pub(super) fn columns_of_values(rows: &[HeadRow], block: Block) -> Vec<usize> {
    let start = block.header + 2;
    let end = block.header + 1 + block.rows;
    let body = rows.get(start..end).unwrap_or_default();
    (0..block.width)
        .filter(|column| {
            let kinds = || {
                body.iter()
                    .map(|HeadRow { row, .. }| kind_of(row, row.cell(*column)))
            };
            let values = kinds().filter(|kind| *kind == CellKind::Value).count();
            let texts = kinds().filter(|kind| *kind == CellKind::Text).count();
            // A few texts may be remarks among the values.
            values > 0 && values >= texts * 4
        })
        .collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::{
        super::raw::{RawCell, Span},
        *,
    };

    /// Rows of fields that commas separate; a blank line is a blank row.
    pub(in crate::read) fn head(text: &str) -> Vec<HeadRow> {
        let mut rows = Vec::new();
        let mut follows_blank = false;
        for (line, number) in text.lines().zip(1..) {
            let mut row = RawRow {
                line: number,
                ..RawRow::default()
            };
            for field in line.split(',') {
                let span = row.push_text(field);
                row.cells.push(match field {
                    "" => RawCell::Blank,
                    "\"\"" => RawCell::Quoted(Span::default()),
                    _ => RawCell::Text(span),
                });
            }
            if row.is_all_blank() {
                follows_blank = true;
                continue;
            }
            rows.push(HeadRow {
                row,
                follows_blank: std::mem::take(&mut follows_blank),
            });
        }
        rows
    }

    /// Line of the header, and those of its alternatives.
    fn header(text: &str) -> (u64, Vec<u64>) {
        let rows = head(text);
        let choice = find_header(&rows);
        assert!(!choice.may_have_none, "{text}");
        let line = |index: usize| rows[index].row.line;
        let alternatives = choice.alternatives.into_iter().map(line);
        (line(choice.index.unwrap()), alternatives.collect())
    }

    #[test]
    fn the_header_is_the_first_line_of_a_table() {
        for (text, line) in [
            ("well,od\nA1,0.5\n", 1),
            ("name,note\nA,x\nB,y\n", 1),
            ("alone\n1\n2\n", 1),
            ("a,b\n", 1),
            ("Run ID,17\nProtocol,demo\n\nwell,od,note\nA1,0.5,ok\n", 4),
            (
                "Operator,Smith\nProtocol,demo\nwell,od,note\nA1,0.5,ok\n",
                3,
            ),
            ("Plate report\nCreated by X\n\nwell,od\nA1,0.5\nA2,0.6\n", 4),
            ("Plate report,,\n,,\nwell,od,note\nA1,0.5,\n", 3),
            ("Plate report\nwell,od\nA1,0.5\n", 2),
            ("name,vol\nA,n.d.\nB,1.5\nC,2.5\n", 1),
            ("name,vol\nA,<0.1\nB,1.5\n", 1),
            ("a,b,c\n\nx,y,z\nu,v,w\n", 1),
            ("Samples\na,b,c\n\nx,y,z\nu,v\n", 2),
            ("Samples\n\nvalue\n1\n2\n", 3),
            ("name,ok\n\nA,true\nB,false\n", 1),
            ("name,n\n\nA,1\nB,2\n", 1),
            ("Run ID,17\nProtocol,demo\n\nname,city\nBob,Rome\n", 4),
            (
                "well,260/280,conc\nA1,0.5,4\nA2,0.6,5\n\nwell,od,sd,n\nB1,1,2,3\n",
                1,
            ),
        ] {
            assert_eq!(header(text), (line, vec![]), "{text}");
        }
    }

    #[test]
    fn two_lines_that_may_be_the_header_are_a_doubt() {
        let (line, others) = header("Report of,May\nname,vol\nA1,1.5\nA2,2.5\n");
        assert_eq!((line, others), (1, vec![2]));
        let (line, others) = header("Report of,May\nname,vol\nA1,1.5\n");
        assert_eq!((line, others), (1, vec![2]));
        let (line, others) = header("sample,0,30\nA,1,2\nB,2,3\nMean,x,y\nC,5,6\n");
        assert_eq!((line, others), (4, vec![1]));
        for (text, doubt) in [
            ("name,city\n\nBob,Rome\nAl,Paris\n", (1, vec![3])),
            ("name\n\nBob\nAl\n", (1, vec![3])),
            ("Operator,Smith\n\nwell,od\nA1,0.5\nA2,0.6\n", (3, vec![1])),
            (
                "Operator,Smith\nPlate,X\n\nname,city\nBob,Rome\nAl,Paris\n",
                (1, vec![4]),
            ),
            (
                "Plate 3, day two\nname,city\nBob,Rome\nAl,Paris\n",
                (1, vec![2]),
            ),
            (
                "Exported by Smith, Jane\nSample list\n\nname,city\n\nBob,Rome\nAl,Paris\n",
                (1, vec![4]),
            ),
            (
                "well,450\nA1,0.5\nA2,0.6\n\nwell,od,sd\nB1,1,2\nB2,1,2\n",
                (5, vec![1]),
            ),
            (
                "well,450\nA1,0.5\nA2,0.6\n\nwell,od\nB1,1\nB2,1\n",
                (5, vec![1]),
            ),
            // No unit, and no name.
            ("code\nA\n1\n2\n3\n", (1, vec![2])),
        ] {
            assert_eq!(header(text), doubt, "{text}");
        }
        for text in ["1,2\n3,4\n", "sample,0,30\nA,1,2\n"] {
            let choice = find_header(&head(text));
            assert_eq!((choice.index, choice.may_have_none), (Some(0), true));
        }
        assert_eq!(find_header(&[]).index, None);
    }

    #[test]
    fn a_column_holds_values_if_at_most_one_in_five_cells_is_a_text() {
        let columns = |text: &str| {
            let rows = head(text);
            let (width, rows_below) = (rows[0].row.width(), rows.len() - 1);
            let block = Block {
                header: 0,
                width,
                rows: rows_below,
            };
            columns_of_values(&rows, block)
        };
        // The first row below the header may be one of units.
        for (text, expected) in [
            ("a,b\nx,1\n1,y\n", vec![0]),
            ("a,b\n1,1\n", vec![]),
            ("a,b\n0,0\n1,1\n2,2\n3,3\n4,x\n", vec![0]),
            ("a,b\n0,0\n1,1\n2,2\n3,3\n4,4\n5,x\n", vec![0, 1]),
            ("a,b\n0,0\n1,\n2,n.d.\n", vec![0]),
        ] {
            assert_eq!(columns(text), expected, "{text}");
        }
    }

    #[test]
    fn two_columns_above_a_wider_table_are_settings_unless_they_hold_three_numbers() {
        let wider = "\nwell,od,sd\nB1,1,2\n";
        for (above, line) in [
            ("name,n\nA,1\nB,2\nC,3\n", 1),
            ("name,n\nA,1\nB,2\n", 5),
            ("name,n\nA,1\nB,x\nC,3\n", 6),
            ("name,n\nA,1\nB,2\nC,x\n", 6),
            ("name\n1\n2\n3\n", 1),
            ("name\nx\n", 4),
            // Of three columns the first table is the table.
            ("name,n,m\nA,x,y\n", 1),
        ] {
            assert_eq!(header(&format!("{above}{wider}")).0, line, "{above}");
        }
    }

    #[test]
    fn a_header_is_looked_for_in_five_lines_below_a_title() {
        let sentence = "Plate 3, day two\n";
        let names = "name,city\nBob,Rome\n";
        for (between, others) in [(0, vec![2]), (4, vec![6]), (5, vec![])] {
            let text = format!("{sentence}{}{names}", "and, more\n".repeat(between));
            assert_eq!(header(&text), (1, others), "{between}");
        }
        // A line that ends in a blank is one of the sentence.
        let prose = "Plate 3, day two\nname, city\nBob, Rome\n";
        assert_eq!(header(prose), (1, vec![]));
        // One with a blank behind some delimiters only is neither.
        let either = "Plate 3, day two, dry\nname, city,id\nBob, Rome,x\n";
        assert_eq!(header(either), (1, vec![]));
        let settings = "Operator,Smith\nPlate,X\n";
        for (rows, others) in [
            ("\nname,city\nBob,Rome\n", vec![]),
            ("\nname,city\nBob,Rome\nAl,Paris\n", vec![4]),
            ("name,city\nBob,Rome\nAl,Paris\n", vec![]),
            ("A,B\n\nname,city\na,b\nc,d\ne,f\n", vec![5]),
            ("A,B\nC,D\n\nname,city\na,b\nc,d\ne,f\ng,h\n", vec![]),
        ] {
            assert_eq!(header(&format!("{settings}{rows}")), (1, others), "{rows}");
        }
    }

    #[test]
    fn without_a_row_of_texts_the_first_of_the_widest_rows_is_the_header() {
        for (text, index) in [("1,2\n3,4,5\n6,7,8\n", 1), ("1,2,\n3,4\n", 0), ("1\n", 0)] {
            let choice = find_header(&head(text));
            assert_eq!((choice.index, choice.may_have_none), (Some(index), true));
        }
    }
}
