//! Listings of files, which cost about the same however many files there are.
//!
//! Instruments and extensions have indexes in the order of the list. A part of a path has none in
//! that order: where it is frequent it is found soon by walking the list, where it is rare by an
//! index over groups of three characters. So the newest files are walked a little way first, and
//! what that finds tells which of the two goes on. See docs/adr/0009.

use diesel::{
    dsl::{AsSelect, SqlTypeOf},
    pg::Pg,
};
use diesel_async::RunQueryDsl;
use labdata_domain::{
    file::{FileFilter, NameQuery},
    ids::{InstrumentId, OrganizationId},
    page::PageRequest,
};

use crate::{
    errors::Fault,
    file_rows::{EXTENSION_CHARS, FileRow, extension_prefix},
    paging::overfetched,
    pool::Connection,
    prepared::Prepared,
};

/// How many files are walked at first.
const FIRST_WALK: i64 = 512;

/// From so many matches among them on, walking goes on.
const DENSE: usize = 2;

/// How many files are walked then, from the beginning.
const SECOND_WALK: i64 = 32 * 1024;

/// How many characters the index knows as a group.
const GRAM: usize = 3;

/// The most groups of a search that are looked at.
const MAX_GRAMS: usize = 64;

/// The columns of [`FileRow`], in its order.
const COLUMNS: &str = "id, instrument_id, job_execution_id, source_type, status, original_path, \
     content_type, object_key, upload_expires_at, size_bytes, crc32c, uploaded_at, \
     file_created_at, created_at";

const NEWEST_FIRST: &str = " ORDER BY uploaded_at DESC, id DESC LIMIT ";

type Rows<'q> = Prepared<'q, SqlTypeOf<AsSelect<FileRow, Pg>>>;

/// A page of a listing.
pub(crate) struct Listing<'f> {
    organization: OrganizationId,
    instrument: Option<InstrumentId>,
    /// Beginnings of extensions, as their column has them; each once.
    extensions: Option<Vec<String>>,
    /// Ends of paths, where that column does not tell.
    suffixes: Option<Vec<String>>,
    /// A part of the path.
    part: Option<&'f str>,
    page: PageRequest,
}

