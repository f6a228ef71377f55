//! Gives out a URL of a trained predictor.

use std::fmt;

use labdata_domain::{
    files::{ContentType, DOWNLOAD_URL_LIFETIME, FilePath},
    ids::ModelId,
    models::{Artifact, ModelVersion},
    people::{actor::Actor, scope::Scope},
};
use labdata_ports::files::blob::DownloadGrant;

use super::get_model::active_or_newest;
use crate::{Error, Services};

/// Content type of an artifact.
const ZSTD: &str = "application/zstd";

/// A ready version and a URL of its artifact.
#[derive(Clone)]
pub struct ArtifactDownload {
    /// The version.
    pub version: ModelVersion,
    /// Its artifact.
    pub artifact: Artifact,
    /// Name under which the artifact is saved.
    pub file_name: FilePath,
    /// Signed URL of the artifact, valid without a key until it expires.
    pub download_url: String,
}

impl fmt::Debug for ArtifactDownload {
    /// Without the URL, which is a permission.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArtifactDownload")
            .field("artifact", &self.artifact)
            .finish_non_exhaustive()
    }
}

/// Signs a URL of the artifact of the version of that number, or else of the active one.
///
/// # Errors
/// `Forbidden` without the read scope; `NotFound`; `Invalid` for a version
/// that is not ready.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn get_artifact(
    services: &Services,
    actor: &Actor,
    id: ModelId,
    number: Option<u32>,
) -> Result<ArtifactDownload, Error> {
    actor.require(Scope::Read)?;
    let version = active_or_newest(services, actor, id, number).await?;
    let artifact = version.ready_artifact();
    let artifact = artifact.map_err(Error::refused)?;
    let file_name = version.file_name();
    let grant = DownloadGrant {
        object: artifact.object,
        path: file_name.clone(),
        content_type: ContentType::substitute(Some(ZSTD)),
        expires_at: services.clock.now() + DOWNLOAD_URL_LIFETIME,
    };
    let download_url = services
        .signer
        .sign_download(actor.organization, &grant)
        .await?;
    Ok(ArtifactDownload {
        version,
        artifact,
        file_name,
        download_url,
    })
}
