//! Origin that browsers send uploads to.

use std::time::Duration;

use labdata_application::Services;
use labdata_domain::{
    files::{ContentType, ObjectKey},
    ids::OrganizationId,
};
use labdata_ports::{
    PortError,
    files::blob::{UploadGrant, UrlSigner},
};
use url::Url;

/// Lifetime of a URL that is only looked at.
const SHORT: Duration = Duration::from_mins(1);

/// The origin of the storage, such as `https://lab.s3.eu-central-1.amazonaws.com`, where it receives uploads
/// itself; `None` where the platform does.
pub(crate) async fn upload_origin(services: &Services) -> Result<Option<String>, PortError> {
    let storage = origin(services, &*services.signer).await?;
    let own = origin(services, &*services.gateway).await?;
    Ok(storage.filter(|storage| Some(storage) != own.as_ref()))
}

/// The origin of the URLs that a signer makes. The one that it makes here is of no object, and is sent
/// nowhere.
async fn origin(services: &Services, signer: &dyn UrlSigner) -> Result<Option<String>, PortError> {
    let grant = UploadGrant {
        object: ObjectKey::new(services.ids.next_id()),
        content_type: ContentType::substitute(None),
        limit: 0,
        expires_at: services.clock.now() + SHORT,
    };
    let organization = OrganizationId::new(services.ids.next_id());
    let upload = signer.sign_upload(organization, &grant).await?;
    let origin = Url::parse(&upload.url).ok().map(|url| url.origin());
    Ok(origin
        .filter(url::Origin::is_tuple)
        .map(|origin| origin.ascii_serialization()))
}
