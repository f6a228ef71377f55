//! `GET /api/v1/agent/chats/{chat_id}/files/{file_id}`

use labdata_domain::{
    agent::AttachmentType,
    ids::{ChatFileId, ChatId},
};
use labdata_request_body::{
    Definitions, Schema,
    fields::required,
    readers::{MaybeId, id},
    shape,
};

use crate::{About, Describe, Method, NoBody, Operation, Read, Tag, form::binary};

shape! {
    /// The path of a file of a chat.
    #[derive(Clone, Copy, Debug)]
    pub struct ChatFilePath {
        /// The chat's id
        pub chat_id: MaybeId<ChatId> = required(id()),
        /// The file's id
        pub file_id: MaybeId<ChatFileId> = required(id()),
    }
}

/// A figure.
#[derive(Debug)]
pub enum Figure {}

impl Describe for Figure {
    fn content(_: &mut Definitions) -> Vec<(&'static str, Schema)> {
        vec![
            (AttachmentType::Png.media_type(), binary()),
            (AttachmentType::Plotly.media_type(), Schema::default()),
        ]
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "get_agent_chat_file",
        method: Method::Get,
        path: "/api/v1/agent/chats/{chat_id}/files/{file_id}",
        tag: Tag::Agent,
        summary: "Reads a figure of one of the caller's chats",
        description: "A PNG image, or a Plotly figure as JSON. The outputs of tools name it.",
        returns: "The figure",
        refusals: &[],
    }
    .served_by_hand::<Read, NoBody, (), ChatFilePath, Figure>()
}
