//! `GET /api/v1/ml-models/{ml_model_id}/artifact`

use actix_web::web::Json;
use labdata_application::models::get_artifact::{ArtifactDownload, get_artifact};
use labdata_domain::refusal::Resource;
use serde::Serialize;
use utoipa::ToSchema;

use super::{ModelPath, VersionQuery};
use crate::http::{ApiResult, Call, NoBody, OrNotFound, Read, error::ErrorBody};

/// Trained predictor, for use outside the platform.
#[derive(Clone, Serialize, ToSchema)]
#[schema(as = MlModelArtifact)]
pub struct ArtifactView {
    /// The version.
    version_number: u32,
    /// Name under which it is saved.
    file_name: String,
    /// URL of the file, valid for 15 minutes without a key.
    download_url: String,
    /// SHA-256 of the file, in hexadecimal.
    sha256: String,
    /// Size of the file in bytes.
    size_bytes: u64,
}

impl From<ArtifactDownload> for ArtifactView {
    fn from(download: ArtifactDownload) -> Self {
        Self {
            version_number: download.version.number,
            file_name: download.file_name.as_str().to_owned(),
            download_url: download.download_url,
            sha256: download.artifact.sha256_hex(),
            size_bytes: download.artifact.size,
        }
    }
}

/// Gives out the trained predictor
///
/// A `.tar.zst` with an `AutoGluon` predictor: that of the active version, unless `version_number` names
/// another. It consists of pickles, which run code when they are loaded.
#[utoipa::path(
    get,
    path = "/api/v1/ml-models/{ml_model_id}/artifact",
    operation_id = "get_ml_model_artifact",
    tag = "ml-models",
    responses(
        (status = 200, description = "The artifact", body = ArtifactView),
        (status = 400, description = "The version is not ready", body = ErrorBody),
    )
)]
pub async fn handle(
    call: Call<Read, NoBody, VersionQuery, ModelPath>,
) -> ApiResult<Json<ArtifactView>> {
    let id = call.path.ml_model_id.or_not_found(Resource::Model)?;
    let number = call.query.number()?;
    let mut download = get_artifact(call.ports(), &call.actor, id, number).await?;
    download.download_url = call.localize(download.download_url);
    Ok(Json(download.into()))
}
