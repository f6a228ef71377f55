//! Listings of files, which cost about the same however many files there are.
//!
//! Instruments and extensions have indexes in the order of the list. A part of a path has none in
//! that order: where it is frequent it is found soon by walking the list, else by an index over
//! groups of characters, which is read one span of time after the other, the newest first. So the
//! newest files are walked a little way, and what that finds tells which of the two goes on. See
//! docs/adr/0009.

use diesel::{
    dsl::{AsSelect, SqlTypeOf},
    pg::Pg,
    sql_types::{Array, Bool, Nullable, Text, Timestamptz},
};
use diesel_async::RunQueryDsl;
use labdata_domain::{
    file::{FileFilter, NameQuery},
    ids::{InstrumentId, OrganizationId},
    page::PageRequest,
};
use time::{Duration, OffsetDateTime};

use crate::{
    errors::Fault,
    file_rows::{EXTENSION_CHARS, FileRow, extension_prefix},
    file_spans::groups,
    paging::overfetched,
    pool::Connection,
    prepared::Prepared,
};

/// How many files are walked at first.
const FIRST_WALK: i64 = 512;

/// The same in a list of an instrument or an extension, which may well end there.
const FIRST_NARROW_WALK: i64 = 1_024;

/// Where a sample shows that a part is frequent somewhere, what is read of the index at once is
/// bounded to so many times what was walked.
const FREQUENT_SOMEWHERE: i32 = 16;

/// The walk goes on where it will likely find enough within so many files.
const LAST_WALK: i64 = 4_096;

/// The longest groups of characters that the index knows.
const GRAM: usize = 3;

/// The most groups of a search that are looked at.
const MAX_GRAMS: usize = 64;

/// The index is read by spans of time for one of so many parts of the time of the list, its newest.
const NEWEST_PART: i32 = 8;

/// The columns of [`FileRow`], in its order.
const COLUMNS: &str = "id, instrument_id, job_execution_id, source_type, status, original_path, \
     content_type, object_key, upload_expires_at, size_bytes, crc32c, uploaded_at, \
     file_created_at, created_at";

/// What the index over groups of characters is about.
const KEYS: &str =
    "labdata.file_keys(organization_id, instrument_id, extension, path_folded, uploaded_at)";

const NEWEST_FIRST: &str = " ORDER BY uploaded_at DESC, id DESC LIMIT ";

type Rows<'q> = Prepared<'q, SqlTypeOf<AsSelect<FileRow, Pg>>>;

