//! Annotations of images.

use async_trait::async_trait;
use diesel::{dsl::count_star, prelude::*, sql_types::Uuid as SqlUuid};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use labdata_domain::{
    files::ObjectKey,
    ids::{AnnotationId, ExecutionId, FileId, OrganizationId, UserId},
    instruments::images::{
        Annotation, AnnotationChange, BoundingBox, Label, MAX_ANNOTATIONS_OF_IMAGE, MaskShape,
        PixelSize,
    },
    refusal::Resource,
    storage::StorageQuota,
};
use labdata_ports::{
    PortError,
    instruments::images::{AddAnnotationsError, AnnotationRepository},
};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    database::{
        errors::{Fault, corrupt, port_error, transacted},
        pool::{Connection, Database},
    },
    executions,
    files::usage::{check_quota, lock_usage},
    schema::{annotation, file},
};

/// Number of annotations that one statement inserts; each has 17 values, and a statement takes 65,535.
const ROWS_PER_INSERT: usize = 1_000;

/// An annotation as it is stored.
#[derive(Queryable, Selectable, Insertable)]
#[diesel(table_name = annotation)]
struct AnnotationRow {
    organization_id: Uuid,
    id: Uuid,
    file_id: Uuid,
    job_execution_id: Option<Uuid>,
    label: String,
    object_key: Uuid,
    size_bytes: i64,
    width: i64,
    height: i64,
    foreground: i64,
    box_x: i64,
    box_y: i64,
    box_width: i64,
    box_height: i64,
    is_human_vetted: bool,
    created_by: Uuid,
    created_at: OffsetDateTime,
}

fn stored(number: u64) -> Result<i64, PortError> {
    i64::try_from(number).map_err(|error| PortError::Internal(error.to_string()))
}

impl AnnotationRow {
    fn of(organization: OrganizationId, annotation: &Annotation) -> Result<Self, PortError> {
        let MaskShape {
            size,
            foreground,
            bounds,
        } = annotation.shape;
        Ok(Self {
            organization_id: organization.as_uuid(),
            id: annotation.id.as_uuid(),
            file_id: annotation.file.as_uuid(),
            job_execution_id: annotation.execution.map(ExecutionId::as_uuid),
            label: annotation.label.as_str().to_owned(),
            object_key: annotation.object.as_uuid(),
            size_bytes: stored(annotation.size_bytes)?,
            width: size.width.into(),
            height: size.height.into(),
            foreground: stored(foreground)?,
            box_x: bounds.x.into(),
            box_y: bounds.y.into(),
            box_width: bounds.width.into(),
            box_height: bounds.height.into(),
            is_human_vetted: annotation.is_human_vetted,
            created_by: annotation.created_by.as_uuid(),
            created_at: annotation.created_at,
        })
    }
}

impl TryFrom<AnnotationRow> for Annotation {
    type Error = PortError;

    fn try_from(row: AnnotationRow) -> Result<Self, PortError> {
        let unreadable = |column| corrupt("annotation", column, row.id);
        let side = |number: i64, column| u32::try_from(number).map_err(|_| unreadable(column));
        let shape = MaskShape {
            size: PixelSize {
                width: side(row.width, "width")?,
                height: side(row.height, "height")?,
            },
            foreground: u64::try_from(row.foreground).map_err(|_| unreadable("foreground"))?,
            bounds: BoundingBox {
                x: side(row.box_x, "box_x")?,
                y: side(row.box_y, "box_y")?,
                width: side(row.box_width, "box_width")?,
                height: side(row.box_height, "box_height")?,
            },
        };
        Ok(Self {
            id: AnnotationId::new(row.id),
            file: FileId::new(row.file_id),
            execution: row.job_execution_id.map(ExecutionId::new),
            label: Label::parse(&row.label).map_err(|_| unreadable("label"))?,
            object: ObjectKey::new(row.object_key),
            size_bytes: u64::try_from(row.size_bytes).map_err(|_| unreadable("size_bytes"))?,
            shape,
            is_human_vetted: row.is_human_vetted,
            created_by: UserId::new(row.created_by),
            created_at: row.created_at,
        })
    }
}

