//! What the files of a listing have in common, as conditions of SQL.

use labdata_domain::{
    files::{FileFilter, NameQuery},
    ids::{InstrumentId, OrganizationId},
    page::{Cursor, PageRequest},
};
use uuid::Uuid;

use crate::{
    database::prepared::Prepared,
    files::rows::{EXTENSION_CHARS, extension_prefix},
};

/// Conditions on `organization_id`, `uploaded_at`, `id`, `instrument_id`, `extension` and
/// `path_folded`, whatever the table.
#[derive(Clone, Debug)]
pub(crate) struct FileConditions<'f> {
    pub(crate) organization: Uuid,
    pub(crate) instrument: Option<Uuid>,
    /// Beginnings of extensions, as their column has them; each once.
    pub(crate) extensions: Option<Vec<String>>,
    /// Ends of paths, where that column does not tell.
    pub(crate) suffixes: Option<Vec<String>>,
    /// A part of the path.
    pub(crate) part: Option<&'f str>,
    /// They come after this place in the list.
    pub(crate) after: Option<Cursor>,
}

impl<'f> FileConditions<'f> {
    pub(crate) fn new(
        organization: OrganizationId,
        filter: &'f FileFilter,
        page: PageRequest,
    ) -> Self {
        let (mut extensions, mut suffixes) = (None, None);
        if let Some(wanted) = &filter.extensions {
            let last_parts = wanted.last_parts();
            let cut = last_parts
                .iter()
                .any(|part| part.chars().nth(EXTENSION_CHARS).is_some());
            if cut || wanted.has_compound() {
                suffixes = Some(wanted.suffixes());
            }
            let mut prefixes: Vec<String> = last_parts.into_iter().map(extension_prefix).collect();
            prefixes.sort_unstable();
            prefixes.dedup();
            extensions = Some(prefixes);
        }
        Self {
            organization: organization.as_uuid(),
            instrument: filter.instrument.map(InstrumentId::as_uuid),
            extensions,
            suffixes,
            part: filter.query.as_ref().map(NameQuery::folded),
            after: page.after,
        }
    }

    /// Whether there are some that no index in the order of the list tells.
    pub(crate) fn need_a_search(&self) -> bool {
        self.part.is_some() || self.suffixes.is_some()
    }

    /// Those that bound a range of the list: organization, instrument and place.
    pub(crate) fn of_the_list<Row>(&self, query: &mut Prepared<'_, Row>) {
        query
            .sql("uploaded_at IS NOT NULL AND organization_id = ")
            .uuid(self.organization);
        if let Some(instrument) = self.instrument {
            query.sql(" AND instrument_id = ").uuid(instrument);
        }
        if let Some(place) = self.after {
            // The first condition bounds the range of the index.
            query.sql(" AND uploaded_at <= ").time(place.at);
            query.sql(" AND (uploaded_at < ").time(place.at);
            query.sql(" OR id < ").uuid(place.id).sql(")");
        }
    }

    /// All of them.
    pub(crate) fn all<'q, Row>(&'q self, query: &mut Prepared<'q, Row>) {
        self.of_the_list(query);
        if let Some(extensions) = &self.extensions {
            query.sql(" AND extension = ANY (");
            query.texts(extensions.clone()).sql(")");
        }
        if let Some(part) = self.part {
            query
                .sql(" AND strpos(path_folded, ")
                .text(part)
                .sql(") > 0");
        }
        if let Some(suffixes) = &self.suffixes {
            query
                .sql(" AND EXISTS (SELECT FROM unnest(")
                .texts(suffixes.clone());
            query.sql(") AS s (suffix) WHERE right(path_folded, length(suffix)) = suffix)");
        }
    }
}
