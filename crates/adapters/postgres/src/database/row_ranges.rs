//! Rows that are sent in one statement.

use std::ops::Range;

use labdata_domain::scalar::Values;

/// Size in bytes from which a statement takes no more rows. The driver holds a statement three times while it is sent,
/// so an import of 100 MB in one statement would take 300 MB.
const STATEMENT_BYTES: usize = 4 << 20;

/// Size of a value that is no text.
const VALUE_BYTES: usize = 8;

/// Divides rows into those of one statement each, by the size of their values; at least one row each.
///
/// # Arguments
/// `index` is the index of each row's values.
pub(crate) fn row_ranges<'v>(
    columns: impl Iterator<Item = &'v Values>,
    index: impl ExactSizeIterator<Item = usize>,
) -> Vec<Range<usize>> {
    let (mut texts, mut width) = (Vec::new(), 0);
    for values in columns {
        width += VALUE_BYTES;
        if let Values::Text(column) = values {
            texts.push(column);
        }
    }
    let size = |index: usize| {
        let texts = texts.iter();
        let texts = texts.filter_map(|column| column.get(index)?.as_deref());
        width + texts.map(str::len).sum::<usize>()
    };
    let (mut ranges, mut start, mut bytes, len) = (Vec::new(), 0, 0, index.len());
    for (row, index) in index.enumerate() {
        // Behind the row that fills a statement, because a row alone may exceed the size.
        if bytes >= STATEMENT_BYTES {
            ranges.push(start..row);
            (start, bytes) = (row, 0);
        }
        bytes += size(index);
    }
    if start < len {
        ranges.push(start..len);
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_ends_with_the_row_that_fills_it() {
        let numbers = Values::Integer(vec![Some(1); 1_500_000]);
        let rows = STATEMENT_BYTES / VALUE_BYTES;
        let ranges = row_ranges([&numbers].into_iter(), 0..numbers.len());
        assert_eq!(ranges, [0..rows, rows..2 * rows, 2 * rows..1_500_000]);
        let long = || Some("x".repeat(STATEMENT_BYTES).into());
        let texts = Values::Text(vec![long(), None, Some("y".into()), long(), None]);
        assert_eq!(row_ranges([&texts].into_iter(), 0..5), [0..1, 1..4, 4..5]);
        // By the rows that are sent.
        let some = [1, 2, 4].into_iter();
        let whole = row_ranges([&texts].into_iter(), some);
        assert_eq!((whole.len(), &whole[0]), (1, &(0..3)));
        assert_eq!(row_ranges([&texts].into_iter(), 0..0), []);
    }
}
