//! Rows of models' versions, and how they are read, locked and changed.

use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use labdata_domain::{
    files::ObjectKey,
    ids::{DatasetId, ModelId, ModelVersionId, OrganizationId, UserId},
    models::{Artifact, ModelVersion, Progress, Score, TrainingPhase, TrainingPlan, VersionState},
    refusal::Resource,
    work::WorkId,
};
use labdata_ports::PortError;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    database::{
        errors::{Fault, corrupt},
        pool::Connection,
    },
    schema::{ml_model, ml_model_version},
    work::rows as work_rows,
};

/// A version with its model.
#[derive(Queryable, Selectable)]
#[diesel(table_name = ml_model_version)]
pub(crate) struct VersionRow {
    id: Uuid,
    model_id: Uuid,
    #[diesel(select_expression = ml_model::name)]
    model_name: String,
    #[diesel(select_expression = ml_model::archived)]
    archived: bool,
    #[diesel(select_expression = ml_model::active_version_number)]
    active_version_number: Option<i64>,
    version_number: i64,
    description: Option<String>,
    dataset_id: Uuid,
    task_type: String,
    problem_type: String,
    quality_preset: String,
    target_column: String,
    feature_columns: Vec<String>,
    image_columns: Vec<String>,
    status: String,
    error_message: Option<String>,
    requested_by: Uuid,
    created_at: OffsetDateTime,
    started_at: Option<OffsetDateTime>,
    completed_at: Option<OffsetDateTime>,
    progress: Option<Value>,
    metrics: Option<Value>,
    artifact_key: Option<Uuid>,
    artifact_sha256: Option<Vec<u8>>,
    artifact_size: Option<i64>,
}

/// Content of the column `progress`.
#[derive(Serialize, Deserialize)]
struct ProgressJson {
    phase: TrainingPhase,
    models_tried: u32,
    best_score: Option<Score>,
    #[serde(with = "time::serde::rfc3339")]
    updated_at: OffsetDateTime,
}

/// Writes a value for a column of JSON.
pub(super) fn json<T: Serialize>(value: &T) -> Result<Value, PortError> {
    serde_json::to_value(value).map_err(|error| PortError::Internal(error.to_string()))
}

/// Writes the progress of a training.
pub(super) fn progress_json(progress: &Progress) -> Result<Value, PortError> {
    json(&ProgressJson {
        phase: progress.phase,
        models_tried: progress.models_tried,
        best_score: progress.best_score.clone(),
        updated_at: progress.updated_at,
    })
}

/// The value of that name.
fn named<T: Copy>(names: &[(&str, T)], name: &str) -> Option<T> {
    let mut names = names.iter();
    names
        .find(|(known, _)| *known == name)
        .map(|(_, value)| *value)
}

impl VersionRow {
    pub(crate) const fn id(&self) -> Uuid {
        self.id
    }

    fn broken(&self, column: &str) -> PortError {
        corrupt("ml_model_version", column, self.id)
    }

    fn plan(&mut self) -> Result<TrainingPlan, PortError> {
        use labdata_domain::models::{ProblemType, QualityPreset, TaskType};
        Ok(TrainingPlan {
            task: named(&TaskType::ALL, &self.task_type).ok_or_else(|| self.broken("task_type"))?,
            problem: named(&ProblemType::ALL, &self.problem_type)
                .ok_or_else(|| self.broken("problem_type"))?,
            preset: named(&QualityPreset::ALL, &self.quality_preset)
                .ok_or_else(|| self.broken("quality_preset"))?,
            target: std::mem::take(&mut self.target_column),
            features: std::mem::take(&mut self.feature_columns),
            images: std::mem::take(&mut self.image_columns),
        })
    }

