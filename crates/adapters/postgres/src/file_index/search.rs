//! Searches among files.

use std::{cmp::Reverse, collections::HashSet};

use diesel::sql_types::{Array, BigInt, Binary, Nullable, Timestamptz, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use labdata_domain::page::Cursor;
use labdata_ports::PortError;
use roaring::{MultiOps, RoaringBitmap};
use time::OffsetDateTime;
use uuid::Uuid;

use super::{
    PAGE, positions,
    words::{GRAM, extension_word, instrument_word, words_of_part},
};
use crate::{
    errors::{Fault, corrupt},
    file_conditions::FileConditions,
    file_list::{COLUMNS, NEWEST_FIRST, Rows},
    file_rows::FileRow,
    pool::Connection,
    prepared::{Prepared, round_up},
};

/// Of a part's words its rarest ones are looked up; more leave hardly fewer files. One that many files
/// have takes long to read: only one of those, where there is no other.
const RAREST: &str = "SELECT word, frequency FROM (SELECT word, frequency, \
     row_number() OVER (ORDER BY frequency, word) AS rank FROM counted) ranked \
     WHERE rank = 1 OR rank <= 4 AND frequency * 16 < (SELECT sum(files) FROM segments)";

/// All of them, where those leave too many files that do not match.
const ALL: &str = "SELECT word, frequency FROM counted";

/// Of how many segments candidates are told at once. The positions of a word that few files have are
/// short in all segments together; of others one or two segments have enough.
const SEGMENTS: &str = "SELECT CASE WHEN min(frequency) = 0 THEN 0 \
     WHEN min(frequency) <= 16384 THEN 512 ELSE 2 END AS segments FROM words";
const MANY_SEGMENTS: &str = "SELECT 512 AS segments";

/// Not a bound, but an order to the planner, which knows neither time: to read the index. A table out
/// of which many rows have gone looks to it as if it were best read from end to end.
const BY_INDEX: &str = " AND uploaded_at BETWEEN (SELECT '-infinity'::timestamptz) \
     AND (SELECT 'infinity'::timestamptz)";

/// At least so many candidates are looked at together where some may have the words of a part but not
/// the part.
const UNSURE: usize = 96;

/// Of candidates that mostly do not match so many are looked at before all words are looked up.
const UNLIKELY: usize = 256;

/// So many candidates are looked at in one statement.
const MOST_AT_ONCE: usize = 4_096;

/// Either files that match and are in no segment, and the limit of segments; or a segment: its
/// number, below which position its files count, the place of its oldest file, the positions of the
/// files that have each word, and of those that have each of the words of which one suffices.
type Told = (
    Option<Vec<Uuid>>,
    Option<i64>,
    Option<i64>,
    Option<i64>,
    Option<OffsetDateTime>,
    Option<Uuid>,
    Option<Vec<Vec<u8>>>,
    Option<Vec<Vec<u8>>>,
);
type ToldSql = (
    Nullable<Array<SqlUuid>>,
    Nullable<BigInt>,
    Nullable<BigInt>,
    Nullable<BigInt>,
    Nullable<Timestamptz>,
    Nullable<SqlUuid>,
    Nullable<Array<Binary>>,
    Nullable<Array<Binary>>,
);

/// The newest files that match, at least as many as are wanted where there are so many; the newest
/// first.
///
/// What segments tell may be looked up later than they told it: those that were replaced meanwhile
/// are kept so long. What was put into a segment meanwhile is known from before.
pub(crate) async fn search(
    connection: &mut Connection,
    conditions: &FileConditions<'_>,
    wanted: i64,
) -> Result<Vec<FileRow>, Fault> {
    let search = Search::new(conditions, wanted);
    let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
    let at_least = if search.is_exact() { 1 } else { UNSURE };
    let (mut found, mut known): (Vec<FileRow>, HashSet<Uuid>) = <_>::default();
    let (mut after, mut turn, mut of_segments) = (conditions.after, Turn::First, 0);
    while of_segments < wanted {
        let told = search.candidates(after, turn);
        let candidates = Candidates::of(told.load(connection).await?)?;
        let mut next = candidates.rest().map(|rest| (Some(rest), turn.then()));
        let mut unindexed = candidates.unindexed;
        let segments = candidates.segments.into_iter();
        let mut positions = segments.flat_map(|(segment, positions)| {
            let newest_first = positions.into_iter().rev();
            newest_first.map(move |position| (segment, i64::from(position)))
        });
        let (mut tried, matched) = (0, of_segments);
        let mut most = at_least.max(wanted - of_segments);
        while of_segments < wanted {
            let (segments, positions): (Vec<i64>, Vec<i64>) = positions.by_ref().take(most).unzip();
            if segments.is_empty() && unindexed.is_empty() {
                break;
            }
            tried += segments.len();
            let not_of_segments: HashSet<Uuid> = unindexed.iter().copied().collect();
            let rows = search.rows(std::mem::take(&mut unindexed), segments, positions);
            for row in rows.load::<FileRow>(connection).await? {
                if known.insert(row.id()) {
                    of_segments += usize::from(!not_of_segments.contains(&row.id()));
                    found.push(row);
                }
            }
            let unlikely = tried >= UNLIKELY && 2 * (of_segments - matched) < tried;
            if unlikely && turn != Turn::Thorough {
                next = Some((after, Turn::Thorough));
                break;
            }
            // Where few match it takes fewer turns.
            most = (2 * most).min(MOST_AT_ONCE);
        }
        match next {
            None => break,
            Some(next) => (after, turn) = next,
        }
    }
    found.sort_unstable_by_key(|row| Reverse(row.place()));
    Ok(found)
}

/// Which statement asks for candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// The first one.
    First,
    /// One for more segments.
    More,
    /// One that looks up all words.
    Thorough,
}

