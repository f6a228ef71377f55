//! Saves annotations of an image.

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use labdata_domain::{
    files::{MAX_FILE_BYTES, ObjectKey},
    ids::{AnnotationId, ExecutionId, FileId},
    instruments::images::{Annotation, AnnotationRefusal, Label, PixelSize},
    people::{actor::Actor, run_key::GuardedAction, scope::Scope},
    refusal::Resource,
};
use labdata_ports::instruments::images::AddAnnotationsError;

use super::{
    AnnotationDetails, confirmed_file,
    decode_mask::{DecodedMask, decode_masks},
    image_size::image_size,
    show,
};
use crate::{
    Error, Services,
    files::{
        ongoing_uploads::OngoingUpload,
        quota::quota_of,
        upload_file::{not_stored, remove},
        upload_room::reserve,
    },
    slots::{Slot, Work},
};

/// Number of masks that are stored at a time: the storage waits for its disk at each.
const CONCURRENT_MASKS: usize = 16;

/// A mask to save.
#[derive(Clone, Debug)]
pub struct NewAnnotation {
    /// PNG in base64, white on transparent, of the image's size.
    pub mask: String,
    /// Name of what it covers.
    pub label: String,
    /// Width of the image, where the caller states it.
    pub width: Option<u32>,
    /// Height of the image, where the caller states it.
    pub height: Option<u32>,
    /// True if a person has checked it.
    pub is_human_vetted: bool,
    /// The image, where the caller states it again.
    pub file: Option<FileId>,
}

/// Annotations to save.
#[derive(Clone, Debug)]
pub struct SaveAnnotations {
    /// The image.
    pub file: FileId,
    /// The execution under which they are saved.
    pub execution: Option<ExecutionId>,
    /// At least one.
    pub annotations: Vec<NewAnnotation>,
}

/// Masks that are stored and belong to no annotation yet. Without a record, a sweeper removes them.
#[derive(Debug)]
pub struct StoredMasks {
    file: FileId,
    execution: Option<ExecutionId>,
    annotations: Vec<Annotation>,
    /// Counts the bytes until the records do.
    _upload: OngoingUpload,
    _slot: Slot,
}

/// Decodes and stores the masks. All of them, or none.
///
/// # Errors
/// `Forbidden` without the write scope; `NotFound` for an unknown file or execution; `Invalid` when the execution is
/// closed, the file is no image, or a mask or a label is not accepted; `InsufficientStorage`.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn store_masks(
    services: &Services,
    actor: &Actor,
    command: SaveAnnotations,
) -> Result<StoredMasks, Error> {
    actor.require(Scope::Write)?;
    // Masks of a run belong to its execution even if the script does not name it.
    let execution = command.execution.or(actor.execution);
    if let Some(id) = execution {
        // Checked again when the masks are recorded; this only spares the work for one that is closed already.
        check_execution(services, actor, id).await?;
    }
    let file = confirmed_file(services, actor, command.file).await?;
    let image = image_size(services, actor.organization, file.state.object()).await?;
    let labels = check(command.file, image, &command.annotations).map_err(Error::refused)?;
    // Decoding takes memory in proportion to the image, so it waits for its turn.
    let slot = services.slots.enter(Work::Masks, actor).await?;
    let (masks, vetted): (Vec<String>, Vec<bool>) = command
        .annotations
        .into_iter()
        .map(|annotation| (annotation.mask, annotation.is_human_vetted))
        .unzip();
    let decoded = decode_masks(masks, image).await?;
    let decoded = decoded
        .map_err(|(index, reason)| Error::refused(AnnotationRefusal::Mask { index, reason }))?;
    let (upload, objects) = store(services, actor, &decoded).await?;
    let created_at = services.clock.now();
    let ids = new_ids(services, decoded.len());
    let parts = ids.into_iter().zip(objects).zip(labels).zip(vetted);
    let annotation =
        |((((id, object), label), is_human_vetted), decoded): (_, DecodedMask)| Annotation {
            id,
            file: command.file,
            execution,
            label,
            object,
            size_bytes: length(&decoded.png),
            shape: decoded.shape,
            is_human_vetted,
            created_by: actor.user,
            created_at,
        };
    Ok(StoredMasks {
        file: command.file,
        execution,
        annotations: parts.zip(decoded).map(annotation).collect(),
        _upload: upload,
        _slot: slot,
    })
}

/// New ids in increasing order: saved at one time, annotations are listed by id, in the order of the request.
fn new_ids(services: &Services, count: usize) -> Vec<AnnotationId> {
    let ids = (0..count).map(|_| AnnotationId::new(services.ids.next_id()));
    let mut ids: Vec<AnnotationId> = ids.collect();
    // A list is ordered by time and id, and all have one time: this is the order of the request.
    ids.sort();
    ids
}