/// When the newest file of a list was uploaded, the last one that was walked, and the oldest one,
/// where there are so many; the words to look up; and whether the part is in a file of the sample.
type Outlook = (
    Option<OffsetDateTime>,
    Option<OffsetDateTime>,
    Option<OffsetDateTime>,
    Vec<String>,
    bool,
);
type OutlookSql = (
    Nullable<Timestamptz>,
    Nullable<Timestamptz>,
    Nullable<Timestamptz>,
    Array<Text>,
    Bool,
);

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
        if self.page.limit.is_none() {
            return load(self.walk(i64::MAX), connection).await;
        }
        let count = |rows: &[FileRow]| i64::try_from(rows.len()).unwrap_or(i64::MAX);
        let narrow = self.instrument.is_some() || self.extensions.is_some();
        let first = if narrow {
            FIRST_NARROW_WALK
        } else {
            FIRST_WALK
        };
        let mut walked = first.max(wanted);
        let mut rows = load(self.walk(walked), connection).await?;
        let found = count(&rows);
        if (1..wanted).contains(&found) {
            // Twice as many as should do.
            let farther = walked * wanted / found * 2;
            if farther <= LAST_WALK.max(2 * wanted) {
                walked = farther;
                rows = load(self.walk(walked), connection).await?;
            }
        }
        if count(&rows) >= wanted {
            return Ok(rows);
        }
        let outlook: Outlook = self.outlook(walked).get_result(connection).await?;
        let (Some(newest), Some(last_walked), Some(oldest), rare, frequent) = outlook else {
            // There are no more files than were walked.
            return Ok(rows);
        };
        let walk = newest - last_walked;
        if frequent {
            let spans = groups(
                newest,
                oldest,
                walk,
                walk.saturating_mul(FREQUENT_SOMEWHERE),
            );
            return load(self.search(&rare, Some(spans)), connection).await;
        }
        let until = newest - (newest - oldest) / NEWEST_PART;
        let spans = groups(newest, until, walk, Duration::MAX);
        let rows = load(self.search(&rare, Some(spans)), connection).await?;
        if count(&rows) >= wanted {
            return Ok(rows);
        }
        // So few have it that they can be had all.
        load(self.search(&rare, None), connection).await
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

    /// What [`Self::search`] has to know.
    ///
    /// Of the groups the four are taken that are the rarest in files from all over the list:
    /// reading a frequent one's part of the index tells little and costs most.
    fn outlook(&self, walked: i64) -> Prepared<'_, OutlookSql> {
        let organization = self.organization.as_uuid();
        let mut query = Prepared::new();
        query.sql("WITH list AS NOT MATERIALIZED (SELECT uploaded_at, id FROM labdata.file WHERE ");
        self.in_list(&mut query);
        query.sql("), ends AS MATERIALIZED (SELECT (SELECT uploaded_at FROM list");
        query.sql(NEWEST_FIRST).count(1);
        query.sql(") AS newest, (SELECT uploaded_at FROM list");
        query
            .sql(NEWEST_FIRST)
            .count(1)
            .sql(" OFFSET ")
            .count(walked);
        query.sql(") AS last_walked, (SELECT uploaded_at FROM list ");
        query.sql("ORDER BY uploaded_at, id LIMIT 1) AS oldest), sample AS MATERIALIZED (");
        query.sql("SELECT f.path_folded FROM ends CROSS JOIN generate_series(1, 8) n ");
        query.sql("CROSS JOIN LATERAL (SELECT path_folded FROM labdata.file WHERE uploaded_at ");
        query.sql("<= oldest + (newest - oldest) * (n / 8.0) AND organization_id = ");
        query.uuid(organization).sql(NEWEST_FIRST).count(8);
        query.sql(") f) SELECT newest, last_walked, oldest, ARRAY(SELECT g FROM unnest(");
        query.texts(self.grams());
        query
            .sql(") g ORDER BY (SELECT count(*) FROM sample WHERE strpos(path_folded, g) > 0), g ");
        query.sql("LIMIT 4), EXISTS (SELECT FROM sample WHERE strpos(path_folded, ");
        // Without a part any file will do.
        query
            .text(self.part.unwrap_or_default())
            .sql(") > 0) FROM ends");
        query
    }

    /// The newest files that match, by the index over groups of characters: with groups of spans
    /// of time, those that are found in them, one group after the other until there are enough.
    fn search(&self, grams: &[String], spans: Option<Vec<String>>) -> Rows<'_> {
        let organization = self.organization.as_uuid();
        let wanted = overfetched(self.page);
        let in_spans = spans.is_some();
        let mut query = Rows::new();
        if let Some(spans) = spans {
            query.sql("SELECT * FROM (SELECT f.* FROM (SELECT ARRAY(SELECT labdata.file_key(");
            query.uuid(organization).sql(", word) ");
            query.sql("FROM unnest(string_to_array(words, ',')) word) AS keys FROM unnest(");
            query.texts(spans);
            query.sql(") words OFFSET 0) span CROSS JOIN LATERAL (");
        }
        query.sql("SELECT ").sql(COLUMNS).sql(" FROM (");
        // Fenced off, as the planner would search the index by organization as well, all of it.
        query.sql("SELECT * FROM labdata.file WHERE uploaded_at IS NOT NULL");
        if in_spans {
            query.sql(" AND ").sql(KEYS).sql(" && span.keys");
        }
        let mut all_of = grams.to_vec();
        if let Some(instrument) = self.instrument {
            all_of.push(format!("instrument {instrument}"));
        }
        let mut extensions: Vec<String> = self.extensions.iter().flatten().cloned().collect();
        for extension in &mut extensions {
            extension.insert_str(0, "extension ");
        }
        if extensions.len() == 1 {
            all_of.append(&mut extensions);
        }
        for (operator, words) in [(" @> ", all_of), (" && ", extensions)] {
            if !words.is_empty() {
                query.sql(" AND ").sql(KEYS).sql(operator);
                query.sql("ARRAY(SELECT labdata.file_key(");
                query.uuid(organization).sql(", word) FROM unnest(");
                query.texts(words).sql(") word)");
            }
        }
        query.sql(" OFFSET 0) k WHERE ");
        self.in_list(&mut query);
        if let Some(extensions) = &self.extensions {
            query.sql(" AND extension = ANY (");
            query.texts(extensions.clone()).sql(")");
        }
        self.matching(&mut query);
        query.sql(NEWEST_FIRST).count(wanted);
        if in_spans {
            query.sql(") f LIMIT ").count(wanted);
            query.sql(") found ORDER BY uploaded_at DESC, id DESC");
        }
        query
    }

    /// Begins to read the list behind the cursor, without extensions; conditions may follow.
    fn list(&self, query: &mut Rows<'_>) {
        query.sql("SELECT * FROM labdata.file WHERE ");
        self.in_list(query);
    }

    /// What holds of every file of the list behind the cursor, but for extensions.
    fn in_list<Row>(&self, query: &mut Prepared<'_, Row>) {
        query
            .sql("uploaded_at IS NOT NULL AND organization_id = ")
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

    /// Groups of characters that every match has.
    fn grams(&self) -> Vec<String> {
        let of = match (self.part, self.suffixes.as_deref()) {
            (Some(part), _) => part,
            (None, Some([suffix])) => suffix,
            (None, _) => return Vec::new(),
        };
        let characters: Vec<char> = of.chars().collect();
        let mut grams: Vec<String> = characters
            .windows(characters.len().clamp(1, GRAM))
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
