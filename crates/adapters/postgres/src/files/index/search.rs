//! Searches among files.

use std::{cmp::Reverse, collections::HashSet};

use diesel::{
    dsl::{AsSelect, SqlTypeOf},
    pg::Pg,
    sql_types::BigInt,
};
use diesel_async::RunQueryDsl;
use labdata_ports::PortError;
use time::OffsetDateTime;
use uuid::Uuid;

use super::{
    memory::{Memory, Segment, Standing},
    reader::{Reader, VERSION},
    walk::{Walk, Words},
};
use crate::{
    database::{errors::Fault, pool::Connection, prepared::Prepared},
    files::{
        conditions::FileConditions,
        list::{COLUMNS, NEWEST_FIRST},
        rows::FileRow,
    },
};

/// Not a bound, but an order to the planner, which knows neither time: to read the index. A table out
/// of which many rows have gone looks to it as if it were best read from end to end.
const BY_INDEX: &str = " AND uploaded_at BETWEEN (SELECT '-infinity'::timestamptz) \
     AND (SELECT 'infinity'::timestamptz)";

/// So much of what is wanted is looked at in addition: some were deleted, or have the words of a
/// part but not the part.
const MORE: usize = 4;

/// Of candidates that mostly do not match so many are looked at before all words are looked up.
const UNLIKELY: usize = 256;

/// So many candidates are looked at in one statement.
const MOST_AT_ONCE: usize = 4_096;

/// How often a search begins anew as segments were replaced meanwhile.
const MOST_BEGINNINGS: u32 = 16;

/// A place as rows have it.
type ListPlace = (Option<OffsetDateTime>, Uuid);

/// The version of the standing segments, and a file where there is one.
type Told = (i64, Option<FileRow>);
type ToldSql = (BigInt, SqlTypeOf<AsSelect<Option<FileRow>, Pg>>);

/// The newest files that match, at least as many as are wanted where there are so many; the newest
/// first.
///
/// # Errors
/// [`PortError::Busy`] when segments are replaced again and again.
pub(crate) async fn search(
    connection: &mut Connection,
    memory: &Memory,
    conditions: &FileConditions<'_>,
    wanted: i64,
) -> Result<Vec<FileRow>, Fault> {
    let search = Search {
        conditions,
        words: Words::of(conditions),
        wanted,
    };
    let mut reader = Reader {
        connection,
        memory,
        organization: conditions.organization,
    };
    let mut standing = reader.standing().await?;
    for _ in 0..MOST_BEGINNINGS {
        if let Some(found) = search.among(&mut reader, &standing).await? {
            return Ok(found);
        }
        standing = reader.read_standing().await?;
    }
    Err(PortError::Busy("files are being indexed".to_owned()).into())
}

#[derive(Debug)]
struct Search<'s> {
    conditions: &'s FileConditions<'s>,
    words: Words,
    wanted: i64,
}

impl Search<'_> {
    /// What is found in these segments and in no segment; nothing where others stand.
    ///
    /// Each statement tells the version of the segments that stand, so what is in no segment and what
    /// is in these are all files.
    async fn among(
        &self,
        reader: &mut Reader<'_>,
        standing: &Standing,
    ) -> Result<Option<Vec<FileRow>>, Fault> {
        let wanted = usize::try_from(self.wanted).unwrap_or(usize::MAX);
        let (segments, after) = (&standing.segments, self.conditions.after);
        let newest = <[Segment]>::first(segments).map(|segment| segment.newest.0);
        let mut walk = Walk::begin(reader, &self.words, segments, after).await?;
        let mut found: Vec<FileRow> = Vec::new();
        let (mut tried, mut matched, mut is_first) = (0, 0, true);
        let mut oldest: Option<ListPlace> = None;
        let mut most = (wanted + wanted / MORE).min(MOST_AT_ONCE);
        loop {
            let candidates = walk.next(reader, most).await?;
            let Some(candidates) = reader.files(&candidates).await? else {
                return Ok(None);
            };
            tried += candidates.len();
            let rows = self.rows(candidates.clone(), newest, is_first);
            is_first = false;
            let candidates: HashSet<Uuid> = candidates.into_iter().collect();
            for (version, row) in rows.load::<Told>(reader.connection).await? {
                if version != standing.version {
                    return Ok(None);
                }
                if let Some(row) = row {
                    if candidates.contains(&row.id()) {
                        matched += 1;
                        let place = row.place();
                        oldest = Some(oldest.map_or(place, |oldest| oldest.min(place)));
                    }
                    found.push(row);
                }
            }
            found.sort_unstable_by_key(|row| Reverse(row.place()));
            if let Some(last) = found.get(wanted.saturating_sub(1)).map(FileRow::place) {
                // What is ahead is older than the oldest candidate.
                if oldest.is_some_and(|oldest| oldest <= last) {
                    return Ok(Some(found));
                }
                walk.end_at(last);
            }
            if walk.is_at_its_end() {
                return Ok(Some(found));
            }
            if tried >= UNLIKELY && 2 * matched < tried && !walk.is_thorough() {
                walk.be_thorough();
            }
            // Where few match it takes fewer statements.
            most = (2 * most).min(MOST_AT_ONCE);
        }
    }

    /// The newest of the candidates that match. At first also of the files that match and are in no
    /// segment; where these are enough, and newer than all segments, candidates are passed over.
    fn rows(
        &self,
        candidates: Vec<Uuid>,
        newest: Option<OffsetDateTime>,
        and_unindexed: bool,
    ) -> Prepared<'_, ToldSql> {
        let mut query = Prepared::new();
        if and_unindexed {
            query.sql("WITH unindexed AS MATERIALIZED (");
            query.sql("SELECT id, uploaded_at FROM labdata.file_unindexed WHERE ");
            self.conditions.all(&mut query);
            query.sql(BY_INDEX).sql(NEWEST_FIRST).limit(self.wanted);
            query.sql(") ");
        }
        query.sql("SELECT * FROM (SELECT ").sql(VERSION);
        query.sql(" FROM labdata.file_segment WHERE organization_id = ");
        query.uuid(self.conditions.organization);
        query.sql(") standing LEFT JOIN (SELECT * FROM (SELECT ");
        query
            .sql(COLUMNS)
            .sql(" FROM labdata.file WHERE id = ANY (");
        if and_unindexed {
            query.sql("ARRAY(SELECT id FROM unindexed) || CASE WHEN (");
            query.sql("SELECT count(*) >= ").count(self.wanted);
            query.sql(" AND min(uploaded_at) > ");
            query.time(newest.unwrap_or(OffsetDateTime::UNIX_EPOCH));
            query.sql(" FROM unindexed) THEN '{}' ELSE ");
            query.uuids(candidates).sql(" END");
        } else {
            query.uuids(candidates);
        }
        query.sql(") AND ");
        self.conditions.all(&mut query);
        query
            .sql(" OFFSET 0) f")
            .sql(NEWEST_FIRST)
            .limit(self.wanted);
        query.sql(") f ON true");
        query
    }
}
