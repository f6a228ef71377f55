//! Signs URLs on the platform for trainings and predictors, which reach nothing else.

use labdata_domain::{
    files::{ContentType, FilePath, FileState, ObjectKey},
    ids::{FileId, OrganizationId},
};
use labdata_ports::{PortError, files::blob::DownloadGrant};
use time::{Duration, OffsetDateTime};

use crate::{Error, Services};

/// Number of images that are looked up at a time.
pub(super) const CONCURRENT_LOOKUPS: usize = 4;

/// Time in which an image is fetched.
const IMAGE_URL_LIFETIME: Duration = Duration::hours(1);

/// Name of a mask, for people who follow its URL.
const MASK_NAME: &str = "mask.png";

/// Signs the URL of an object, which is saved under that name.
pub(super) async fn sign_object(
    services: &Services,
    organization: OrganizationId,
    object: ObjectKey,
    name: &str,
    expires_at: OffsetDateTime,
) -> Result<String, Error> {
    let path =
        FilePath::parse(name).map_err(|error| Error::Internal(format!("{name}: {error}")))?;
    let grant = DownloadGrant {
        object,
        path,
        content_type: ContentType::substitute(None),
        expires_at,
    };
    Ok(services.gateway.sign_download(organization, &grant).await?)
}

/// Signs the URL of a confirmed file, or of the mask of a dataset; `None` if the organization does not have it.
pub(super) async fn sign_image(
    services: &Services,
    organization: OrganizationId,
    file: FileId,
) -> Result<Option<String>, Error> {
    let id = file;
    let file = match services.files.get(organization, id).await {
        Err(PortError::NotFound(_)) => return sign_mask(services, organization, id).await,
        found => found?,
    };
    let FileState::Confirmed { object, .. } = file.state else {
        return Ok(None);
    };
    let grant = DownloadGrant {
        object,
        path: file.path,
        content_type: file.content_type,
        expires_at: services.clock.now() + IMAGE_URL_LIFETIME,
    };
    let url = services.gateway.sign_download(organization, &grant).await?;
    Ok(Some(url))
}

/// Signs the URL of the mask of a dataset, whose key stands in the dataset as ids of files do.
async fn sign_mask(
    services: &Services,
    organization: OrganizationId,
    id: FileId,
) -> Result<Option<String>, Error> {
    let object = ObjectKey::new(id.as_uuid());
    if !services.datasets.has_mask(organization, object).await? {
        return Ok(None);
    }
    let expires_at = services.clock.now() + IMAGE_URL_LIFETIME;
    let url = sign_object(services, organization, object, MASK_NAME, expires_at).await?;
    Ok(Some(url))
}
