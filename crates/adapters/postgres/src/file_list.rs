//! Listings of files, which cost about the same however many files there are.
//!
//! Instruments and extensions have indexes in the order of the list. A part of a path has none in
//! that order: where it is frequent it is found soon by walking the list, else by an index over
//! groups of characters, which is read one span of time after the other, the newest first. So the
//! newest files are walked a little way, and what that finds tells which of the two goes on. See
//! docs/adr/0009.

use std::{cmp::Reverse, collections::HashSet};

use diesel::{
    dsl::{AsSelect, SqlTypeOf},
    pg::Pg,
    sql_types::{Array, Nullable, Text, Timestamptz},
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
    file_spans::{cover_then_divide, groups},
    paging::overfetched,
    pool::Connection,
    prepared::{Prepared, round_up},
};

/// How many files are walked at first.
const FIRST_WALK: i64 = 512;

/// The same in a list of an instrument or an extension, which may well end there.
const FIRST_NARROW_WALK: i64 = 1_024;

/// Where a part is frequent somewhere but not where a sample showed it, what is read of the index at
/// once is bounded to so many times what was walked.
const FREQUENT_SOMEWHERE: i32 = 16;

/// In how many parts the time is searched in which a part that old files have may have begun.
const BEHIND_THE_UNLIKE: usize = 16;

/// The walk goes on where it will likely find enough within so many files.
const LAST_WALK: i64 = 4_096;

/// The longest groups of characters that the index knows.
const GRAM: usize = 3;

/// The most groups of a search that are looked at.
const MAX_GRAMS: usize = 16;

/// Where a sample shows none, many will have to be read: a walk times so much at first.
const WHERE_NONE_WAS_SEEN: i32 = 8;

/// The index is read by spans of time for one of so many parts of the time of the list, its newest.
const NEWEST_PART: i32 = 8;

/// The columns of [`FileRow`], in its order.
const COLUMNS: &str = "id, instrument_id, job_execution_id, source_type, status, original_path, \
     content_type, object_key, upload_expires_at, size_bytes, crc32c, uploaded_at, \
     file_created_at, created_at";

/// What the index over groups of characters is about.
const KEYS: &str =
    "labdata.file_keys(organization_id, instrument_id, extension, path_folded, uploaded_at)";

const NEWEST_FIRST: &str = " ORDER BY uploaded_at DESC, id DESC";

type Rows<'q> = Prepared<'q, SqlTypeOf<AsSelect<FileRow, Pg>>>;

