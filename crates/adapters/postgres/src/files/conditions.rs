//! The filters of a file list as SQL conditions on `labdata.file`.

use labdata_domain::{
    files::FileFilter,
    ids::{ExecutionId, InstrumentId, OrganizationId},
    page::{Cursor, PageRequest},
};
use uuid::Uuid;

use crate::{
    database::prepared::Prepared,
    files::rows::{EXTENSION_CHARS, extension_prefix},
};

/// The conditions of one page of a file list.
#[derive(Clone, Debug)]
pub(crate) struct FileConditions {
    pub(crate) organization: Uuid,
    pub(crate) instrument: Option<Uuid>,
    execution: Option<Uuid>,
    /// Values of the column `extension`, each once.
    pub(crate) extensions: Option<Vec<String>>,
    /// Endings of paths; set if the column `extension` does not decide.
    suffixes: Option<Vec<String>>,
    /// A part of the path.
    part: Option<String>,
    /// A `LIKE` pattern that all matching paths have and that the trigram index can look up.
    indexed: Option<String>,
    /// A word of the part with a digit.
    number: Option<Number>,
    /// End of the previous page.
    after: Option<Cursor>,
}

/// A word with a digit, which all matching paths have.
#[derive(Clone, Debug)]
pub(crate) struct Number {
    pub(crate) text: String,
    /// The `LIKE` pattern of the paths that have it.
    pub(crate) pattern: String,
}

/// Owners of the files in the search index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IndexOwners {
    /// There is no other organization.
    One,
    /// The index also has the files of other organizations.
    Several,
}

impl FileConditions {
    pub(crate) fn new(
        organization: OrganizationId,
        filter: &FileFilter,
        page: PageRequest,
    ) -> Self {
        let (mut extensions, mut suffixes, mut indexed) = (None, None, None);
        if let Some(wanted) = &filter.extensions {
            let last_parts = wanted.last_parts();
            let is_cut = last_parts
                .iter()
                .any(|part| part.chars().nth(EXTENSION_CHARS).is_some());
            if is_cut || wanted.has_compound() {
                let endings = wanted.suffixes();
                // An index looks up one pattern; several endings would need one lookup each.
                if let [ending] = endings.as_slice() {
                    indexed = Some(format!("%{}", escaped(ending)));
                }
                suffixes = Some(endings);
            }
            let mut prefixes: Vec<String> = last_parts.into_iter().map(extension_prefix).collect();
            // Two long extensions may be cut to the same prefix.
            prefixes.sort_unstable();
            prefixes.dedup();
            extensions = Some(prefixes);
        }
        let part = filter.query.as_ref().map(|query| query.folded().to_owned());
        let mut number = None;
        if let Some(part) = &part {
            // A pattern without a trigram would make PostgreSQL read the whole index.
            indexed = has_trigram(part).then(|| format!("%{}%", escaped(part)));
            number = number_of(part).map(|text| Number {
                text: text.to_owned(),
                pattern: format!("%{}%", escaped(text)),
            });
        }
        Self {
            organization: organization.as_uuid(),
            instrument: filter.instrument.map(InstrumentId::as_uuid),
            execution: filter.execution.map(ExecutionId::as_uuid),
            extensions,
            suffixes,
            part,
            indexed,
            number,
            after: page.after,
        }
    }

    /// True if paths have to be compared: no index has the matching files in the list's order.
    pub(crate) fn compare_paths(&self) -> bool {
        self.part.is_some() || self.suffixes.is_some()
    }

    /// True if the trigram index can find the matching files. The few files of one execution are found
    /// without it.
    pub(crate) fn are_indexed(&self) -> bool {
        self.indexed.is_some() && self.execution.is_none()
    }

    /// Adds the conditions on organization, instrument, execution and cursor. They select a range of an index.
    pub(crate) fn push_range<Row>(&self, query: &mut Prepared<'_, Row>) {
        query
            // The predicate of the partial indices, which the planner has to find in the query.
            .sql("uploaded_at IS NOT NULL AND organization_id = ")
            .uuid(self.organization);
        if let Some(instrument) = self.instrument {
            query.sql(" AND instrument_id = ").uuid(instrument);
        }
        if let Some(execution) = self.execution {
            query.sql(" AND job_execution_id = ").uuid(execution);
        }
        self.push_cursor(query);
    }

    /// Adds the condition that a file comes after the previous page.
    pub(crate) fn push_cursor<Row>(&self, query: &mut Prepared<'_, Row>) {
        if let Some(cursor) = self.after {
            // The first condition bounds the range of the index.
            query.sql(" AND uploaded_at <= ").time(cursor.at);
            query.sql(" AND (uploaded_at < ").time(cursor.at);
            query.sql(" OR id < ").uuid(cursor.id).sql(")");
        }
    }

