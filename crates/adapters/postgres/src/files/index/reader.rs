//! What is known of segments: remembered, or else read.

use std::{collections::HashMap, sync::Arc};

use diesel::sql_types::{Array, BigInt, Binary, Integer, Nullable, Timestamptz, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use labdata_domain::page::Cursor;
use time::OffsetDateTime;
use uuid::Uuid;

use super::{
    PAGE,
    memory::{Memory, Page, Posting, Segment, Standing, Word},
    positions,
};
use crate::database::{
    errors::{Fault, corrupt},
    pool::Connection,
    prepared::Prepared,
};

/// What an organization's standing segments have in common with no others: their identifiers are
/// random. As an expression over their rows.
pub(super) const VERSION: &str = "coalesce(bit_xor(hashint8extended(id, 0)), 0)";

/// Positions of a word come with its frequency where they are so short, in bytes.
const SHORT: i64 = 512;

/// Reads segments of an organization.
pub(super) struct Reader<'r> {
    pub(super) connection: &'r mut Connection,
    pub(super) memory: &'r Memory,
    pub(super) organization: Uuid,
}

type SegmentRow = (i64, i32, OffsetDateTime, Uuid, OffsetDateTime, Uuid, i64);
type SegmentSql = (
    BigInt,
    Integer,
    Timestamptz,
    SqlUuid,
    Timestamptz,
    SqlUuid,
    BigInt,
);

/// The number of what was asked for, a frequency and positions.
type PostingRow = (i64, i32, Option<Vec<u8>>);
type PostingSql = (BigInt, Integer, Nullable<Binary>);

type PageSql = (BigInt, Array<SqlUuid>);