impl<'f> Listing<'f> {
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
            organization,
            instrument: filter.instrument,
            extensions,
            suffixes,
            part: filter.query.as_ref().map(NameQuery::folded),
            page,
        }
    }

    /// The rows of the page, and one more where more follow.
    pub(crate) async fn rows(&self, connection: &mut Connection) -> Result<Vec<FileRow>, Fault> {
        let wanted = overfetched(self.page);
        if self.part.is_none() && self.suffixes.is_none() {
            return load(self.walk(wanted), connection).await;
        }
        if self.page.limit.is_some() {
            let enough = |rows: &Vec<FileRow>| i64::try_from(rows.len()).is_ok_and(|n| n >= wanted);
            let mut rows = load(self.walk(FIRST_WALK.max(wanted)), connection).await?;
            if rows.len() >= DENSE && !enough(&rows) {
                rows = load(self.walk(SECOND_WALK), connection).await?;
            }
            if enough(&rows) {
                return Ok(rows);
            }
        }
        let grams = self.grams();
        if grams.is_empty() {
            load(self.walk(i64::MAX), connection).await
        } else {
            load(self.search(grams), connection).await
        }
    }

    /// Of the first so many files of the list, those that match.
    fn walk(&self, files: i64) -> Rows<'_> {
        let mut query = Rows::new();
        query.sql("SELECT ").sql(COLUMNS).sql(" FROM (");
        match self.extensions.as_deref() {
            None => {
                self.list(&mut query);
            }
            Some([one]) => {
                self.list(&mut query);
                query.sql(" AND extension = ").text(one);
            }
            // Each extension has an order of its own in the index; they are merged.
            Some(several) => {
                query.sql("SELECT f.* FROM unnest(").texts(several.to_vec());
                query.sql(") AS wanted (e) CROSS JOIN LATERAL (");
                self.list(&mut query);
                query.sql(" AND extension = e").sql(NEWEST_FIRST);
                query.count(files).sql(") f");
            }
        }
        query.sql(NEWEST_FIRST).count(files).sql(") w WHERE true");
        self.matching(&mut query);
        query.sql(NEWEST_FIRST).count(overfetched(self.page));
        query
    }

    /// All files that match, by the index over groups of characters.
    ///
    /// Of the groups the three are taken that are the rarest in files from all over the list:
    /// reading a frequent one's part of the index tells little and costs most.
    fn search(&self, grams: Vec<String>) -> Rows<'_> {
        let organization = self.organization.as_uuid();
        let mut query = Rows::new();
        query.sql("WITH span AS MATERIALIZED (SELECT (SELECT uploaded_at FROM labdata.file ");
        query.sql("WHERE uploaded_at IS NOT NULL AND organization_id = ");
        query
            .uuid(organization)
            .sql(" ORDER BY uploaded_at, id LIMIT 1) AS oldest, ");
        query.sql("(SELECT uploaded_at FROM labdata.file ");
        query.sql("WHERE uploaded_at IS NOT NULL AND organization_id = ");
        query.uuid(organization).sql(NEWEST_FIRST).count(1);
        query.sql(") AS newest), sample AS MATERIALIZED (");
        query.sql("SELECT f.path_folded FROM span CROSS JOIN generate_series(1, 8) n ");
        query.sql("CROSS JOIN LATERAL (SELECT path_folded FROM labdata.file ");
        query.sql(
            "WHERE uploaded_at <= oldest + (newest - oldest) * (n / 8.0) AND organization_id = ",
        );
        query.uuid(organization).sql(NEWEST_FIRST).count(8);
        query
            .sql(") f), rare AS (SELECT g FROM unnest(")
            .texts(grams);
        query
            .sql(") g ORDER BY (SELECT count(*) FROM sample WHERE strpos(path_folded, g) > 0), g ");
        query.sql("LIMIT 3) SELECT ").sql(COLUMNS).sql(" FROM (");
        // Fenced off, as the planner would search the index by organization as well, all of it.
        query.sql("SELECT * FROM labdata.file WHERE uploaded_at IS NOT NULL ");
        query.sql("AND labdata.path_grams(organization_id, path_folded) @> ");
        query
            .sql("(SELECT array_agg((labdata.path_grams(")
            .uuid(organization);
        query.sql(", g))[1]) FROM rare) OFFSET 0) f WHERE ");
        self.in_list(&mut query);
        if let Some(extensions) = &self.extensions {
            query
                .sql(" AND extension = ANY (")
                .texts(extensions.clone())
                .sql(")");
        }
        self.matching(&mut query);
        query.sql(NEWEST_FIRST).count(overfetched(self.page));
        query
    }

    /// Begins to read the list behind the cursor, without extensions; conditions may follow.
    fn list(&self, query: &mut Rows<'_>) {
        query.sql("SELECT * FROM labdata.file WHERE uploaded_at IS NOT NULL AND ");
        self.in_list(query);
    }

    /// What holds of every file of the list behind the cursor, but for extensions.
    fn in_list(&self, query: &mut Rows<'_>) {
        query
            .sql("organization_id = ")
            .uuid(self.organization.as_uuid());
        if let Some(instrument) = self.instrument {
            query
                .sql(" AND instrument_id = ")
                .uuid(instrument.as_uuid());
        }
        if let Some(place) = self.page.after {
            // The first condition bounds the range of the index.
            query.sql(" AND uploaded_at <= ").time(place.at);
            query.sql(" AND (uploaded_at < ").time(place.at);
            query.sql(" OR id < ").uuid(place.id).sql(")");
        }
    }

    /// Conditions that no index in the order of the list tells.
    fn matching<'q>(&'q self, query: &mut Rows<'q>) {
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

    /// Groups of three characters that every match has.
    fn grams(&self) -> Vec<String> {
        let of = match (self.part, self.suffixes.as_deref()) {
            (Some(part), _) => part,
            (None, Some([suffix])) => suffix,
            (None, _) => return Vec::new(),
        };
        let characters: Vec<char> = of.chars().collect();
        let mut grams: Vec<String> = characters
            .windows(GRAM)
            .map(|gram| gram.iter().collect())
            .collect();
        grams.sort_unstable();
        grams.dedup();
        grams.truncate(MAX_GRAMS);
        grams
    }
}

async fn load(query: Rows<'_>, connection: &mut Connection) -> Result<Vec<FileRow>, Fault> {
    Ok(query.load(connection).await?)
}
