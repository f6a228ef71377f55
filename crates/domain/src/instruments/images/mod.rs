//! Images: their sizes, and annotations, which are masks with a label.

mod annotation;
mod header;
mod mask;
mod refusal;

pub use annotation::{
    Annotation, AnnotationChange, InvalidLabel, Label, MAX_ANNOTATIONS, MAX_ANNOTATIONS_OF_IMAGE,
    MAX_DATASET_IMAGES, MAX_LABEL_LENGTH, MAX_MASKS_BYTES,
};
pub use header::{ImageHeader, MAX_PIXELS, MAX_SIDE, PixelSize, Probe};
pub use mask::{Bitmap, BoundingBox, InvalidMask, MaskScan, MaskShape, PixelLayout};
pub use refusal::AnnotationRefusal;