impl Turn {
    /// The one after it, for more segments.
    fn then(self) -> Self {
        match self {
            Self::First | Self::More => Self::More,
            Self::Thorough => Self::Thorough,
        }
    }
}

/// What is known of files that may match.
#[derive(Debug, Default)]
struct Candidates {
    unindexed: Vec<Uuid>,
    /// Segments with their positions, the newest first.
    segments: Vec<(i64, RoaringBitmap)>,
    /// How many segments were told of, and the most that may be.
    told: i64,
    limit: i64,
    /// The place of the oldest file of the last segment.
    oldest: Option<Cursor>,
}

impl Candidates {
    fn of(told: Vec<Told>) -> Result<Self, PortError> {
        let mut candidates = Self::default();
        for told in told {
            match told {
                (unindexed, Some(limit), ..) => {
                    candidates.unindexed = unindexed.unwrap_or_default();
                    candidates.limit = limit;
                }
                (_, None, Some(segment), below, Some(at), Some(id), all, any) => {
                    let corrupt = |_| corrupt("file_posting", "positions", segment);
                    let positions = in_all(all.as_deref(), any.as_deref()).map_err(corrupt)?;
                    let mut positions = positions.unwrap_or_default();
                    if let Some(below) = below.and_then(|below| u32::try_from(below).ok()) {
                        positions.remove_range(below..);
                    }
                    candidates.segments.push((segment, positions));
                    candidates.told += 1;
                    candidates.oldest = Some(Cursor { at, id });
                }
                _ => {}
            }
        }
        Ok(candidates)
    }

    /// Where the next candidates begin, unless there are no more segments.
    fn rest(&self) -> Option<Cursor> {
        self.oldest.filter(|_| self.told >= self.limit)
    }
}

/// The positions that are in all of some sets and in one of others, where there are any.
fn in_all(
    all: Option<&[Vec<u8>]>,
    any: Option<&[Vec<u8>]>,
) -> std::io::Result<Option<RoaringBitmap>> {
    let read = |stored: &Vec<u8>| positions::read(stored);
    let mut sets: Vec<RoaringBitmap> = all
        .unwrap_or_default()
        .iter()
        .map(read)
        .collect::<Result<_, _>>()?;
    if let Some(any) = any {
        let any: Vec<RoaringBitmap> = any.iter().map(read).collect::<Result<_, _>>()?;
        sets.push(any.union());
    }
    // The smallest first: what is left gets no larger.
    sets.sort_unstable_by_key(RoaringBitmap::len);
    Ok(sets.into_iter().reduce(|left, set| left & set))
}