/// Annotations in PostgreSQL.
#[derive(Clone, Debug)]
pub struct PgAnnotationRepository {
    database: Database,
}

impl PgAnnotationRepository {
    /// The repository over that database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self { database }
    }
}

/// Deletes what was saved under an execution, in the trash too. Returns the number of annotations. The caller has locked the
/// execution, so that none is being added.
pub(crate) async fn delete_of_execution(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    execution: ExecutionId,
) -> QueryResult<u64> {
    let deleted = diesel::delete(annotation::table)
        .filter(annotation::organization_id.eq(organization.as_uuid()))
        .filter(annotation::job_execution_id.eq(execution.as_uuid()))
        .execute(connection)
        .await?;
    // Afterwards: an image that is being deleted has moved its annotations by now.
    let in_trash = diesel::sql_query(
        "DELETE FROM labdata.trashed_annotation WHERE organization_id = $1 AND job_execution_id = $2",
    )
    .bind::<SqlUuid, _>(organization.as_uuid())
    .bind::<SqlUuid, _>(execution.as_uuid())
    .execute(connection)
    .await?;
    Ok(u64::try_from(deleted + in_trash).unwrap_or(u64::MAX))
}

type Refused<T> = Result<Result<T, AddAnnotationsError>, Fault>;

/// Refuses an execution that is not open. Its end and its revert wait until the annotations are stored.
async fn check_execution(
    connection: &mut Connection,
    organization: OrganizationId,
    execution: ExecutionId,
    now: OffsetDateTime,
) -> Refused<()> {
    let open = executions::rows::is_open(connection, organization, execution, now).await?;
    Ok(match open {
        None => Err(AddAnnotationsError::UnknownExecution),
        Some(false) => Err(AddAnnotationsError::ExecutionClosed),
        Some(true) => Ok(()),
    })
}

/// Locks the file, so that calls for one image follow each other. Returns its number of annotations.
async fn lock_file(
    connection: &mut Connection,
    organization: OrganizationId,
    id: FileId,
) -> Result<u64, Fault> {
    // NO KEY UPDATE: rows that reference the file take KEY SHARE locks, which it lets pass.
    let found: Option<Uuid> = file::table
        .filter(file::id.eq(id.as_uuid()))
        .filter(file::organization_id.eq(organization.as_uuid()))
        .select(file::id)
        .for_no_key_update()
        .first(connection)
        .await
        .optional()?;
    found.ok_or(PortError::NotFound(Resource::File))?;
    // Counted under the lock: two saves for one image could otherwise each find room and exceed the limit together.
    let count: i64 = annotation::table
        .filter(annotation::organization_id.eq(organization.as_uuid()))
        .filter(annotation::file_id.eq(id.as_uuid()))
        .select(count_star())
        .first(connection)
        .await?;
    Ok(u64::try_from(count).unwrap_or_default())
}

async fn add(
    connection: &mut Connection,
    organization: OrganizationId,
    file: FileId,
    execution: Option<ExecutionId>,
    annotations: &[Annotation],
    quota: StorageQuota,
    now: OffsetDateTime,
) -> Refused<()> {
    // Before any row lock, as `lock_usage` demands.
    if quota.is_limited() {
        lock_usage(connection, organization).await?;
    }
    if let Some(execution) = execution
        && let Err(refusal) = check_execution(connection, organization, execution, now).await?
    {
        return Ok(Err(refusal));
    }
    let there = lock_file(connection, organization, file).await?;
    let more = u64::try_from(annotations.len()).unwrap_or(u64::MAX);
    if there.saturating_add(more) > MAX_ANNOTATIONS_OF_IMAGE {
        return Ok(Err(AddAnnotationsError::TooMany(there)));
    }
    let bytes = annotations.iter().map(|annotation| annotation.size_bytes);
    if let Err(refusal) = check_quota(connection, organization, quota, bytes.sum()).await? {
        return Ok(Err(refusal.into()));
    }
    for annotations in annotations.chunks(ROWS_PER_INSERT) {
        let rows = annotations
            .iter()
            .map(|annotation| AnnotationRow::of(organization, annotation))
            .collect::<Result<Vec<_>, _>>()?;
        diesel::insert_into(annotation::table)
            .values(rows)
            .execute(connection)
            .await
            .map_err(|error| {
                // The user may have been deleted since the key was checked.
                Fault::from(error).on_violation("annotation_created_by_fkey", || {
                    PortError::NotFound(Resource::User)
                })
            })?;
    }
    Ok(Ok(()))
}

