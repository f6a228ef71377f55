//! Puts files into segments: which ones are waiting, and what takes the place of what.

use diesel::{
    OptionalExtension as _, QueryableByName,
    sql_types::{Array, BigInt, Bool, Integer, Nullable, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::RunQueryDsl;
use labdata_ports::PortError;
use time::OffsetDateTime;
use uuid::Uuid;

use super::{
    Place,
    draft::{Draft, ListedFile},
    plan::{Plan, Segment, append, late_for, renew},
};
use crate::database::{
    errors::{Fault, end},
    pool::{Connection, Database},
    sql::{self, Statement},
    transaction,
};

/// How an organization's files are divided into segments.
#[derive(Clone, Copy, Debug)]
pub struct Segments {
    /// So many files that are in no segment are left so.
    pub unindexed: u32,
    /// How many files a segment has at the most; no more than 61,440 count.
    pub files: u32,
}

impl Default for Segments {
    /// A thousand files are looked through in a third of a millisecond. A bit for each of 61,440 files
    /// fits into a page of the database.
    fn default() -> Self {
        Self {
            unindexed: 1_023,
            files: MOST_FILES,
        }
    }
}

/// Positions have 16 bits, and a row that is not divided has 8,160 bytes.
const MOST_FILES: u32 = 61_440;

/// How many files are read at once.
const READ: i64 = 4_096;

/// A segment is built anew when one of so many of its files was deleted.
const DELETED: u32 = 8;

#[derive(QueryableByName)]
struct Organization {
    #[diesel(sql_type = SqlUuid)]
    organization_id: Uuid,
}

#[derive(QueryableByName)]
struct SegmentRow {
    #[diesel(sql_type = BigInt)]
    id: i64,
    #[diesel(sql_type = Integer)]
    files: i32,
    #[diesel(sql_type = Bool)]
    is_full: bool,
    #[diesel(sql_type = Timestamptz)]
    newest_at: OffsetDateTime,
    #[diesel(sql_type = SqlUuid)]
    newest_id: Uuid,
}

#[derive(QueryableByName)]
struct PlaceRow {
    #[diesel(sql_type = Timestamptz)]
    uploaded_at: OffsetDateTime,
    #[diesel(sql_type = SqlUuid)]
    id: Uuid,
}

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    count: i64,
}

#[derive(QueryableByName)]
struct Locked {
    #[diesel(sql_type = Bool)]
    locked: bool,
}

/// Puts files that were confirmed before that time into segments, of each organization that has more
/// of them than may be left, and builds segments anew of which many files were deleted. Returns how
/// many files were put into segments.
pub(crate) async fn index_new(
    database: &Database,
    segments: Segments,
    before: OffsetDateTime,
) -> Result<u64, PortError> {
    let mut connection = database.connection().await?;
    let mut indexed = 0;
    for organization in waiting(&mut connection, segments, before).await? {
        let mut building = Building {
            connection: &mut connection,
            organization,
            segments,
            before,
        };
        loop {
            match building.once().await.map_err(PortError::from) {
                Ok(Some(files)) => indexed += files,
                Ok(None) | Err(PortError::Busy(_)) => break,
                Err(error) => return Err(error),
            }
        }
    }
    Ok(indexed)
}

/// Organizations of which there may be something to build.
async fn waiting(
    connection: &mut Connection,
    segments: Segments,
    before: OffsetDateTime,
) -> Result<Vec<Uuid>, Fault> {
    let rows: Vec<Organization> = diesel::sql_query(
        "SELECT organization_id FROM labdata.file_unindexed WHERE uploaded_at < $1 \
         GROUP BY organization_id HAVING count(*) > $2 \
         UNION SELECT organization_id FROM labdata.file_deleted \
         GROUP BY organization_id HAVING count(*) > $2 / $3",
    )
    .bind::<Timestamptz, _>(before)
    .bind::<BigInt, _>(i64::from(segments.unindexed))
    .bind::<BigInt, _>(i64::from(DELETED))
    .load(connection)
    .await?;
    Ok(rows.into_iter().map(|row| row.organization_id).collect())
}

/// Builds segments of one organization.
struct Building<'b> {
    connection: &'b mut Connection,
    organization: Uuid,
    segments: Segments,
    before: OffsetDateTime,
}