    fn state(&mut self) -> Result<VersionState, PortError> {
        let error = self.error_message.take();
        let started = || self.started_at.ok_or_else(|| self.broken("started_at"));
        let completed = || self.completed_at.ok_or_else(|| self.broken("completed_at"));
        match self.status.as_str() {
            "pending" => Ok(VersionState::Pending),
            "training" => Ok(VersionState::Training {
                started_at: started()?,
            }),
            "ready" => Ok(VersionState::Ready {
                started_at: started()?,
                completed_at: completed()?,
            }),
            "failed" => Ok(VersionState::Failed {
                started_at: self.started_at,
                completed_at: completed()?,
                error: error.ok_or_else(|| self.broken("error_message"))?,
            }),
            "cancelled" => Ok(VersionState::Cancelled {
                started_at: self.started_at,
                completed_at: completed()?,
            }),
            _ => Err(self.broken("status")),
        }
    }

    fn progress(&mut self) -> Result<Option<Progress>, PortError> {
        let Some(stored) = self.progress.take() else {
            return Ok(None);
        };
        let progress: ProgressJson =
            serde_json::from_value(stored).map_err(|_| self.broken("progress"))?;
        Ok(Some(Progress {
            phase: progress.phase,
            models_tried: progress.models_tried,
            best_score: progress.best_score,
            updated_at: progress.updated_at,
        }))
    }

    fn artifact(&mut self) -> Result<Option<Artifact>, PortError> {
        let (Some(key), Some(hash), Some(size)) = (
            self.artifact_key,
            self.artifact_sha256.take(),
            self.artifact_size,
        ) else {
            return Ok(None);
        };
        Ok(Some(Artifact {
            object: ObjectKey::new(key),
            sha256: hash
                .try_into()
                .map_err(|_| self.broken("artifact_sha256"))?,
            size: u64::try_from(size).map_err(|_| self.broken("artifact_size"))?,
        }))
    }
}

impl TryFrom<VersionRow> for ModelVersion {
    type Error = PortError;

    fn try_from(mut row: VersionRow) -> Result<Self, PortError> {
        let metrics = row.metrics.take().map(serde_json::from_value).transpose();
        Ok(Self {
            model: ModelId::new(row.model_id),
            version: ModelVersionId::new(row.id),
            description: row.description.take(),
            archived: row.archived,
            number: u32::try_from(row.version_number).map_err(|_| row.broken("version_number"))?,
            is_active: row.active_version_number == Some(row.version_number),
            state: row.state()?,
            dataset: DatasetId::new(row.dataset_id),
            plan: row.plan()?,
            requested_by: UserId::new(row.requested_by),
            requested_at: row.created_at,
            progress: row.progress()?,
            metrics: metrics.map_err(|_| row.broken("metrics"))?,
            artifact: row.artifact()?,
            name: row.model_name,
        })
    }
}

/// Reads rows as versions.
pub(super) fn versions(rows: Vec<VersionRow>) -> Result<Vec<ModelVersion>, PortError> {
    rows.into_iter().map(ModelVersion::try_from).collect()
}

/// Reads the versions with those ids, in any order.
pub(crate) async fn load_versions(
    connection: &mut Connection,
    ids: &[Uuid],
) -> Result<Vec<VersionRow>, Fault> {
    Ok(ml_model_version::table
        .inner_join(ml_model::table)
        .filter(ml_model_version::id.eq_any(ids))
        .select(VersionRow::as_select())
        .load(connection)
        .await?)
}

/// Reads one version of a model by its number, or the newest one.
pub(super) async fn load(
    connection: &mut Connection,
    organization: OrganizationId,
    model: ModelId,
    number: Option<u32>,
) -> Result<Option<ModelVersion>, Fault> {
    let of_model = ml_model_version::table
        .inner_join(ml_model::table)
        .filter(ml_model::id.eq(model.as_uuid()))
        .filter(ml_model::organization_id.eq(organization.as_uuid()))
        .select(VersionRow::as_select());
    let row: Option<VersionRow> = match number {
        Some(number) => {
            of_model
                .filter(ml_model_version::version_number.eq(i64::from(number)))
                .first(connection)
                .await
        }
        None => {
            of_model
                // The model stores the number of its newest version, so nothing has to be sorted.
                .filter(ml_model_version::version_number.eq(ml_model::version_number))
                .first(connection)
                .await
        }
    }
    .optional()?;
    Ok(row.map(ModelVersion::try_from).transpose()?)
}

