//! Annotations of images.

pub mod change_annotation;
pub(crate) mod decode_mask;
pub mod delete_annotation;
pub(crate) mod image_size;
pub mod list_annotations;
pub mod save_annotations;

use std::{collections::BTreeMap, fmt};

use labdata_domain::{
    files::{ContentType, DOWNLOAD_URL_LIFETIME, File, FilePath, FileRefusal, FileState},
    ids::{FileId, OrganizationId, UserId},
    instruments::images::Annotation,
    people::actor::Actor,
};
use labdata_ports::files::blob::DownloadGrant;

use crate::{Error, Services};

/// An annotation with what a client needs to show it.
#[derive(Clone)]
pub struct AnnotationDetails {
    /// The annotation.
    pub annotation: Annotation,
    /// Signed URL of its PNG, valid without a key until it expires.
    pub mask_url: String,
    /// Name of the user who saved it.
    pub user_name: String,
}

impl fmt::Debug for AnnotationDetails {
    /// Without the URL, which is a permission.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnnotationDetails")
            .field("annotation", &self.annotation)
            .finish_non_exhaustive()
    }
}

/// Adds the URLs of masks and the names of users.
pub(crate) async fn show(
    services: &Services,
    organization: OrganizationId,
    annotations: Vec<Annotation>,
) -> Result<Vec<AnnotationDetails>, Error> {
    let mut names: BTreeMap<UserId, String> = BTreeMap::new();
    let expires_at = services.clock.now() + DOWNLOAD_URL_LIFETIME;
    let content_type = ContentType::substitute(Some("image/png"));
    let mut details = Vec::with_capacity(annotations.len());
    for annotation in annotations {
        let user = annotation.created_by;
        let user_name = if let Some(name) = names.get(&user) {
            name.clone()
        } else {
            let name = services.tenancy.user(organization, user).await?.name;
            names.insert(user, name.clone());
            name
        };
        let name = format!("mask-{}.png", annotation.id);
        let path = FilePath::parse(&name).map_err(|error| Error::Internal(error.to_string()))?;
        let grant = DownloadGrant {
            object: annotation.object,
            path,
            content_type: content_type.clone(),
            expires_at,
        };
        let mask_url = services.signer.sign_download(organization, &grant).await?;
        details.push(AnnotationDetails {
            annotation,
            mask_url,
            user_name,
        });
    }
    Ok(details)
}

/// One of the organization's confirmed files.
pub(crate) async fn confirmed_file(
    services: &Services,
    actor: &Actor,
    id: FileId,
) -> Result<File, Error> {
    let file = services.files.get(actor.organization, id).await?;
    match file.state {
        FileState::Confirmed { .. } => Ok(file),
        FileState::AwaitingBytes { .. } => Err(Error::refused(FileRefusal::NotConfirmed)),
    }
}