/// When the newest file of a list was uploaded, the last one that was walked, and the oldest one,
/// where there are so many; the words to look up; when the newest file of a sample was uploaded that
/// matches; and the one before it, which does not.
type Outlook = (
    Option<OffsetDateTime>,
    Option<OffsetDateTime>,
    Option<OffsetDateTime>,
    Vec<String>,
    Option<OffsetDateTime>,
    Option<OffsetDateTime>,
);
type OutlookSql = (
    Nullable<Timestamptz>,
    Nullable<Timestamptz>,
    Nullable<Timestamptz>,
    Array<Text>,
    Nullable<Timestamptz>,
    Nullable<Timestamptz>,
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
        let mut rows = self.at_least(connection).await?;
        let wanted = overfetched(self.page);
        rows.truncate(usize::try_from(wanted).unwrap_or(usize::MAX));
        Ok(rows)
    }

    /// As [`Self::rows`], or more: the database is asked for a round number.
    async fn at_least(&self, connection: &mut Connection) -> Result<Vec<FileRow>, Fault> {
        let wanted = overfetched(self.page);
        if self.part.is_none() && self.suffixes.is_none() {
            return load(self.walk(wanted, None), connection).await;
        }
        if self.page.limit.is_none() {
            return load(self.walk(i64::MAX, None), connection).await;
        }
        let count = |rows: &[FileRow]| i64::try_from(rows.len()).unwrap_or(i64::MAX);
        let narrow = self.instrument.is_some() || self.extensions.is_some();
        let first = if narrow {
            FIRST_NARROW_WALK
        } else {
            FIRST_WALK
        };
        let mut walked = round_up(first.max(wanted));
        let mut rows = load(self.walk(walked, None), connection).await?;
        let found = count(&rows);
        if (1..wanted).contains(&found) {
            // Twice as many as should do.
            let farther = walked * wanted / found * 2;
            if farther <= LAST_WALK.max(2 * wanted) {
                walked = round_up(farther);
                rows = load(self.walk(walked, None), connection).await?;
            }
        }
        if count(&rows) >= wanted {
            return Ok(rows);
        }
        let outlook: Outlook = self.outlook(walked).get_result(connection).await?;
        let (Some(newest), Some(last_walked), Some(oldest), rare, seen, unlike) = outlook else {
            // There are no more files than were walked.
            return Ok(rows);
        };
        let walk = newest - last_walked;
        let Some(seen) = seen else {
            let until = newest - (newest - oldest) / NEWEST_PART;
            let first = walk.saturating_mul(WHERE_NONE_WAS_SEEN);
            let spans = groups(newest, until, first, Duration::MAX);
            let rows = load(self.search(&rare, Some(spans)), connection).await?;
            if count(&rows) >= wanted {
                return Ok(rows);
            }
            // So few have it that they can be had all.
            return load(self.search(&rare, None), connection).await;
        };
        // Hardly any file before those of the sample that do not match has the part, and it may be
        // frequent from somewhere behind them on.
        let unlike = unlike.unwrap_or(newest);
        let spans = cover_then_divide(newest, unlike, seen, BEHIND_THE_UNLIKE);
        let mut rows = load(self.search(&rare, Some(spans)), connection).await?;
        if count(&rows) < wanted {
            let known: HashSet<_> = rows.iter().map(FileRow::id).collect();
            let older = load(self.walk(LAST_WALK, Some(seen)), connection).await?;
            rows.extend(older.into_iter().filter(|row| !known.contains(&row.id())));
            rows.sort_unstable_by_key(|row| Reverse(row.place()));
        }
        if count(&rows) >= wanted {
            return Ok(rows);
        }
        let longest = walk.saturating_mul(FREQUENT_SOMEWHERE);
        let spans = groups(newest, oldest, walk, longest);
        load(self.search(&rare, Some(spans)), connection).await
    }

    /// Of the first so many files of the list, or of its files from a time on backwards, those that
    /// match.
    fn walk(&self, files: i64, from: Option<OffsetDateTime>) -> Rows<'_> {
        let mut query = Rows::new();
        query.sql("SELECT ").sql(COLUMNS).sql(" FROM (");
        self.first(&mut query, files, from);
        query.sql(") w WHERE true");
        self.matching(&mut query);
        query.sql(NEWEST_FIRST);
        self.bounded(&mut query, overfetched(self.page));
        query
    }

    /// The first so many files of the list, in its order.
    fn first<'q, Row>(
        &'q self,
        query: &mut Prepared<'q, Row>,
        files: i64,
        from: Option<OffsetDateTime>,
    ) {
        let list = |query: &mut Prepared<'q, Row>| {
            query.sql("SELECT * FROM labdata.file WHERE ");
            self.in_list(query);
            if let Some(from) = from {
                query.sql(" AND uploaded_at <= ").time(from);
            }
        };
        match self.extensions.as_deref() {
            None => list(query),
            Some([one]) => {
                list(query);
                query.sql(" AND extension = ").text(one);
            }
            // Each extension has an order of its own in the index; they are merged.
            Some(several) => {
                query.sql("SELECT f.* FROM unnest(").texts(several.to_vec());
                query.sql(") AS wanted (e) CROSS JOIN LATERAL (");
                list(query);
                query.sql(" AND extension = e").sql(NEWEST_FIRST);
                self.bounded(query, files);
                query.sql(") f");
            }
        }
        query.sql(NEWEST_FIRST);
        self.bounded(query, files);
    }

    /// What [`Self::search`] has to know.
    ///
    /// Of the words those are taken that are the rarest in files from all over the list: reading a
    /// frequent one's part of the index tells little and costs most.
    fn outlook(&self, walked: i64) -> Prepared<'_, OutlookSql> {
        let organization = self.organization.as_uuid();
        let mut query = Prepared::new();
        query.sql("WITH list AS NOT MATERIALIZED (SELECT uploaded_at, id FROM labdata.file WHERE ");
        self.in_list(&mut query);
        query.sql("), ends AS MATERIALIZED (SELECT (SELECT uploaded_at FROM list");
        query.sql(NEWEST_FIRST).limit(1);
        query.sql(") AS newest, (SELECT min(uploaded_at) FROM (");
        self.first(&mut query, walked, None);
        query.sql(") w HAVING count(*) = ").count(walked);
        query.sql(") AS last_walked, (SELECT uploaded_at FROM list ");
        query.sql("ORDER BY uploaded_at, id LIMIT 1) AS oldest), sample AS MATERIALIZED (");
        query.sql("SELECT f.* FROM ends CROSS JOIN generate_series(1, 16) n CROSS JOIN LATERAL (");
        query.sql("SELECT uploaded_at, instrument_id, extension, path_folded FROM labdata.file ");
        query.sql("WHERE uploaded_at <= oldest + (newest - oldest) * (n / 16.0) ");
        query
            .sql("AND uploaded_at IS NOT NULL AND organization_id = ")
            .uuid(organization);
        query.sql(NEWEST_FIRST).sql(" LIMIT 2) f) ");
        query.sql("SELECT newest, last_walked, oldest, ARRAY(SELECT g FROM (SELECT g, ");
        query.sql("(SELECT count(*) FROM sample WHERE strpos(path_folded, g) > 0) FROM unnest(");
        query.texts(self.grams()).sql(") g");
        // What too many files have only costs.
        if let Some(instrument) = self.instrument {
            query.sql(" UNION ALL SELECT concat('instrument ', i), n FROM (SELECT ");
            query.uuid(instrument.as_uuid());
            query.sql(" AS i) one, LATERAL (SELECT count(*) FROM sample WHERE instrument_id = i) ");
            query.sql("counted (n) WHERE n < 8");
        }
        if let Some([extension]) = self.extensions.as_deref() {
            query.sql(" UNION ALL SELECT concat('extension ', e), n FROM unnest(");
            query.texts(vec![extension.clone()]);
            query.sql(") e, LATERAL (SELECT count(*) FROM sample WHERE extension = e) ");
            query.sql("counted (n) WHERE n < 8");
        }
        query.sql(") words (g, n) ORDER BY n, g LIMIT 4), seen, ");
        query.sql("(SELECT min(uploaded_at) FROM sample WHERE uploaded_at > seen) FROM ends, ");
        query.sql("(SELECT max(uploaded_at) AS seen FROM sample WHERE true");
        if let Some(instrument) = self.instrument {
            query
                .sql(" AND instrument_id = ")
                .uuid(instrument.as_uuid());
        }
        if let Some(extensions) = &self.extensions {
            query
                .sql(" AND extension = ANY (")
                .texts(extensions.clone())
                .sql(")");
        }
        self.matching(&mut query);
        query.sql(") matching");
        query
    }

    /// The newest files that match, by the index over groups of characters: with groups of spans
    /// of time, those that are found in them, one group after the other until there are enough.
    fn search(&self, rare: &[String], spans: Option<Vec<String>>) -> Rows<'_> {
        let organization = self.organization.as_uuid();
        let wanted = overfetched(self.page);
        let in_spans = spans.is_some();
        let mut query = Rows::new();
        if let Some(spans) = spans {
            query.sql("SELECT * FROM (SELECT f.* FROM (SELECT ARRAY(SELECT labdata.file_key(");
            query.uuid(organization).sql(", word) ");
            query.sql("FROM unnest(string_to_array(words, ',')) word) AS keys FROM ");
            unnest(&mut query, spans);
            query.sql(" words OFFSET 0) span CROSS JOIN LATERAL (");
        }
        query.sql("SELECT ").sql(COLUMNS).sql(" FROM (");
        // Fenced off, as the planner would search the index by organization as well, all of it.
        query.sql("SELECT * FROM labdata.file WHERE uploaded_at IS NOT NULL");
        if in_spans {
            query.sql(" AND ").sql(KEYS).sql(" && span.keys");
        }
        if !rare.is_empty() {
            query.sql(" AND ").sql(KEYS).sql(" @> ");
            query.sql("ARRAY(SELECT labdata.file_key(");
            query.uuid(organization).sql(", word) FROM ");
            unnest(&mut query, rare.to_vec());
            query.sql(" word)");
        }
        query.sql(" OFFSET 0) k WHERE ");
        self.in_list(&mut query);
        if let Some(extensions) = &self.extensions {
            query.sql(" AND extension = ANY (");
            query.texts(extensions.clone()).sql(")");
        }
        self.matching(&mut query);
        query.sql(NEWEST_FIRST).limit(wanted);
        if in_spans {
            query.sql(") f").limit(wanted);
            query.sql(") found ORDER BY uploaded_at DESC, id DESC");
        }
        query
    }

    /// Ends a list. Of an instrument or an extension the database has to know which it is to
    /// choose its index well, so it plans such a list every time.
    fn bounded<Row>(&self, query: &mut Prepared<'_, Row>, rows: i64) {
        if self.instrument.is_none() && self.extensions.is_none() {
            query.limit(rows);
        } else {
            query.sql(" LIMIT ").count(rows);
        }
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
    fn matching<'q, Row>(&'q self, query: &mut Prepared<'q, Row>) {
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
        let step = grams.len().div_ceil(MAX_GRAMS).max(1);
        grams.into_iter().step_by(step).collect()
    }
}

/// A row for each text. Their number is hidden from the planner, which would plan the statement
/// anew for each: that takes longer than the search.
fn unnest<Row>(query: &mut Prepared<'_, Row>, texts: Vec<String>) {
    query.sql("unnest((SELECT ").texts(texts).sql("))");
}

async fn load(query: Rows<'_>, connection: &mut Connection) -> Result<Vec<FileRow>, Fault> {
    Ok(query.load(connection).await?)
}
