//! A segment in the making, and how it is written.

use diesel::{
    QueryableByName,
    sql_types::{
        Array, BigInt, Binary, Bool, Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid,
    },
};
use diesel_async::RunQueryDsl;
use time::OffsetDateTime;
use uuid::Uuid;

use super::{PAGE, Place, positions, words::Postings};
use crate::database::{errors::Fault, pool::Connection};

/// A segment ends early when it has so many words, or so many characters: its memory is bounded by
/// them.
const MOST_WORDS: usize = 65_536;
const MOST_CHARACTERS: usize = 8_388_608;

/// How many words are written at once.
const WRITE: usize = 512;

/// What a segment has to know of a file.
#[derive(QueryableByName)]
pub(super) struct ListedFile {
    #[diesel(sql_type = SqlUuid)]
    pub(super) id: Uuid,
    #[diesel(sql_type = Timestamptz)]
    pub(super) uploaded_at: OffsetDateTime,
    #[diesel(sql_type = Nullable<SqlUuid>)]
    pub(super) instrument_id: Option<Uuid>,
    #[diesel(sql_type = Nullable<Text>)]
    pub(super) extension: Option<String>,
    #[diesel(sql_type = Text)]
    pub(super) path_folded: String,
}

/// A segment in the making.
#[derive(Debug, Default)]
pub(super) struct Draft {
    places: Vec<Place>,
    postings: Postings,
    characters: usize,
}

impl Draft {
    pub(super) fn add(&mut self, file: &ListedFile) {
        let Ok(position) = u16::try_from(self.places.len()) else {
            return;
        };
        let extension = file.extension.as_deref();
        self.postings
            .add(position, &file.path_folded, file.instrument_id, extension);
        self.characters += file.path_folded.len();
        self.places.push((file.uploaded_at, file.id));
    }

    /// Whether it has so many words or characters that it has to end.
    pub(super) fn is_heavy(&self) -> bool {
        self.postings.len() >= MOST_WORDS || self.characters >= MOST_CHARACTERS
    }

    /// How many files it has.
    pub(super) fn files(&self) -> u32 {
        u32::try_from(self.places.len()).unwrap_or(u32::MAX)
    }

    /// Writes the segment, where it has files; it is full once it has `most` of them.
    pub(super) async fn write(
        self,
        connection: &mut Connection,
        organization: Uuid,
        most: u32,
    ) -> Result<(), Fault> {
        let places = self.places.as_slice();
        let (Some(oldest), Some(newest)) = (places.first(), places.last()) else {
            return Ok(());
        };
        let files = self.files();
        let segment: Id = diesel::sql_query(
            "INSERT INTO labdata.file_segment (organization_id, files, is_full, oldest_at, oldest_id, \
                 newest_at, newest_id) VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING id",
        )
        .bind::<SqlUuid, _>(organization)
        .bind::<Integer, _>(i32::try_from(files).unwrap_or(i32::MAX))
        .bind::<Bool, _>(self.is_heavy() || files >= most)
        .bind::<Timestamptz, _>(oldest.0)
        .bind::<SqlUuid, _>(oldest.1)
        .bind::<Timestamptz, _>(newest.0)
        .bind::<SqlUuid, _>(newest.1)
        .get_result(&mut *connection)
        .await?;
        let mut segment = Written {
            connection,
            organization,
            id: segment.id,
            files,
        };
        segment.pages(places).await?;
        let words = self.postings.into_sorted();
        for words in words.chunks(WRITE) {
            segment.postings(words).await?;
        }
        Ok(())
    }
}

/// A segment that is there, without its pages and postings yet.
struct Written<'c> {
    connection: &'c mut Connection,
    organization: Uuid,
    id: i64,
    files: u32,
}

impl Written<'_> {
    async fn pages(&mut self, places: &[Place]) -> Result<(), Fault> {
        let pages = places.chunks(PAGE.into());
        let oldest: Vec<Place> = pages
            .clone()
            .filter_map(|page| page.first().copied())
            .collect();
        let (times, ids): (Vec<_>, Vec<_>) = oldest.into_iter().unzip();
        let all: Vec<Uuid> = places.iter().map(|(_, id)| *id).collect();
        diesel::sql_query(
            "INSERT INTO labdata.file_segment_page (organization_id, segment_id, number, oldest_at, \
                 oldest_id, file_ids) \
             SELECT $1, $2, number - 1, oldest_at, oldest_id, \
                 ($5::uuid[])[(number - 1) * $6 + 1:number * $6] \
             FROM unnest($3, $4) WITH ORDINALITY AS page (oldest_at, oldest_id, number)",
        )
        .bind::<SqlUuid, _>(self.organization)
        .bind::<BigInt, _>(self.id)
        .bind::<Array<Timestamptz>, _>(times)
        .bind::<Array<SqlUuid>, _>(ids)
        .bind::<Array<SqlUuid>, _>(all)
        .bind::<BigInt, _>(i64::from(PAGE))
        .execute(self.connection)
        .await?;
        Ok(())
    }

    async fn postings(&mut self, words: &[(Box<str>, Vec<u16>)]) -> Result<(), Fault> {
        let texts: Vec<&str> = words.iter().map(|(word, _)| &**word).collect();
        let frequencies: Vec<i32> = words
            .iter()
            .map(|(_, positions)| i32::try_from(positions.len()).unwrap_or(i32::MAX))
            .collect();
        let positions: Vec<Vec<u8>> = words
            .iter()
            .map(|(_, positions)| positions::write(positions, self.files))
            .collect();
        diesel::sql_query(
            "INSERT INTO labdata.file_posting (organization_id, segment_id, word, frequency, positions) \
             SELECT $1, $2, word, frequency, positions \
             FROM unnest($3, $4, $5) AS posting (word, frequency, positions)",
        )
        .bind::<SqlUuid, _>(self.organization)
        .bind::<BigInt, _>(self.id)
        .bind::<Array<Text>, _>(texts)
        .bind::<Array<Integer>, _>(frequencies)
        .bind::<Array<Binary>, _>(positions)
        .execute(self.connection)
        .await?;
        Ok(())
    }
}

#[derive(QueryableByName)]
struct Id {
    #[diesel(sql_type = BigInt)]
    id: i64,
}
