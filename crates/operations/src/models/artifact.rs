//! `GET /api/v1/ml-models/{ml_model_id}/artifact`

use labdata_application::{
    Error,
    models::get_artifact::{ArtifactDownload, get_artifact},
};
use labdata_domain::refusal::Resource;
use labdata_request_body::output;

use super::{ModelPath, VersionQuery};
use crate::{About, Call, Method, NoBody, Operation, OrNotFound, Read, Tag};

output! {
    /// Trained predictor, for use outside the platform.
    #[derive(Clone)]
    pub struct ArtifactView as "MlModelArtifact" from download: ArtifactDownload {
        /// The version.
        version_number: u32 = download.version.number,
        /// Name under which it is saved.
        file_name: String = download.file_name.as_str().to_owned(),
        /// URL of the file, valid for 15 minutes without a key.
        download_url: String = download.download_url,
        /// SHA-256 of the file, in hexadecimal.
        sha256: String = download.artifact.sha256_hex(),
        /// Size of the file in bytes.
        size_bytes: u64 = download.artifact.size,
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "get_ml_model_artifact",
        method: Method::Get,
        path: "/api/v1/ml-models/{ml_model_id}/artifact",
        tag: Tag::MlModels,
        summary: "Gives out the trained predictor",
        description: "A `.tar.zst` with an `AutoGluon` predictor: that of the active version, unless \
            `version_number` names another. It consists of pickles, which run code when they are loaded.",
        returns: "The artifact",
        refusals: &[(400, "The version is not ready")],
    }
    .runs(run)
}

async fn run(call: Call<Read, NoBody, VersionQuery, ModelPath>) -> Result<ArtifactView, Error> {
    let id = call.path.ml_model_id.or_not_found(Resource::Model)?;
    let number = call.query.number()?;
    let mut download = get_artifact(&call.services, &call.actor, id, number).await?;
    download.download_url = call.base_url.localize(download.download_url);
    Ok(download.into())
}
