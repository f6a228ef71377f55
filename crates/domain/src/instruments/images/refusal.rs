//! Refusals of annotations.

use super::{
    annotation::{InvalidLabel, MAX_ANNOTATIONS_OF_IMAGE, MAX_DATASET_IMAGES},
    header::{MAX_PIXELS, MAX_SIDE, PixelSize},
    mask::InvalidMask,
};
use crate::{
    ids::FileId,
    refusal::{ErrorCode, Refuse},
};

/// Why annotations are not saved, or not found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnnotationRefusal {
    /// The file is no image whose size is known.
    #[error("the file is no image: PNG, JPEG, TIFF, GIF, BMP and WebP are images")]
    NotAnImage,
    /// The image has too many pixels.
    #[error(
        "the image has {0} pixels; annotations are for images of at most {MAX_PIXELS} pixels and {MAX_SIDE} on \
         each side"
    )]
    TooManyPixels(PixelSize),
    /// A mask is not accepted.
    #[error("annotations[{index}]: {reason}")]
    Mask {
        /// Index of the annotation.
        index: usize,
        /// Why.
        reason: InvalidMask,
    },
    /// A label is not accepted.
    #[error("annotations[{index}].label: {reason}")]
    Label {
        /// Index of the annotation.
        index: usize,
        /// Why.
        reason: InvalidLabel,
    },
    /// The size that is given is not that of the image.
    #[error("annotations[{index}]: width and height are those of the image, {image}")]
    Size {
        /// Index of the annotation.
        index: usize,
        /// Size of the image.
        image: PixelSize,
    },
    /// An annotation names another file.
    #[error("annotations[{index}].file_id is {file}, which is another file than that of the path")]
    OtherFile {
        /// Index of the annotation.
        index: usize,
        /// The file that it names.
        file: FileId,
    },
    /// The image would have too many annotations.
    #[error("an image has at most {MAX_ANNOTATIONS_OF_IMAGE} annotations; this one has {0}")]
    TooMany(u64),
    /// The execution has ended.
    #[error("this job execution is closed and accepts no more annotations")]
    ExecutionClosed,
    /// A changed label is not accepted.
    #[error(transparent)]
    ChangedLabel(#[from] InvalidLabel),
    /// No image has a vetted mask of the label.
    #[error("no image has a mask of the label \"{0}\" that a person has vetted")]
    NothingVetted(String),
    /// Too many images have one.
    #[error(
        "more than {MAX_DATASET_IMAGES} images have vetted masks of the label; that is the most of a dataset"
    )]
    TooManyImages,
}

impl Refuse for AnnotationRefusal {
    fn code(&self) -> ErrorCode {
        match self {
            Self::NotAnImage | Self::TooManyPixels(_) => ErrorCode::NotAnImage,
            Self::ExecutionClosed => ErrorCode::ExecutionClosed,
            Self::NothingVetted(_) | Self::TooManyImages => ErrorCode::InvalidDataset,
            _ => ErrorCode::InvalidAnnotation,
        }
    }
}
