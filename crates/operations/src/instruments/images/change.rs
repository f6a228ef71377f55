//! `PATCH /api/v1/images/{file_id}/annotations/{annotation_id}`

use labdata_application::{
    Error,
    instruments::images::change_annotation::{ChangeAnnotation, change_annotation},
};
use labdata_domain::{instruments::images::MAX_LABEL_LENGTH, refusal::Resource};
use labdata_request_body::{
    fields::optional,
    readers::{boolean, text},
    shape,
};
use serde_json::json;

use super::{AnnotationPath, AnnotationView};
use crate::{About, Call, JsonBody, Method, Operation, OrNotFound, Tag, Write};

shape! {
    /// Changes of an annotation; fields that are left out or null stay as they are.
    #[derive(Clone, Debug)]
    pub struct ChangeAnnotationBody {
        /// Name of what the mask covers.
        label: Option<String> = optional(text(1..=MAX_LABEL_LENGTH)),
        /// True once a person has checked the mask.
        is_human_vetted: Option<bool> = optional(boolean()),
    }
    example json!({"is_human_vetted": true});
}

pub(super) fn operation() -> Operation {
    About {
        name: "change_annotation",
        method: Method::Patch,
        path: "/api/v1/images/{file_id}/annotations/{annotation_id}",
        tag: Tag::Images,
        summary: "Changes the label of an annotation, or vets it",
        description: "The mask stays as it is: a corrected one is another annotation.",
        returns: "The annotation",
        refusals: &[(400, "The label is not accepted")],
    }
    .runs(run)
}

async fn run(
    call: Call<Write, JsonBody<ChangeAnnotationBody>, (), AnnotationPath>,
) -> Result<AnnotationView, Error> {
    let file = call.path.file_id.or_not_found(Resource::File)?;
    let id = call.path.annotation_id.or_not_found(Resource::Annotation)?;
    let command = ChangeAnnotation {
        label: call.body.label,
        is_human_vetted: call.body.is_human_vetted,
    };
    let changed = change_annotation(&call.services, &call.actor, file, id, command).await?;
    Ok(AnnotationView::reached(changed, &call.base_url))
}
