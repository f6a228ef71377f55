//! The table for which an import reads a file.

use std::collections::HashSet;

use super::{
    header::{Header, match_key},
    layout::HeadRow,
};

/// Fields of a header that an import can store. A line of nothing but such fields is the header, and its
/// delimiter that of the file. The dates of an import are in ISO 8601, unless their format is given.
#[derive(Clone, Debug, Default)]
pub struct ImportTarget {
    fields: Vec<String>,
    keys: HashSet<String>,
}

impl ImportTarget {
    /// A target with columns of these names, or for fields of these texts.
    #[must_use]
    pub fn new(fields: Vec<String>) -> Self {
        let keys = fields.iter().map(|field| key_of(field));
        Self {
            keys: keys.filter(|key| !key.is_empty()).collect(),
            fields,
        }
    }

    /// The names and texts.
    pub(super) fn fields(&self) -> &[String] {
        &self.fields
    }

    /// Returns the number of fields of a line if all of them are those of different columns.
    pub(super) fn count<'t>(&self, texts: impl IntoIterator<Item = &'t str>) -> Option<usize> {
        let mut found = HashSet::new();
        for text in texts.into_iter().filter(|text| !text.trim().is_empty()) {
            let key = key_of(text);
            if !self.keys.contains(&key) || !found.insert(key) {
                return None;
            }
        }
        (!found.is_empty()).then_some(found.len())
    }

    /// The first of the lines with the most fields that are all those of columns. A single one may be a
    /// title, so it is the header only if the line may be it anyway.
    pub(super) fn header(&self, rows: &[HeadRow], may_be_header: &[usize]) -> Option<usize> {
        let counts = rows
            .iter()
            .enumerate()
            .filter_map(|(index, HeadRow { row, .. })| {
                let cells = row.cells.iter().filter(|cell| !row.is_blank(**cell));
                let texts: Option<Vec<&str>> = cells.map(|cell| row.text_of(*cell)).collect();
                let count = self.count(texts.filter(|_| !row.is_title)?)?;
                (count > 1 || may_be_header.contains(&index)).then_some((index, count))
            });
        let best = counts.max_by_key(|(index, count)| (*count, usize::MAX - index))?;
        Some(best.0)
    }
}

fn key_of(text: &str) -> String {
    match_key(&Header::of(text).text)
}

#[cfg(test)]
mod tests {
    use super::{super::layout::tests::head, *};

    fn target() -> ImportTarget {
        ImportTarget::new(["name", "vol", "first_note"].map(str::to_owned).to_vec())
    }

    #[test]
    fn fields_are_counted_if_each_is_that_of_another_column() {
        for (texts, count) in [
            (&["Name", "Vol (\u{b5}l)"][..], Some(2)),
            (&["First note", "", " "], Some(1)),
            (&["name", "NAME"], None),
            (&["name", "od"], None),
            (&["", " "], None),
            (&[], None),
        ] {
            assert_eq!(target().count(texts.iter().copied()), count, "{texts:?}");
        }
        assert_eq!(ImportTarget::new(vec![String::new()]).count(["-"]), None);
    }

    #[test]
    fn the_header_is_the_first_line_with_the_most_fields() {
        for (text, may_be_header, index) in [
            ("Report of,May\nname,vol\nA1,1.5\n", &[][..], Some(1)),
            ("name,\nname,vol\nvol,name\n", &[0], Some(1)),
            ("name,vol\nA1,1.5\nname,vol,first note\n", &[], Some(2)),
            // A single field may be a title.
            ("name\nA1\n", &[0], Some(0)),
            ("vol\nname\nA1\n", &[1], Some(1)),
            ("name\nA1\n", &[], None),
            ("name,od\nA1,1.5\n", &[0], None),
        ] {
            let found = target().header(&head(text), may_be_header);
            assert_eq!(found, index, "{text}");
        }
        let mut rows = head("name,vol\nA1,1.5\n");
        rows[0].row.is_title = true;
        assert_eq!(target().header(&rows, &[0]), None);
    }
}
