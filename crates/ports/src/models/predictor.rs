//! Predictions of trained models.

use std::{collections::BTreeMap, fmt, sync::Arc};

use async_trait::async_trait;
use labdata_domain::{
    ids::{FileId, ModelVersionId, OrganizationId},
    models::{
        Artifact, InvalidRows, ModelSignature, PredictionDelay, PredictionInput, Predictions,
        SegmentationOptions, TaskType,
    },
};

/// Version of a model that predicts.
#[derive(Clone)]
pub struct ServedModel {
    /// The organization.
    pub organization: OrganizationId,
    /// The version.
    pub version: ModelVersionId,
    /// Kind of its input.
    pub task: TaskType,
    /// Columns that it reads and predicts.
    pub signature: Arc<ModelSignature>,
    /// Its artifact.
    pub artifact: Artifact,
    /// Signed URL of the artifact, on the platform. It is used only if the version is not loaded.
    pub artifact_url: String,
}

impl fmt::Debug for ServedModel {
    /// Omits the URL, which is a permission, and the features.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServedModel")
            .field("organization", &self.organization)
            .field("version", &self.version)
            .field("task", &self.task)
            .finish_non_exhaustive()
    }
}

/// Rows to predict.
#[derive(Clone)]
pub struct PredictionRequest {
    /// The rows, checked against the model's features.
    pub input: PredictionInput,
    /// Signed URLs of all image files in the rows, on the platform.
    pub image_urls: BTreeMap<FileId, String>,
    /// Thresholds of a segmentation; its defaults for `None`. Other models have none.
    pub segmentation: Option<SegmentationOptions>,
}

impl fmt::Debug for PredictionRequest {
    /// Omits the values and the URLs, which are permissions.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PredictionRequest")
            .field("rows", &self.input.rows)
            .finish_non_exhaustive()
    }
}

/// Why there are no predictions.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PredictError {
    /// A later try may succeed.
    #[error(transparent)]
    Delayed(#[from] PredictionDelay),
    /// The model cannot read the rows.
    #[error(transparent)]
    Rejected(#[from] InvalidRows),
    /// The model cannot predict these rows, for that reason.
    #[error("the model cannot predict these rows: {0}")]
    Refused(String),
}

/// Predicts with trained models.
///
/// An artifact is code that the organization made. An implementation MUST load it only in isolation:
/// without credentials, without access to other organizations and other versions, and with no network
/// but the platform. It MUST NOT load an artifact whose SHA-256 or size differs from
/// [`ServedModel::artifact`], and MUST treat everything that the model responds as untrusted.
#[async_trait]
pub trait Predictor: Send + Sync {
    /// Predicts the rows, of which there is at least one.
    ///
    /// The first prediction of a version MAY take long. An implementation MUST response
    /// [`PredictionDelay::Preparing`] after some seconds, and MUST continue to prepare the version
    /// although the caller has left.
    ///
    /// # Errors
    /// See [`PredictError`].
    async fn predict(
        &self,
        model: &ServedModel,
        request: PredictionRequest,
    ) -> Result<Predictions, PredictError>;

    /// Returns true if the version predicts without being prepared first. It stays so for some time after
    /// each prediction, unless others need its place.
    fn is_ready(&self, model: &ServedModel) -> bool;

    /// Begins to prepare the version, unless it is ready, being prepared, or failed a moment ago. Returns at
    /// once. An implementation MUST NOT end predictions under way for it, so it MAY not begin.
    fn prepare(&self, model: &ServedModel);

    /// Ends all processes of this implementation. Predictions under way fail, and no version is ready.
    async fn close(&self) {}
}