    /// Adds the condition on extensions.
    pub(crate) fn push_extensions<'q, Row>(&'q self, query: &mut Prepared<'q, Row>) {
        match self.extensions.as_deref() {
            None => {}
            // The planner knows the order of an index only behind `=`.
            Some([extension]) => {
                query.sql(" AND extension = ").text(extension);
            }
            Some(extensions) => {
                query.sql(" AND extension = ANY (");
                query.texts(extensions.to_vec()).sql(")");
            }
        }
    }

    /// Adds the conditions on the path. `strpos` instead of `LIKE` bars the planner from the trigram
    /// index, and from taking a walk in the list's order for hopeless.
    pub(crate) fn push_path<'q, Row>(&'q self, query: &mut Prepared<'q, Row>) {
        if let Some(part) = &self.part {
            query
                .sql(" AND strpos(path_folded, ")
                .text(part)
                .sql(") > 0");
        }
        self.push_suffixes(query);
    }

    /// Adds the conditions that `labdata.file_search_idx` supports, and the one on suffixes. A condition
    /// that all files meet would take a third of the time.
    pub(crate) fn push_indexed<'q, Row>(
        &'q self,
        owners: IndexOwners,
        query: &mut Prepared<'q, Row>,
    ) {
        let pattern = self.indexed.as_deref().unwrap_or("%");
        self.push_pattern(pattern, owners, query);
    }

    /// The number of the part, which the index can look up by itself.
    pub(crate) const fn number(&self) -> Option<&Number> {
        self.number.as_ref()
    }

    /// Adds the conditions as [`Self::push_indexed`] does, with that pattern.
    pub(crate) fn push_pattern<'q, Row>(
        &'q self,
        pattern: &'q str,
        owners: IndexOwners,
        query: &mut Prepared<'q, Row>,
    ) {
        query
            .sql("uploaded_at IS NOT NULL AND path_folded LIKE ")
            .text(pattern);
        let organization = (owners == IndexOwners::Several).then_some(self.organization);
        let ids: Vec<Uuid> = [organization, self.instrument]
            .into_iter()
            .flatten()
            .collect();
        if !ids.is_empty() {
            // Arrays, because GIN cannot index a single value without the extension `btree_gin`.
            query.sql(" AND ARRAY[organization_id, instrument_id] @> ");
            query.uuids(ids);
        }
        if let Some(extensions) = &self.extensions {
            query.sql(" AND ARRAY[extension] && ");
            query.texts(extensions.clone());
        }
        self.push_suffixes(query);
    }

    fn push_suffixes<Row>(&self, query: &mut Prepared<'_, Row>) {
        if let Some(suffixes) = &self.suffixes {
            query
                .sql(" AND EXISTS (SELECT FROM unnest(")
                .texts(suffixes.clone());
            // As `strpos`: the planner might look a LIKE up in the trigram index.
            query.sql(") AS s (suffix) WHERE right(path_folded, length(suffix)) = suffix)");
        }
    }
}

/// Escapes a text so that every character of it stands for itself in a `LIKE` pattern.
fn escaped(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '\\' | '%' | '_') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

/// True if `pg_trgm` can extract a trigram from the pattern `%part%`.
///
/// It takes trigrams from words (runs of letters and digits), with two spaces before the first
/// character and one after the last. Where the part begins or ends within a word, that padding is
/// unknown.
fn has_trigram(part: &str) -> bool {
    let mut words = part.split(|c: char| !c.is_alphanumeric());
    let first = words.next().map_or(0, |word| word.chars().count());
    match words.next() {
        None => first >= 3,
        Some(second) => first >= 2 || !second.is_empty() || words.any(|word| !word.is_empty()),
    }
}

/// The longest word of a part that has a digit and at least three characters, if the part has more than it.
fn number_of(part: &str) -> Option<&str> {
    part.split(|c: char| !c.is_alphanumeric())
        // The whole part is looked up anyway.
        .filter(|word| word.len() < part.len() && word.contains(|c: char| c.is_ascii_digit()))
        .filter(|word| word.chars().count() >= 3)
        .max_by_key(|word| word.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_part_is_its_longest_word_with_a_digit() {
        for (part, found) in [
            ("stored_123.csv", Some("123")),
            ("plate_7_20261125", Some("20261125")),
            ("a1_b23", Some("b23")),
            ("plate 12", None),
            ("123", None),
            ("plate", None),
            ("", None),
        ] {
            assert_eq!(number_of(part), found, "{part}");
        }
    }

    #[test]
    fn a_pattern_takes_every_character_literally() {
        assert_eq!(escaped("a_1%\\é"), "a\\_1\\%\\\\é");
    }

    #[test]
    fn a_part_has_a_trigram_where_a_word_of_it_is_long_enough_or_its_start_is_known() {
        for part in ["abc", "süd", "ab-", "-q", "-q.", "a-b", "--b", "12_34"] {
            assert!(has_trigram(part), "{part}");
        }
        for part in ["", "a", "ab", "---", "a-", "a--", "%"] {
            assert!(!has_trigram(part), "{part}");
        }
    }
}
