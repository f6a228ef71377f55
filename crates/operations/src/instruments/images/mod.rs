//! `/api/v1/images`

use labdata_application::instruments::images::AnnotationDetails;
use labdata_domain::{
    ids::{AnnotationId, FileId, UserId},
    instruments::images::BoundingBox,
};
use labdata_request_body::{
    fields::required,
    output,
    readers::{MaybeId, id},
    shape,
};

use crate::{BaseUrl, Operation};

pub mod change;
pub mod delete;
pub mod list;
pub mod save;

pub(crate) fn operations() -> Vec<Operation> {
    vec![
        list::operation(),
        save::operation(),
        change::operation(),
        delete::operation(),
    ]
}

shape! {
    /// The path of an image.
    #[derive(Clone, Copy, Debug)]
    pub struct ImagePath {
        /// The file's id
        file_id: MaybeId<FileId> = required(id()),
    }
}

shape! {
    /// The path of an annotation.
    #[derive(Clone, Copy, Debug)]
    pub struct AnnotationPath {
        /// The file's id
        file_id: MaybeId<FileId> = required(id()),
        /// The annotation's id
        annotation_id: MaybeId<AnnotationId> = required(id()),
    }
}

output! {
    /// Smallest rectangle around a mask, in pixels from the upper left corner.
    #[derive(Clone, Debug)]
    pub struct BoundingBoxView as "BoundingBox" from bounds: BoundingBox {
        /// Pixels to the left of it.
        x: u32 = bounds.x,
        /// Pixels above it.
        y: u32 = bounds.y,
        /// Its width.
        width: u32 = bounds.width,
        /// Its height.
        height: u32 = bounds.height,
    }
}

output! {
    /// A user as others see one.
    #[derive(Clone, Debug)]
    pub struct AnnotatorView as "Annotator" {
        /// The user's id.
        id: UserId,
        /// The user's name.
        name: String,
        /// URL of a picture; null, as users have none.
        image_url: Option<String>,
    }
}

output! {
    /// An annotation: a mask of an image, with a label.
    #[derive(Clone, Debug)]
    pub struct AnnotationView as "Annotation" from details: AnnotationDetails {
        /// Its id.
        id: AnnotationId = details.annotation.id,
        /// Name of what the mask covers.
        label: String = details.annotation.label.to_string(),
        /// URL of the mask, a PNG that is white on transparent, valid for 15 minutes without a key.
        mask_url: String = details.mask_url,
        /// Width of the image.
        width: u32 = details.annotation.shape.size.width,
        /// Height of the image.
        height: u32 = details.annotation.shape.size.height,
        /// True if a person has checked it.
        is_human_vetted: bool = details.annotation.is_human_vetted,
        /// Share of the image that the mask covers, above 0 and at most 1.
        foreground_fraction: f64 = details.annotation.shape.foreground_fraction(),
        /// Smallest rectangle around the mask.
        bbox: BoundingBoxView = details.annotation.shape.bounds.into(),
        /// The user who saved it.
        user: AnnotatorView = AnnotatorView {
            id: details.annotation.created_by,
            name: details.user_name,
            image_url: None,
        },
    }
}

impl AnnotationView {
    /// The annotation, with the host that the caller reached in the URL.
    fn reached(details: AnnotationDetails, base_url: &BaseUrl) -> Self {
        let mut view = Self::from(details);
        view.mask_url = base_url.localize(view.mask_url);
        view
    }
}
