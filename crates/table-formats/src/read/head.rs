//! Extent to which a file is read.

/// Number of cells from which a preview reads no further.
const HEAD_CELLS: usize = 1_000_000;

/// Size of these cells in bytes.
const HEAD_BYTES: u64 = 16 << 20;

/// Number of cells of a text for which one of a workbook counts, as it takes about as long.
pub(super) const WORKBOOK_CELL: usize = 4;

/// Part of a table that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// All rows.
    Whole,
    /// The first rows, for a person who waits: types and doubts are those of these rows.
    Head {
        /// Number of cells from which no row is read.
        cells: usize,
        /// Size in bytes from which no row is read.
        bytes: u64,
    },
}

impl Extent {
    /// The head that a preview reads.
    pub(super) const HEAD: Self = Self::Head {
        cells: HEAD_CELLS,
        bytes: HEAD_BYTES,
    };

    /// Returns whether no row of a workbook is read after that many cells.
    pub(super) const fn ends_at_workbook_cell(self, cells: usize) -> bool {
        self.ends_at(cells.saturating_mul(WORKBOOK_CELL), 0)
    }

    /// Returns whether no row is read after that many cells and bytes.
    pub(super) const fn ends_at(self, cells: usize, bytes: u64) -> bool {
        match self {
            Self::Whole => false,
            Self::Head {
                cells: max_cells,
                bytes: max_bytes,
            } => cells >= max_cells || bytes >= max_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use labdata_domain::scalar::DataType;
    use serde_json::json;

    use super::*;
    use crate::read::{ReadOptions, ReadTable, preview::summarize, table::open_extent};

    fn open(text: impl Into<Vec<u8>>, cells: usize, bytes: u64) -> ReadTable {
        let source = Box::new(Cursor::new(text.into()));
        let extent = Extent::Head { cells, bytes };
        open_extent(source, &ReadOptions::default(), 100, extent, None).unwrap()
    }

    fn lines(table: &mut ReadTable) -> Vec<u64> {
        let mut lines = Vec::new();
        while let Some(row) = table.next_row().unwrap() {
            lines.push(row.line);
        }
        lines
    }

    const TABLE: &str = "a,b\n1,2\n3,4\n5,x\n";

    #[test]
    fn the_head_ends_between_two_rows() {
        // The header is among the cells.
        for (cells, bytes) in [(5, u64::MAX), (6, u64::MAX), (usize::MAX, 6)] {
            let mut table = open(TABLE, cells, bytes);
            assert!(table.is_cut(), "{cells} {bytes}");
            assert_eq!(lines(&mut table), [2, 3], "{cells} {bytes}");
            assert_eq!(table.row_count(), 2);
            assert_eq!(table.columns()[1].data_type, DataType::Integer);
            assert_eq!(table.doubts(), []);
            // Sent back, it would leave the other rows out.
            assert_eq!(table.reading().to_json()["last_row"], json!(null));
        }
    }

    #[test]
    fn a_file_within_the_head_is_read_as_a_whole() {
        let mut table = open(TABLE, 8, u64::MAX);
        assert!(!table.is_cut());
        assert_eq!(lines(&mut table), [2, 3, 4]);
        assert_eq!(table.columns()[1].data_type, DataType::Text);
        assert_eq!(table.reading().to_json()["last_row"], json!(4));
    }

    #[test]
    fn a_line_at_the_end_of_the_head_is_no_footer() {
        // As a whole file, the table ends before the remark.
        let text = "a,b,c\n1,2,3\n4,5,6\nend of run\n7,8,9\n";
        let whole = open("a,b,c\n1,2,3\n4,5,6\nend of run\n", usize::MAX, u64::MAX);
        assert_eq!(whole.doubts()[0].code, "second_table");
        let table = open(text, 10, u64::MAX);
        assert!(table.is_cut());
        assert_eq!((table.row_count(), table.doubts().len()), (2, 0));
    }

    #[test]
    fn the_encoding_of_the_head_is_that_of_its_bytes() {
        let mut text = b"a,b\n".to_vec();
        text.extend(b"1,2\n".repeat(20_000));
        text.extend(
            "caf\u{e9},na\u{ef}ve\n\u{e9}t\u{e9},\u{e0}\n"
                .chars()
                .map(|it| u8::try_from(u32::from(it)).unwrap()),
        );
        let encoding = |extent| {
            let source = Box::new(Cursor::new(text.clone()));
            let table =
                open_extent(source, &ReadOptions::default(), 100_000, extent, None).unwrap();
            table.reading().to_json()["encoding"].clone()
        };
        assert_eq!(encoding(Extent::Whole), json!("windows-1252"));
        let head = Extent::Head {
            cells: 100,
            bytes: 100,
        };
        assert_eq!(encoding(head), json!("utf-8"));
    }

    #[test]
    fn a_summary_says_what_was_not_looked_at() {
        let mut table = open(TABLE, 6, u64::MAX);
        let summary = summarize(&mut table, 1).unwrap();
        assert_eq!((summary.row_count, summary.rows_read), (None, 2));
        assert_eq!(summary.rows, [[json!(1), json!(2)]]);
        let mut table = open(TABLE, 100, u64::MAX);
        let summary = summarize(&mut table, 1).unwrap();
        assert_eq!((summary.row_count, summary.rows_read), (Some(3), 3));
    }
}