/// Checks that the caller may save masks under the execution, and that it is open.
async fn check_execution(services: &Services, actor: &Actor, id: ExecutionId) -> Result<(), Error> {
    actor.may(GuardedAction::NameExecution(id))?;
    let execution = services.executions.get(actor.organization, id).await?;
    if execution.state.is_open(services.clock.now()) {
        Ok(())
    } else {
        Err(Error::refused(AnnotationRefusal::ExecutionClosed))
    }
}

/// Records annotations whose masks are stored. They are listed from then on.
///
/// # Errors
/// `Forbidden` without the write scope; `NotFound` when the file or the execution are deleted by now; `Invalid` when
/// the execution is closed by now, or the image would have too many annotations; `InsufficientStorage`.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn record_masks(
    services: &Services,
    actor: &Actor,
    stored: StoredMasks,
) -> Result<Vec<AnnotationDetails>, Error> {
    actor.require(Scope::Write)?;
    let StoredMasks {
        file,
        execution,
        annotations,
        ..
    } = &stored;
    let quota = quota_of(services, actor.organization).await?;
    let now = services.clock.now();
    let added = services
        .annotations
        .add(
            actor.organization,
            *file,
            *execution,
            annotations,
            quota,
            now,
        )
        .await;
    let refusal = match added {
        Ok(()) => return show(services, actor.organization, annotations.clone()).await,
        Err(AddAnnotationsError::Port(error)) => {
            // They may have been recorded all the same: the masks stay.
            tracing::warn!(%file, %error, "masks were stored, but perhaps not recorded");
            return Err(error.into());
        }
        Err(AddAnnotationsError::UnknownExecution) => Error::not_found(Resource::Execution),
        Err(AddAnnotationsError::ExecutionClosed) => {
            Error::refused(AnnotationRefusal::ExecutionClosed)
        }
        Err(AddAnnotationsError::TooMany(count)) => {
            Error::refused(AnnotationRefusal::TooMany(count))
        }
        Err(AddAnnotationsError::InsufficientStorage(refusal)) => refusal.into(),
    };
    // Refused for certain, so nothing can refer to the objects any more.
    for annotation in annotations {
        remove(services, actor, annotation.object).await;
    }
    Err(refusal)
}

/// Checks the fields of the masks before any is decoded. Returns the labels.
fn check(
    file: FileId,
    image: PixelSize,
    annotations: &[NewAnnotation],
) -> Result<Vec<Label>, AnnotationRefusal> {
    let checked = annotations.iter().enumerate().map(|(index, annotation)| {
        if let Some(other) = annotation.file.filter(|other| *other != file) {
            return Err(AnnotationRefusal::OtherFile { index, file: other });
        }
        let is_other = |given: Option<u32>, side| given.is_some_and(|given| given != side);
        if is_other(annotation.width, image.width) || is_other(annotation.height, image.height) {
            return Err(AnnotationRefusal::Size { index, image });
        }
        Label::parse(&annotation.label).map_err(|reason| AnnotationRefusal::Label { index, reason })
    });
    checked.collect()
}

/// Stores the masks as objects; removes those that are stored if one cannot be.
async fn store(
    services: &Services,
    actor: &Actor,
    masks: &[DecodedMask],
) -> Result<(OngoingUpload, Vec<ObjectKey>), Error> {
    let objects: Vec<ObjectKey> = masks
        .iter()
        .map(|_| ObjectKey::new(services.ids.next_id()))
        .collect();
    let taken = || Error::Internal("masks have no new object".to_owned());
    let first = objects.first().copied().ok_or_else(taken)?;
    let upload = services.ongoing_uploads.begin(actor.organization, first);
    let upload = upload.ok_or_else(taken)?;
    let bytes = masks.iter().map(|mask| length(&mask.png)).sum();
    reserve(services, &upload, bytes).await?;
    let parts: Vec<(ObjectKey, Bytes)> = objects
        .iter()
        .zip(masks)
        .map(|(object, mask)| (*object, mask.png.clone()))
        .collect();
    let storing = stream::iter(parts).map(|(object, png)| async move {
        let body = stream::iter([Ok(png)]).boxed();
        let put = services
            .blobs
            .put_new(actor.organization, object, body, MAX_FILE_BYTES);
        put.await.map(|_| ()).map_err(not_stored)
    });
    let stored: Result<(), Error> = storing
        .buffer_unordered(CONCURRENT_MASKS)
        .try_collect()
        .await;
    if let Err(error) = stored {
        // Those that were stored have no record, and would take space until the sweep.
        for object in objects {
            remove(services, actor, object).await;
        }
        return Err(error);
    }
    Ok((upload, objects))
}

fn length(bytes: &Bytes) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}