impl Reader<'_> {
    /// Which segments stand, or stood when that was read last.
    pub(super) async fn standing(&mut self) -> Result<Arc<Standing>, Fault> {
        match self.memory.standing.get(&self.organization) {
            Some(standing) => Ok(standing),
            None => self.read_standing().await,
        }
    }

    /// Which segments stand.
    pub(super) async fn read_standing(&mut self) -> Result<Arc<Standing>, Fault> {
        let mut query = Prepared::<SegmentSql>::new();
        query.sql("SELECT id, files, oldest_at, oldest_id, newest_at, newest_id, (SELECT ");
        query
            .sql(VERSION)
            .sql(" FROM labdata.file_segment WHERE organization_id = ");
        query.uuid(self.organization).sql(") ");
        query.sql("FROM labdata.file_segment WHERE organization_id = ");
        query.uuid(self.organization);
        query.sql(" ORDER BY newest_at DESC, newest_id DESC");
        let rows: Vec<SegmentRow> = query.load(self.connection).await?;
        let version = rows.as_slice().first().map_or(0, |row| row.6);
        let segment = |row: SegmentRow| Segment {
            id: row.0,
            files: u32::try_from(row.1).unwrap_or(0),
            oldest: (row.2, row.3),
            newest: (row.4, row.5),
        };
        let segments = rows.into_iter().map(segment).collect();
        let standing = Arc::new(Standing { version, segments });
        self.memory
            .standing
            .insert(self.organization, standing.clone());
        Ok(standing)
    }

    /// How many files have words in segments; and in which positions they are, where that takes no
    /// more bytes than some.
    pub(super) async fn frequencies(&mut self, words: &[Word<'_>]) -> Result<Vec<Posting>, Fault> {
        self.postings(words, Some(SHORT)).await
    }

    /// Which files have words in segments.
    pub(super) async fn positions(&mut self, words: &[Word<'_>]) -> Result<Vec<Posting>, Fault> {
        self.postings(words, None).await
    }

    async fn postings(
        &mut self,
        words: &[Word<'_>],
        longest: Option<i64>,
    ) -> Result<Vec<Posting>, Fault> {
        let known = |word| self.memory.postings.get(word);
        let suffices = |posting: &Posting| longest.is_some() || posting.positions.is_some();
        let known = words.iter().map(|word| known(word).filter(suffices));
        let mut postings: Vec<Option<Posting>> = known.collect();
        let unknown = postings
            .iter()
            .enumerate()
            .filter(|(_, posting)| posting.is_none());
        let missing: Vec<usize> = unknown.map(|(which, _)| which).collect();
        if !missing.is_empty() {
            for row in self.read_postings(words, &missing, longest).await? {
                let corrupt = |_| corrupt("file_posting", "positions", row.0);
                let positions = row.2.as_deref().map(positions::read).transpose();
                let positions = positions.map_err(corrupt)?.map(Arc::new);
                let which = usize::try_from(row.0)
                    .ok()
                    .and_then(|number| missing.get(number));
                if let Some(posting) = which.and_then(|which| postings.get_mut(*which)) {
                    let frequency = u32::try_from(row.1).unwrap_or(0);
                    *posting = Some(Posting {
                        frequency,
                        positions,
                    });
                }
            }
        }
        let mut missing = missing.into_iter().peekable();
        let all = words.iter().zip(postings).enumerate();
        let all = all.map(|(which, (word, posting))| {
            let posting = posting.unwrap_or_default();
            if missing.next_if_eq(&which).is_some() {
                let word = (*word).into();
                self.memory.postings.insert(word, posting.clone());
            }
            posting
        });
        Ok(all.collect())
    }

    async fn read_postings(
        &mut self,
        words: &[Word<'_>],
        which: &[usize],
        longest: Option<i64>,
    ) -> Result<Vec<PostingRow>, Fault> {
        let wanted = which.iter().filter_map(|which| words.get(*which));
        let (segments, texts) = wanted
            .map(|word| (word.segment, word.text.to_owned()))
            .unzip();
        let mut query = Prepared::<PostingSql>::new();
        query
            .sql("SELECT number - 1, frequency, positions FROM unnest((SELECT ")
            .counts(segments);
        query.sql("), (SELECT ").texts(texts);
        query.sql(")) WITH ORDINALITY AS wanted (segment, word, number) CROSS JOIN LATERAL (");
        query.sql("SELECT frequency, ");
        match longest {
            Some(longest) => {
                query
                    .sql("CASE WHEN octet_length(positions) <= ")
                    .count(longest);
                query.sql(" THEN positions END AS positions");
            }
            None => {
                query.sql("positions");
            }
        }
        query.sql(" FROM labdata.file_posting p WHERE p.organization_id = ");
        query.uuid(self.organization);
        query.sql(" AND p.word = wanted.word AND p.segment_id = segment OFFSET 0) p");
        Ok(query.load(self.connection).await?)
    }

    /// The files in positions of segments; nothing when one of the segments does not stand any more.
    pub(super) async fn files(
        &mut self,
        positions: &[(i64, u32)],
    ) -> Result<Option<Vec<Uuid>>, Fault> {
        let page = |(segment, position): &(i64, u32)| (*segment, position / u32::from(PAGE));
        let mut wanted: Vec<Page> = positions.iter().map(page).collect();
        wanted.dedup();
        let mut pages = HashMap::with_capacity(wanted.len());
        wanted.retain(|page| match self.memory.pages.get(page) {
            Some(files) => {
                pages.insert(*page, files);
                false
            }
            None => true,
        });
        if !wanted.is_empty() {
            for (number, files) in self.read_pages(&wanted).await? {
                let page = usize::try_from(number)
                    .ok()
                    .and_then(|number| wanted.get(number));
                if let Some(page) = page {
                    let files: Arc<[Uuid]> = files.into();
                    self.memory.pages.insert(*page, files.clone());
                    pages.insert(*page, files);
                }
            }
        }
        let file = |position: &(i64, u32)| {
            let number = usize::try_from(position.1 % u32::from(PAGE)).ok()?;
            pages.get(&page(position))?.get(number).copied()
        };
        Ok(positions.iter().map(file).collect())
    }

    async fn read_pages(&mut self, wanted: &[Page]) -> Result<Vec<(i64, Vec<Uuid>)>, Fault> {
        let (segments, numbers) = wanted
            .iter()
            .map(|page| (page.0, i64::from(page.1)))
            .unzip();
        let mut query = Prepared::<PageSql>::new();
        query
            .sql("SELECT wanted.number - 1, file_ids FROM unnest((SELECT ")
            .counts(segments);
        query.sql("), (SELECT ").counts(numbers);
        query.sql(")) WITH ORDINALITY AS wanted (segment, page, number) CROSS JOIN LATERAL (");
        query.sql("SELECT file_ids FROM labdata.file_segment_page p WHERE p.organization_id = ");
        query.uuid(self.organization);
        query.sql(" AND p.segment_id = segment AND p.number = page OFFSET 0) p");
        Ok(query.load(self.connection).await?)
    }

    /// Below which position of a segment files may come after a place in the list: that of the first
    /// page that is all before it.
    pub(super) async fn below(&mut self, segment: &Segment, after: Cursor) -> Result<u32, Fault> {
        if segment.newest < (after.at, after.id) {
            return Ok(segment.files);
        }
        let mut query = Prepared::<BigInt>::new();
        query.sql("SELECT count(*) FROM labdata.file_segment_page WHERE organization_id = ");
        query
            .uuid(self.organization)
            .sql(" AND segment_id = ")
            .count(segment.id);
        query.sql(" AND (oldest_at, oldest_id) < (").time(after.at);
        query.sql(", ").uuid(after.id).sql(")");
        let pages: i64 = query.get_result(self.connection).await?;
        let below = u32::try_from(pages)
            .unwrap_or(u32::MAX)
            .saturating_mul(PAGE.into());
        Ok(below.min(segment.files))
    }
}