/// A search, in words.
#[derive(Debug)]
struct Search<'s> {
    conditions: &'s FileConditions<'s>,
    /// Files have all words of the part,
    part: Vec<String>,
    /// and all of these,
    all: Vec<String>,
    /// and one of these, where there are any.
    any: Vec<String>,
    wanted: i64,
}

impl<'s> Search<'s> {
    fn new(conditions: &'s FileConditions<'s>, wanted: i64) -> Self {
        let part = match (conditions.part, conditions.suffixes.as_deref()) {
            (Some(part), _) => words_of_part(part),
            (None, Some([suffix])) => words_of_part(suffix),
            (None, _) => Vec::new(),
        };
        let extensions = conditions.extensions.as_deref().unwrap_or_default();
        let mut any: Vec<String> = extensions.iter().map(|e| extension_word(e)).collect();
        let mut all: Vec<String> = conditions
            .instrument
            .map(instrument_word)
            .into_iter()
            .collect();
        if any.len() == 1 {
            all.append(&mut any);
        }
        Self {
            conditions,
            part,
            all,
            any,
            wanted,
        }
    }

    /// Whether all files that have the words match.
    fn is_exact(&self) -> bool {
        let part = self.conditions.part.unwrap_or_default();
        self.conditions.suffixes.is_none() && part.chars().nth(GRAM).is_none()
    }