impl Building<'_> {
    /// Carries one plan out; returns how many files it put into segments, and nothing where there
    /// is nothing to do.
    ///
    /// # Errors
    /// [`PortError::Busy`] when another server builds, or what is to be built is being deleted; there
    /// is a next time.
    async fn once(&mut self) -> Result<Option<u64>, Fault> {
        // One snapshot shows the files and what is known of them.
        let isolation = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ";
        transaction::begin_with(self.connection, isolation).await?;
        let outcome = self.locked().await;
        let ended = end(self.connection, outcome).await;
        // The snapshot may be older than the lock, and than what another server has built.
        let busy = || PortError::Busy("another server has built the same segment".to_owned());
        ended.map_err(|fault| fault.on_violation("file_segment_newest_key", busy))
    }

    async fn locked(&mut self) -> Result<Option<u64>, Fault> {
        let lock: Locked = diesel::sql_query(
            "SELECT pg_try_advisory_xact_lock(hashtextextended( \
             concat('labdata.file_segment ', $1), 0)) AS locked",
        )
        .bind::<SqlUuid, _>(self.organization)
        .get_result(self.connection)
        .await?;
        if !lock.locked {
            return Ok(None);
        }
        match self.plan().await? {
            None => Ok(None),
            Some(plan) => Ok(Some(self.build(&plan).await?)),
        }
    }

    async fn plan(&mut self) -> Result<Option<Plan>, Fault> {
        let standing = self.standing().await?;
        let most = self.most();
        let through = (self.before, Uuid::nil());
        let unindexed = self.count("file_unindexed", None, through).await?;
        if unindexed <= self.segments.unindexed {
            let Some(which) = self.mostly_deleted(&standing).await? else {
                return Ok(None);
            };
            return Ok(renew(&standing, which, 0, most));
        }
        let Some(oldest) = self.oldest_unindexed().await? else {
            return Ok(None);
        };
        let Some(which) = late_for(&standing, oldest) else {
            return Ok(Some(append(&standing, unindexed, through, most)));
        };
        let Some(plan) = renew(&standing, which, 0, most) else {
            return Ok(None);
        };
        let late = self
            .count("file_unindexed", plan.after, plan.through)
            .await?;
        Ok(renew(&standing, which, late, most))
    }

    /// How many files a segment has at the most.
    fn most(&self) -> u32 {
        self.segments.files.clamp(1, MOST_FILES)
    }

    /// The segments as they stand, the newest first.
    async fn standing(&mut self) -> Result<Vec<Segment>, Fault> {
        let rows: Vec<SegmentRow> = diesel::sql_query(
            "SELECT id, files, is_full, newest_at, newest_id \
             FROM labdata.file_segment WHERE organization_id = $1 ORDER BY newest_at DESC, newest_id DESC",
        )
        .bind::<SqlUuid, _>(self.organization)
        .load(self.connection)
        .await?;
        let segment = |row: SegmentRow| Segment {
            id: row.id,
            files: u32::try_from(row.files).unwrap_or(0),
            is_full: row.is_full,
            newest: (row.newest_at, row.newest_id),
        };
        Ok(rows.into_iter().map(segment).collect())
    }

    async fn oldest_unindexed(&mut self) -> Result<Option<Place>, Fault> {
        let row: Option<PlaceRow> = diesel::sql_query(
            "SELECT uploaded_at, id FROM labdata.file_unindexed WHERE organization_id = $1 \
             ORDER BY uploaded_at, id LIMIT 1",
        )
        .bind::<SqlUuid, _>(self.organization)
        .get_result(self.connection)
        .await
        .optional()?;
        Ok(row.map(|row| (row.uploaded_at, row.id)))
    }

    /// How many rows a table has behind a place and up to another one.
    async fn count(
        &mut self,
        table: &str,
        after: Option<Place>,
        through: Place,
    ) -> Result<u32, Fault> {
        let count = format!("SELECT count(*) FROM labdata.{table}");
        let row: Count = self
            .between(&count, "", after, through)
            .get_result(self.connection)
            .await?;
        Ok(u32::try_from(row.count).unwrap_or(u32::MAX))
    }

    /// A statement about what lies behind one place and up to another, in the order of the list from
    /// its end.
    fn between(
        &self,
        statement: &str,
        rest: &str,
        after: Option<Place>,
        through: Place,
    ) -> Statement<'static> {
        sql::statement(format!(
            "{statement} WHERE organization_id = $1 AND (uploaded_at, id) > (coalesce($2, '-infinity'), \
                 coalesce($3, '00000000-0000-0000-0000-000000000000')) \
             AND (uploaded_at, id) <= ($4, $5) {rest}"
        ))
        .bind::<SqlUuid, _>(self.organization)
        .bind::<Nullable<Timestamptz>, _>(after.map(|(at, _)| at))
        .bind::<Nullable<SqlUuid>, _>(after.map(|(_, id)| id))
        .bind::<Timestamptz, _>(through.0)
        .bind::<SqlUuid, _>(through.1)
    }

    /// A segment of which many files were deleted.
    async fn mostly_deleted(&mut self, standing: &[Segment]) -> Result<Option<usize>, Fault> {
        for (which, segment) in standing.iter().enumerate() {
            let before = standing.get(which + 1).map(|before| before.newest);
            let deleted = self.count("file_deleted", before, segment.newest).await?;
            if deleted.saturating_mul(DELETED) >= segment.files {
                return Ok(Some(which));
            }
        }
        Ok(None)
    }

    async fn build(&mut self, plan: &Plan) -> Result<u64, Fault> {
        self.remove(&plan.replaced).await?;
        let (mut after, mut files, mut finished) = (plan.after, 0, false);
        while !finished {
            let mut draft = Draft::default();
            let exhausted = self.fill(&mut draft, plan, &mut after).await?;
            files += u64::from(draft.files());
            let most = self.most();
            draft
                .write(self.connection, self.organization, most)
                .await?;
            if exhausted {
                after = Some(plan.through);
            }
            // A long transaction would have to begin all over when it breaks.
            finished = exhausted || after >= plan.at_least;
        }
        for table in ["file_unindexed", "file_deleted"] {
            self.forget(table, plan.after, after).await?;
        }
        Ok(files)
    }

    /// Reads files into a segment until it is full; tells whether there were no more.
    async fn fill(
        &mut self,
        draft: &mut Draft,
        plan: &Plan,
        after: &mut Option<Place>,
    ) -> Result<bool, Fault> {
        loop {
            let room = i64::from(plan.files) - i64::from(draft.files());
            if room <= 0 || draft.is_heavy() {
                return Ok(false);
            }
            let wanted = room.min(READ);
            let files = self.files(*after, plan.through, wanted).await?;
            let read = i64::try_from(files.len()).unwrap_or(0);
            for file in files {
                if draft.is_heavy() {
                    return Ok(false);
                }
                *after = Some((file.uploaded_at, file.id));
                draft.add(&file);
            }
            if read < wanted {
                return Ok(true);
            }
        }
    }

    /// Files in the order of the list from its end.
    async fn files(
        &mut self,
        after: Option<Place>,
        through: Place,
        limit: i64,
    ) -> Result<Vec<ListedFile>, Fault> {
        let select =
            "SELECT id, uploaded_at, instrument_id, extension, path_folded FROM labdata.file";
        let in_order = "AND uploaded_at IS NOT NULL ORDER BY uploaded_at, id LIMIT $6";
        let files = self
            .between(select, in_order, after, through)
            .bind::<BigInt, _>(limit)
            .load(self.connection)
            .await?;
        Ok(files)
    }

    /// Removes segments with their pages and postings.
    async fn remove(&mut self, segments: &[i64]) -> Result<(), Fault> {
        diesel::sql_query(
            "DELETE FROM labdata.file_segment WHERE organization_id = $1 AND id = ANY ($2)",
        )
        .bind::<SqlUuid, _>(self.organization)
        .bind::<Array<BigInt>, _>(segments)
        .execute(self.connection)
        .await?;
        Ok(())
    }

    /// Removes notes of files behind a place and up to another one.
    async fn forget(
        &mut self,
        table: &str,
        after: Option<Place>,
        through: Option<Place>,
    ) -> Result<(), Fault> {
        let Some(through) = through else {
            return Ok(());
        };
        self.between(&format!("DELETE FROM labdata.{table}"), "", after, through)
            .execute(self.connection)
            .await?;
        Ok(())
    }
}
