//! Annotations of images.

use std::fmt;

use time::OffsetDateTime;

use super::mask::MaskShape;
use crate::{
    files::ObjectKey,
    ids::{AnnotationId, ExecutionId, FileId, UserId},
    names::RecordName,
};

/// Maximum number of annotations in one request.
pub const MAX_ANNOTATIONS: usize = 500;

/// Maximum number of annotations of one image.
pub const MAX_ANNOTATIONS_OF_IMAGE: u64 = 5_000;

/// Maximum number of bytes of the body of a request with masks.
pub const MAX_MASKS_BYTES: usize = 64 << 20;

/// Maximum number of characters of a label.
pub const MAX_LABEL_LENGTH: usize = 200;

/// Maximum number of images of a dataset of annotations.
pub const MAX_DATASET_IMAGES: usize = 2_000;

/// Error: a label is blank, too long, or has control characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a label has 1 to {MAX_LABEL_LENGTH} characters, without control characters")]
pub struct InvalidLabel;

/// Name of what a mask covers. A label exists once a mask bears it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label(String);

impl Label {
    /// Parses a label. Blanks around it do not belong to it, and it is stored in Unicode's composed form.
    ///
    /// # Errors
    /// [`InvalidLabel`].
    pub fn parse(text: &str) -> Result<Self, InvalidLabel> {
        let label = RecordName::parse_up_to(text, MAX_LABEL_LENGTH);
        Ok(Self(label.ok_or(InvalidLabel)?.into()))
    }

    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A mask of an image, with a label. Its PNG is an object of the storage.
#[derive(Clone, Debug, PartialEq)]
pub struct Annotation {
    /// Its id.
    pub id: AnnotationId,
    /// The image.
    pub file: FileId,
    /// The execution under which it was saved; it goes with the revert of that.
    pub execution: Option<ExecutionId>,
    /// Name of what it covers.
    pub label: Label,
    /// Object of the PNG.
    pub object: ObjectKey,
    /// Bytes of the PNG.
    pub size_bytes: u64,
    /// Size of the image, and the part of it that the mask covers.
    pub shape: MaskShape,
    /// True once a person has checked it.
    pub is_human_vetted: bool,
    /// The user who saved it.
    pub created_by: UserId,
    /// Time at which it was saved.
    pub created_at: OffsetDateTime,
}

/// Change of an annotation. Fields that are `None` stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnnotationChange {
    /// Name of what it covers.
    pub label: Option<Label>,
    /// True once a person has checked it.
    pub is_human_vetted: Option<bool>,
}

impl AnnotationChange {
    /// The annotation as it is after the change.
    #[must_use]
    pub fn apply(&self, annotation: Annotation) -> Annotation {
        Annotation {
            label: self.label.clone().unwrap_or(annotation.label),
            is_human_vetted: self.is_human_vetted.unwrap_or(annotation.is_human_vetted),
            ..annotation
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_a_line_that_is_not_blank() {
        assert_eq!(Label::parse(" cell ").unwrap().as_str(), "cell");
        assert_eq!(Label::parse("Ro\u{308}hre").unwrap().as_str(), "Röhre");
        let longest = "ü".repeat(MAX_LABEL_LENGTH);
        assert_eq!(Label::parse(&longest).unwrap().to_string(), longest);
        for text in ["", "  ", "a\nb", &format!("{longest}x")] {
            assert_eq!(Label::parse(text), Err(InvalidLabel), "{text}");
        }
    }
}
