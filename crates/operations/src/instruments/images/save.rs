//! `POST /api/v1/images/{file_id}/annotations`

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use labdata_application::{
    Error,
    instruments::images::save_annotations::{
        NewAnnotation, SaveAnnotations, StoredMasks, record_masks, store_masks,
    },
    slots::Work,
};
use labdata_domain::{
    ids::{ExecutionId, FileId},
    instruments::images::{MAX_ANNOTATIONS, MAX_LABEL_LENGTH, MAX_MASKS_BYTES, MAX_SIDE},
    refusal::Resource,
};
use labdata_request_body::{
    Definitions, FieldPath, ProblemKind, Property, Reader as _,
    fields::{optional, or, required},
    json,
    readers::{MaybeId, boolean, id, list, shape, text, unsigned},
    shape,
};
use serde_json::{Value, json};

use super::{AnnotationView, ImagePath};
use crate::{
    About, Body, BodyDescription, BodyKind, Call, DescribeBody, JsonBody, Method, Operation,
    OrNotFound, Tag, Write,
};

/// PNG of one white pixel.
const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAAC0lEQVR42mP4DwQACfsD/Wj6HMwAAAAASUVORK5CYII=";

/// Maximum number of values in a body. Each takes some hundred bytes in memory, so that bodies of this length may not
/// consist of short ones.
const MAX_VALUES: usize = 40 * MAX_ANNOTATIONS;

shape! {
    /// A mask to save.
    #[derive(Clone, Debug)]
    pub struct NewAnnotationBody {
        /// PNG of the image's size in base64: white where the label is, transparent elsewhere.
        mask: String = required(text(1..).example(PIXEL)),
        /// Name of what the mask covers. A label is made at its first use.
        label: String = required(text(1..=MAX_LABEL_LENGTH).example("cell")),
        /// Width of the image, which is checked if it is given.
        width: Option<u32> = optional(unsigned(1..=MAX_SIDE)),
        /// Height of the image, which is checked if it is given.
        height: Option<u32> = optional(unsigned(1..=MAX_SIDE)),
        /// True if a person has checked it. Datasets are made of such masks.
        is_human_vetted: bool = or(false, boolean()),
        /// The image, as in the path; predictions name it.
        file_id: Option<MaybeId<FileId>> = optional(id()),
    }
}

shape! {
    /// Masks to save.
    #[derive(Clone, Debug)]
    pub struct SaveAnnotationsBody {
        /// The masks, in the order of the response.
        annotations: Vec<NewAnnotationBody> =
            required(list(shape::<NewAnnotationBody>()).of(1..=MAX_ANNOTATIONS)),
        /// The execution to save them under, which takes them along when it is reverted.
        job_execution_id: Option<MaybeId<ExecutionId>> = optional(id()),
    }
    example json!({"annotations": [{"mask": PIXEL, "label": "cell", "is_human_vetted": true}]});
}

/// A body with masks, which may be long, but has few values.
#[derive(Debug)]
pub enum MasksBody {}

/// Masks that were received. The preparation takes them, so that they are not copied.
#[derive(Debug)]
pub struct ReceivedMasks(Mutex<Option<SaveAnnotationsBody>>);

impl MasksBody {
    fn is_small(received: &Bytes) -> bool {
        // Base64 has none of these bytes.
        let values = received.iter().filter(|byte| b",[{".contains(byte));
        values.take(MAX_VALUES + 1).count() <= MAX_VALUES
    }
}

impl Body for MasksBody {
    type Value = ReceivedMasks;
    const KIND: BodyKind = BodyKind::Json;

    fn read(received: &Bytes, at: &FieldPath<'_>) -> Option<ReceivedMasks> {
        if !Self::is_small(received) {
            let text = format!("the body has more than {MAX_VALUES} values");
            return at.refuse(ProblemKind::value_error(&text));
        }
        let body = json::read(received, at)?;
        Some(ReceivedMasks(Mutex::new(Some(body))))
    }

    fn document(received: &Bytes) -> Value {
        if Self::is_small(received) {
            json::document(received)
        } else {
            Value::Null
        }
    }

    fn fields(definitions: &mut Definitions) -> Vec<Property> {
        JsonBody::<SaveAnnotationsBody>::fields(definitions)
    }
}

impl DescribeBody for MasksBody {
    fn describe(definitions: &mut Definitions) -> Option<BodyDescription> {
        JsonBody::<SaveAnnotationsBody>::describe(definitions)
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "save_annotations",
        method: Method::Post,
        path: "/api/v1/images/{file_id}/annotations",
        tag: Tag::Images,
        summary: "Saves annotations of an image",
        description: "Adds masks to those that the image has: all of them, or none. A mask is a PNG of the \
            image's size, white where the label is and transparent elsewhere; pixels count from half \
            opacity. What a segmentation predicts can be sent as it is. Images have at most 100,000,000 \
            pixels; PNG, JPEG, TIFF, GIF, BMP and WebP files are images. At most 500 masks and 64 MiB in \
            one request.",
        returns: "The annotations, in the order of the request",
        refusals: &[
            (
                400,
                "The file is no image, or a mask or a label is not accepted: the detail says which, and \
                 nothing is saved; or the execution is closed",
            ),
            (503, "Too many masks are being saved"),
            (507, "The disk is full, or the quota of the organization; nothing was saved"),
        ],
    }
    .runs_after(store, run)
    .creating()
    .with_body_of(MAX_MASKS_BYTES, Work::MaskBody)
}

type SaveCall = Call<Write, MasksBody, (), ImagePath>;

/// Decodes and stores the masks, which may take seconds.
fn store(call: &SaveCall) -> impl Future<Output = Result<StoredMasks, Error>> + Send + use<> {
    let (services, actor) = (Arc::clone(&call.services), call.actor.clone());
    let command = command(call);
    async move { store_masks(&services, &actor, command?).await }
}

fn command(call: &SaveCall) -> Result<SaveAnnotations, Error> {
    let file = call.path.file_id.or_not_found(Resource::File)?;
    // Moved out of the shared call, because a copy of the masks could take many megabytes.
    let mut received = call.body.0.lock().unwrap_or_else(PoisonError::into_inner);
    let taken = || Error::Internal("the masks were taken twice".to_owned());
    let body = received.take().ok_or_else(taken)?;
    let execution = body.job_execution_id;
    let execution = execution.map(|id| id.or_not_found(Resource::Execution));
    let annotations = body.annotations.into_iter().map(|annotation| {
        let named = annotation.file_id.map(|id| id.or_not_found(Resource::File));
        Ok(NewAnnotation {
            mask: annotation.mask,
            label: annotation.label,
            width: annotation.width,
            height: annotation.height,
            is_human_vetted: annotation.is_human_vetted,
            file: named.transpose()?,
        })
    });
    Ok(SaveAnnotations {
        file,
        execution: execution.transpose()?,
        annotations: annotations.collect::<Result<_, Error>>()?,
    })
}

async fn run(
    call: SaveCall,
    stored: Result<StoredMasks, Error>,
) -> Result<Vec<AnnotationView>, Error> {
    let saved = record_masks(&call.services, &call.actor, stored?).await?;
    let view = |annotation| AnnotationView::reached(annotation, &call.base_url);
    Ok(saved.into_iter().map(view).collect())
}