async fn update(
    connection: &mut Connection,
    organization: OrganizationId,
    file: FileId,
    id: AnnotationId,
    change: &AnnotationChange,
) -> Result<Annotation, Fault> {
    let row: Option<AnnotationRow> = annotation::table
        .find((organization.as_uuid(), id.as_uuid()))
        .filter(annotation::file_id.eq(file.as_uuid()))
        .select(AnnotationRow::as_select())
        // Two changes of different fields must both take effect.
        .for_update()
        .first(connection)
        .await
        .optional()?;
    let row = row.ok_or(PortError::NotFound(Resource::Annotation))?;
    let changed = change.apply(row.try_into()?);
    diesel::update(annotation::table.find((organization.as_uuid(), id.as_uuid())))
        .set((
            annotation::label.eq(changed.label.as_str()),
            annotation::is_human_vetted.eq(changed.is_human_vetted),
        ))
        .execute(connection)
        .await?;
    Ok(changed)
}

#[async_trait]
impl AnnotationRepository for PgAnnotationRepository {
    async fn add(
        &self,
        organization: OrganizationId,
        file: FileId,
        execution: Option<ExecutionId>,
        annotations: &[Annotation],
        quota: StorageQuota,
        now: OffsetDateTime,
    ) -> Result<(), AddAnnotationsError> {
        let added: Refused<()> = transacted!(
            self.database.of(organization),
            connection => add(connection, organization, file, execution, annotations, quota, now)
        );
        added.map_err(PortError::from)?
    }

    async fn list(
        &self,
        organization: OrganizationId,
        file: FileId,
    ) -> Result<Vec<Annotation>, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        let rows: Vec<AnnotationRow> = annotation::table
            .filter(annotation::organization_id.eq(organization.as_uuid()))
            .filter(annotation::file_id.eq(file.as_uuid()))
            .select(AnnotationRow::as_select())
            .order((annotation::created_at, annotation::id))
            .load(&mut connection)
            .await
            .map_err(port_error)?;
        rows.into_iter().map(Annotation::try_from).collect()
    }

    async fn update(
        &self,
        organization: OrganizationId,
        file: FileId,
        id: AnnotationId,
        change: &AnnotationChange,
    ) -> Result<Annotation, PortError> {
        Ok(transacted!(
            self.database.of(organization),
            connection => update(connection, organization, file, id, change)
        )?)
    }

    async fn delete(
        &self,
        organization: OrganizationId,
        file: FileId,
        id: AnnotationId,
    ) -> Result<Annotation, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        // Its object stays for now: the sweep removes objects that no record names, so a crash in between leaves no
        // record without one.
        let row: Option<AnnotationRow> = diesel::delete(annotation::table)
            .filter(annotation::organization_id.eq(organization.as_uuid()))
            .filter(annotation::id.eq(id.as_uuid()))
            .filter(annotation::file_id.eq(file.as_uuid()))
            .returning(AnnotationRow::as_returning())
            .get_result(&mut connection)
            .await
            .optional()
            .map_err(|error| PortError::from(Fault::from(error).of_commit()))?;
        row.ok_or(PortError::NotFound(Resource::Annotation))?
            .try_into()
    }

    async fn vetted_files(
        &self,
        organization: OrganizationId,
        label: &str,
        limit: u32,
    ) -> Result<Vec<FileId>, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        let files: Vec<Uuid> = annotation::table
            .filter(annotation::organization_id.eq(organization.as_uuid()))
            .filter(annotation::label.eq(label))
            .filter(annotation::is_human_vetted)
            .select(annotation::file_id)
            .distinct()
            .order(annotation::file_id)
            .limit(limit.into())
            .load(&mut connection)
            .await
            .map_err(port_error)?;
        Ok(files.into_iter().map(FileId::new).collect())
    }
}
