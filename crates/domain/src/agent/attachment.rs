//! Attachments of tool outputs: figures.

use std::{fmt, sync::Arc};

use super::text::{start, storable};
use crate::{files::ObjectKey, ids::ChatFileId};

/// Maximum number of attachments of one output.
pub const MAX_ATTACHMENTS: usize = 20;

/// Maximum number of bytes of one attachment.
pub const MAX_ATTACHMENT_BYTES: usize = 4 << 20;

/// Maximum number of bytes of an image that is part of a response, where no file has it.
pub const MAX_INLINE_IMAGE: u64 = 1 << 20;

/// Maximum number of bytes of an attachment's name.
const MAX_NAME_BYTES: usize = 100;

/// Type of an attachment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachmentType {
    /// A PNG image.
    Png,
    /// A Plotly figure: a JSON object with `data` and `layout`.
    Plotly,
}

impl AttachmentType {
    /// All types.
    pub const ALL: [Self; 2] = [Self::Png, Self::Plotly];

    /// Returns its media type.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Plotly => "application/vnd.plotly.v1+json",
        }
    }

    /// Returns the type of that media type.
    #[must_use]
    pub fn from_media_type(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|known| known.media_type() == name)
    }
}

/// A file that a tool made beside its text: for people, not for the model. It is stored with the chat, if
/// there is one, as the file of the same id.
#[derive(Clone, PartialEq, Eq)]
pub struct Attachment {
    /// Its id.
    pub id: ChatFileId,
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: AttachmentType,
    /// Its size in bytes.
    pub size: u64,
    /// Its content; `None` in a saved chat, whose files have it.
    pub content: Option<Arc<[u8]>>,
}

impl Attachment {
    /// An attachment that a tool has made.
    #[must_use]
    pub fn new(id: ChatFileId, name: &str, kind: AttachmentType, content: Vec<u8>) -> Self {
        Self {
            id,
            name: start(&storable(name), MAX_NAME_BYTES).to_owned(),
            kind,
            size: u64::try_from(content.len()).unwrap_or(u64::MAX),
            content: Some(content.into()),
        }
    }

    /// The object that has its content once it is stored.
    #[must_use]
    pub const fn object(&self) -> ObjectKey {
        ObjectKey::new(self.id.as_uuid())
    }
}

impl fmt::Debug for Attachment {
    /// Without the content.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attachment")
            .field("id", &self.id)
            .field("name", &self.name)
            .field("kind", &self.kind)
            .field("size", &self.size)
            // The content may have megabytes.
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn types_have_media_types_that_read_back() {
        for kind in AttachmentType::ALL {
            assert_eq!(
                AttachmentType::from_media_type(kind.media_type()),
                Some(kind)
            );
        }
        assert_eq!(AttachmentType::from_media_type("text/html"), None);
    }

    #[test]
    fn a_name_is_short_and_storable() {
        let id = ChatFileId::new(Uuid::nil());
        let name = format!("a\0{}", "ä".repeat(100));
        let attachment = Attachment::new(id, &name, AttachmentType::Png, vec![1, 2, 3]);
        assert_eq!(attachment.size, 3);
        assert!(attachment.name.starts_with("a\u{fffd}ä"));
        assert!(attachment.name.len() <= MAX_NAME_BYTES);
    }
}