    /// Files that are in no segment and match, where they are asked for, and the segments that have
    /// all the words, the newest first.
    fn candidates(&self, after: Option<Cursor>, turn: Turn) -> Prepared<'_, ToldSql> {
        let organization = self.conditions.organization;
        let is_first = turn == Turn::First;
        let mut query = Prepared::new();
        query.sql("WITH ");
        if is_first {
            query.sql("latest AS MATERIALIZED (SELECT id, uploaded_at ");
            query.sql("FROM labdata.file_unindexed WHERE ");
            self.conditions.all(&mut query);
            query.sql(BY_INDEX).sql(NEWEST_FIRST).limit(self.wanted);
            query.sql("), ");
        }
        query.sql("segments AS NOT MATERIALIZED (SELECT * FROM labdata.file_segment ");
        query.sql("WHERE replaced_at IS NULL AND organization_id = ");
        query.uuid(organization);
        query.sql("), counted AS MATERIALIZED (");
        self.counted(&mut query, self.part.clone());
        query.sql("), words AS MATERIALIZED (");
        query
            .sql(if is_first { RAREST } else { ALL })
            .sql(" UNION ALL ");
        self.counted(&mut query, self.all.clone());
        query.sql("), few AS MATERIALIZED (");
        let (segments, latest) = if is_first {
            (SEGMENTS, "ARRAY(SELECT id FROM latest)")
        } else {
            (MANY_SEGMENTS, "NULL::uuid[]")
        };
        query.sql(segments).sql(") SELECT ").sql(latest);
        query
            .sql(", segments::bigint, NULL::bigint, NULL::bigint, NULL::timestamptz, NULL::uuid, ");
        query.sql("NULL::bytea[], NULL::bytea[] FROM few UNION ALL (SELECT NULL, NULL, s.id, ");
        self.below(&mut query, after);
        query.sql(", s.oldest_at, s.oldest_id, found.of_all, found.of_any FROM (");
        query.sql("SELECT * FROM segments WHERE true");
        if let Some(after) = after {
            query.sql(" AND (oldest_at, oldest_id) < (").time(after.at);
            query.sql(", ").uuid(after.id).sql(")");
        }
        if is_first {
            // Others have but files that are older than so many that are known already.
            query.sql(" AND (newest_at >= (SELECT min(uploaded_at) FROM latest HAVING count(*) = ");
            query.count(round_up(self.wanted));
            query.sql(")) IS NOT FALSE");
        }
        query.sql(" ORDER BY newest_at DESC, newest_id DESC OFFSET 0) s ");
        query.sql("CROSS JOIN LATERAL (SELECT ARRAY(SELECT p.positions FROM words w ");
        self.postings(&mut query);
        query.sql(") AS of_all, ");
        if self.any.is_empty() {
            query.sql("NULL::bytea[]");
        } else {
            query.sql("ARRAY(SELECT p.positions FROM unnest((SELECT ");
            query.texts(self.any.clone()).sql(")) AS w (word) ");
            self.postings(&mut query);
            query.sql(")");
        }
        query.sql(" AS of_any OFFSET 0) found ");
        query.sql("WHERE cardinality(found.of_all) = (SELECT count(*) FROM words) ");
        query.sql("AND found.of_any IS DISTINCT FROM '{}' LIMIT (SELECT segments FROM few))");
        query
    }

    /// Words, and how many files in segments have each.
    fn counted(&self, query: &mut Prepared<'_, ToldSql>, words: Vec<String>) {
        query.sql("SELECT word, frequency FROM (SELECT word, (");
        query.sql("SELECT coalesce(sum(p.frequency), 0) FROM labdata.file_posting p ");
        query.sql("WHERE p.organization_id = ");
        query.uuid(self.conditions.organization);
        query.sql(" AND p.word = w.word) FROM unnest((SELECT ");
        query.texts(words);
        query.sql(")) AS w (word) OFFSET 0) AS counted (word, frequency)");
    }

    /// The postings of words `w` in a segment `s`.
    fn postings(&self, query: &mut Prepared<'_, ToldSql>) {
        query.sql("CROSS JOIN LATERAL (SELECT p.positions FROM labdata.file_posting p ");
        query.sql("WHERE p.organization_id = ");
        query.uuid(self.conditions.organization);
        query.sql(" AND p.word = w.word AND p.segment_id = s.id OFFSET 0) p");
    }

    /// Below which position of a segment `s` files may come after a place: that of the first page that
    /// is all before it.
    fn below(&self, query: &mut Prepared<'_, ToldSql>, after: Option<Cursor>) {
        let Some(after) = after else {
            query.sql("NULL");
            return;
        };
        query.sql("(SELECT count(*) FROM labdata.file_segment_page p WHERE p.organization_id = ");
        query.uuid(self.conditions.organization);
        query.sql(" AND p.segment_id = s.id AND (p.oldest_at, p.oldest_id) < (");
        query.time(after.at).sql(", ").uuid(after.id);
        query.sql(")) * ").count(PAGE.into());
    }

    /// The rows of files in no segment, and of those in positions of segments that match.
    fn rows(&self, unindexed: Vec<Uuid>, segments: Vec<i64>, positions: Vec<i64>) -> Rows<'_> {
        let mut query = Rows::new();
        let row = "CROSS JOIN LATERAL (SELECT * FROM labdata.file WHERE id = file_id OFFSET 0) f";
        query
            .sql("SELECT ")
            .sql(COLUMNS)
            .sql(" FROM (SELECT f.* FROM unnest((SELECT ");
        query
            .uuids(unindexed)
            .sql(")) AS latest (file_id) ")
            .sql(row);
        query
            .sql(" UNION ALL SELECT f.* FROM unnest((SELECT ")
            .counts(segments);
        query.sql("), (SELECT ").counts(positions);
        query.sql(")) AS candidate (segment, position) CROSS JOIN LATERAL (");
        query
            .sql("SELECT p.file_ids[position % ")
            .count(PAGE.into());
        query.sql(" + 1] AS file_id FROM labdata.file_segment_page p WHERE p.organization_id = ");
        query.uuid(self.conditions.organization);
        query
            .sql(" AND p.segment_id = segment AND p.number = position / ")
            .count(PAGE.into());
        query.sql(" OFFSET 0) p ").sql(row).sql(") k WHERE ");
        self.conditions.all(&mut query);
        query
    }
}
