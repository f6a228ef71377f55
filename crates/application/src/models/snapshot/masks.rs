//! Masks of a dataset of annotations: the vetted masks of an image, united.

use std::{io::BufReader, sync::Arc, thread};

use futures::{StreamExt, channel::oneshot, stream};
use labdata_domain::{
    files::{MAX_FILE_BYTES, ObjectKey},
    ids::FileId,
    instruments::images::{
        Annotation, AnnotationRefusal, Bitmap, Label, MAX_DATASET_IMAGES, PixelSize,
    },
    models::DatasetMask,
    people::actor::Actor,
};
use labdata_ports::PortError;

use crate::{
    Error, Services,
    files::{ongoing_uploads::OngoingUpload, upload_file::not_stored, upload_room::reserve},
    instruments::images::decode_mask::{encode_bitmap, unite},
};

/// Stores one mask for each image that has vetted masks of the label. Holds the pixels of one image, a bit each.
/// What is stored before an error is left to the sweeper.
///
/// The masks are gray images of one bit: of those, `AutoGluon` knows that they have one class, however much of the
/// image they cover.
pub(in crate::models) async fn unite_masks(
    services: &Services,
    actor: &Actor,
    label: &Label,
    upload: &Arc<OngoingUpload>,
) -> Result<Vec<(FileId, DatasetMask)>, Error> {
    // One more than the most, to tell that there are more.
    let limit = u32::try_from(MAX_DATASET_IMAGES + 1).unwrap_or(u32::MAX);
    let files = services
        .annotations
        .vetted_files(actor.organization, label.as_str(), limit)
        .await?;
    if files.len() > MAX_DATASET_IMAGES {
        return Err(Error::refused(AnnotationRefusal::TooManyImages));
    }
    let (mut images, mut bytes) = (Vec::with_capacity(files.len()), 0);
    for file in files {
        let Some(png) = united(services, actor, label, file).await? else {
            continue;
        };
        let object = ObjectKey::new(services.ids.next_id());
        bytes += u64::try_from(png.len()).unwrap_or(u64::MAX);
        reserve(services, upload, bytes).await?;
        let body = stream::iter([Ok(png.into())]).boxed();
        let stored = services
            .blobs
            .put_new(actor.organization, object, body, MAX_FILE_BYTES)
            .await
            .map_err(not_stored)?;
        let size = stored.size;
        images.push((file, DatasetMask { object, size }));
    }
    if images.is_empty() {
        let label = label.as_str().to_owned();
        return Err(Error::refused(AnnotationRefusal::NothingVetted(label)));
    }
    Ok(images)
}

/// Returns the PNG of an image's vetted masks; `None` if it has lost them, or is deleted.
async fn united(
    services: &Services,
    actor: &Actor,
    label: &Label,
    file: FileId,
) -> Result<Option<Vec<u8>>, Error> {
    match services.files.get(actor.organization, file).await {
        Err(PortError::NotFound(_)) => return Ok(None),
        found => found?,
    };
    let annotations = services.annotations.list(actor.organization, file).await?;
    let vetted: Vec<Annotation> = annotations
        .into_iter()
        .filter(|annotation| annotation.is_human_vetted && annotation.label == *label)
        .collect();
    let Some(first) = vetted.first() else {
        return Ok(None);
    };
    let size = first.shape.size;
    let mut bitmap = Bitmap::new(size);
    for annotation in vetted {
        let Some(next) = add(services, actor, annotation.object, size, bitmap).await? else {
            return Ok(None);
        };
        bitmap = next;
    }
    let encode = move || encode_bitmap(&bitmap, size);
    let encoded = in_thread(encode).await?;
    encoded.map(Some).map_err(Error::Internal)
}

/// Adds a stored mask; `None` if it was deleted at this moment.
async fn add(
    services: &Services,
    actor: &Actor,
    object: ObjectKey,
    size: PixelSize,
    mut bitmap: Bitmap,
) -> Result<Option<Bitmap>, Error> {
    let mask = match services.blobs.open(actor.organization, object).await {
        Err(PortError::NotFound(_)) => return Ok(None),
        opened => opened?,
    };
    let added = in_thread(move || unite(BufReader::new(mask), size, &mut bitmap).map(|()| bitmap));
    let unreadable = |error| Error::Internal(format!("the stored mask {object}: {error}"));
    added.await?.map(Some).map_err(unreadable)
}

/// Does work that takes a processor, or blocks.
async fn in_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    let (done, outcome) = oneshot::channel();
    let thread = thread::Builder::new().name("mask".to_owned());
    let spawned = thread.spawn(move || {
        // The receiver no longer exists if the request was abandoned.
        let _ = done.send(work());
    });
    spawned.map_err(|error| Error::Internal(format!("no thread for a mask: {error}")))?;
    let ended = |_| Error::Internal("the thread of a mask ended early".to_owned());
    outcome.await.map_err(ended)
}
