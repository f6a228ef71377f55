//! Signs URLs of the objects that a training uses.

use labdata_domain::{
    files::{ContentType, ObjectKey},
    ids::OrganizationId,
    models::{Dataset, MAX_ARTIFACT_BYTES},
};
use labdata_ports::files::blob::{SignedUpload, UploadGrant};
use time::OffsetDateTime;

use crate::{Error, Services, models::gateway_urls::sign_object};

/// Name of a dataset, for people who follow its URL.
const DATASET_NAME: &str = "dataset.parquet";

/// Signs the URL of a dataset.
pub(super) async fn sign_dataset(
    services: &Services,
    organization: OrganizationId,
    dataset: &Dataset,
    expires_at: OffsetDateTime,
) -> Result<String, Error> {
    sign_object(
        services,
        organization,
        dataset.object,
        DATASET_NAME,
        expires_at,
    )
    .await
}

/// Signs the URL to which the artifact is uploaded.
pub(super) async fn sign_artifact(
    services: &Services,
    organization: OrganizationId,
    object: ObjectKey,
    expires_at: OffsetDateTime,
) -> Result<SignedUpload, Error> {
    let grant = UploadGrant {
        object,
        content_type: ContentType::substitute(None),
        limit: MAX_ARTIFACT_BYTES,
        expires_at,
    };
    Ok(services.gateway.sign_upload(organization, &grant).await?)
}