/// Reads the newest version of a model.
pub(super) async fn load_newest(
    connection: &mut Connection,
    organization: OrganizationId,
    model: ModelId,
) -> Result<ModelVersion, Fault> {
    let newest = load(connection, organization, model, None).await?;
    Ok(newest.ok_or(PortError::NotFound(Resource::Model))?)
}

/// A locked model.
#[derive(Queryable)]
pub(super) struct LockedModel {
    pub(super) name: String,
    pub(super) archived: bool,
    pub(super) version_number: i64,
    pub(super) active_version_number: Option<i64>,
}

/// Reads and locks a model against changes, and its versions against starting and ending, until the
/// transaction ends. A transaction locks the model before its versions.
pub(super) async fn lock_model(
    connection: &mut Connection,
    organization: OrganizationId,
    model: ModelId,
) -> Result<LockedModel, Fault> {
    let row: Option<LockedModel> = ml_model::table
        .filter(ml_model::id.eq(model.as_uuid()))
        .filter(ml_model::organization_id.eq(organization.as_uuid()))
        .select((
            ml_model::name,
            ml_model::archived,
            ml_model::version_number,
            ml_model::active_version_number,
        ))
        // NO KEY, as no key changes: foreign-key checks of other transactions do not wait.
        .for_no_key_update()
        .first(connection)
        .await
        .optional()?;
    Ok(row.ok_or(PortError::NotFound(Resource::Model))?)
}

/// Stores a new version, which waits in the queue.
pub(super) async fn insert(
    connection: &mut Connection,
    organization: OrganizationId,
    version: &ModelVersion,
) -> Result<(), Fault> {
    diesel::insert_into(ml_model_version::table)
        .values((
            ml_model_version::id.eq(version.version.as_uuid()),
            ml_model_version::organization_id.eq(organization.as_uuid()),
            ml_model_version::model_id.eq(version.model.as_uuid()),
            ml_model_version::version_number.eq(i64::from(version.number)),
            ml_model_version::description.eq(&version.description),
            ml_model_version::dataset_id.eq(version.dataset.as_uuid()),
            ml_model_version::task_type.eq(version.plan.task.as_str()),
            ml_model_version::problem_type.eq(version.plan.problem.as_str()),
            ml_model_version::quality_preset.eq(version.plan.preset.as_str()),
            ml_model_version::target_column.eq(&version.plan.target),
            ml_model_version::feature_columns.eq(&version.plan.features),
            ml_model_version::image_columns.eq(&version.plan.images),
            ml_model_version::status.eq(version.state.as_str()),
            ml_model_version::requested_by.eq(version.requested_by.as_uuid()),
            ml_model_version::created_at.eq(version.requested_at),
        ))
        .execute(connection)
        .await
        .map_err(|error| {
            Fault::from(error)
                .on_violation("ml_model_version_dataset_id_fkey", || {
                    PortError::NotFound(Resource::Dataset)
                })
                .on_violation("ml_model_version_requested_by_fkey", || {
                    PortError::NotFound(Resource::User)
                })
        })?;
    let work = WorkId::Training(version.version);
    work_rows::insert(connection, organization, work, version.requested_at).await
}

/// Makes a version of a locked model the active one.
pub(super) async fn set_active(
    connection: &mut Connection,
    model: ModelId,
    number: u32,
) -> Result<(), Fault> {
    diesel::update(ml_model::table.find(model.as_uuid()))
        .set(ml_model::active_version_number.eq(Some(i64::from(number))))
        .execute(connection)
        .await?;
    Ok(())
}
