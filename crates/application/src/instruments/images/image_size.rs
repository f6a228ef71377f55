//! Reads the size of an image from its header.

use bytes::BytesMut;
use futures::TryStreamExt;
use labdata_domain::{
    files::ObjectKey,
    ids::OrganizationId,
    instruments::images::{AnnotationRefusal, ImageHeader, PixelSize, Probe},
    refusal::Resource,
};
use labdata_ports::PortError;

use crate::{Error, Services};

/// Returns the size of an image, of which some 64 KiB are read at a time, and no pixel is decoded.
///
/// # Errors
/// `Invalid` for what is no image, or one with too many pixels.
pub(crate) async fn image_size(
    services: &Services,
    organization: OrganizationId,
    object: ObjectKey,
) -> Result<PixelSize, Error> {
    let mut header = ImageHeader::default();
    loop {
        let part = read(services, organization, object, header.range()).await?;
        match header.step(&part) {
            Probe::Found(size) if size.is_within_limits() => return Ok(size),
            Probe::Found(size) => {
                return Err(Error::refused(AnnotationRefusal::TooManyPixels(size)));
            }
            Probe::Unknown => return Err(Error::refused(AnnotationRefusal::NotAnImage)),
            Probe::More => {}
        }
    }
}

async fn read(
    services: &Services,
    organization: OrganizationId,
    object: ObjectKey,
    range: std::ops::Range<u64>,
) -> Result<BytesMut, Error> {
    let body = services.blobs.read(organization, object, Some(range)).await;
    let body = match body {
        // A file that is deleted at this moment is as good as deleted before.
        Err(PortError::NotFound(_)) => return Err(Error::not_found(Resource::File)),
        read => read?,
    };
    let read = body
        .bytes
        .try_fold(BytesMut::new(), |mut part, chunk| async move {
            part.extend_from_slice(&chunk);
            Ok(part)
        });
    Ok(read
        .await
        .map_err(|error| PortError::Unavailable(error.to_string()))?)
}
