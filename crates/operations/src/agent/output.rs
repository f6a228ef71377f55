//! Outputs of tools, with their figures.

use base64::{Engine, engine::general_purpose::STANDARD};
use labdata_domain::{
    agent::{Attachment, AttachmentType, MAX_INLINE_IMAGE, ToolOutput},
    ids::ChatId,
};
use serde::Serialize;
use serde_json::{
    Map, Value,
    value::{RawValue, to_raw_value},
};

/// Field of an output that lists figures.
const FIGURES: &str = "figures";

/// Figure of an output. In a saved chat it is a file; a Plotly figure is also part of the response while the
/// run is in progress, and an image if it is small and there is no file.
#[derive(Serialize)]
struct FigureView<'a> {
    name: &'a str,
    media_type: &'static str,
    size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    figure: Option<Box<RawValue>>,
}

impl<'a> FigureView<'a> {
    fn of(attachment: &'a Attachment, chat: Option<ChatId>) -> Self {
        let content = attachment.content.as_deref();
        let is_inline = chat.is_none() && attachment.size <= MAX_INLINE_IMAGE;
        let (base64, figure) = match attachment.kind {
            AttachmentType::Png => {
                let image = content.filter(|_| is_inline);
                (image.map(|image| STANDARD.encode(image)), None)
            }
            AttachmentType::Plotly => {
                let text = content.and_then(|json| String::from_utf8(json.to_vec()).ok());
                (None, text.and_then(|text| RawValue::from_string(text).ok()))
            }
        };
        let id = attachment.id;
        Self {
            name: &attachment.name,
            media_type: attachment.kind.media_type(),
            size: attachment.size,
            file_id: chat.map(|_| id.to_string()),
            url: chat.map(|chat| format!("/api/v1/agent/chats/{chat}/files/{id}")),
            base64,
            figure,
        }
    }
}

/// The output of a call in that chat: JSON where it is JSON and complete, else a text.
pub(super) fn output_json(output: &ToolOutput, chat: Option<ChatId>) -> Box<RawValue> {
    let json = if output.attachments.is_empty() {
        RawValue::from_string(output.text.clone())
    } else {
        with_figures(output, chat)
    };
    json.or_else(|_| to_raw_value(&output.text))
        .unwrap_or_else(|_| RawValue::NULL.to_owned())
}

fn with_figures(
    output: &ToolOutput,
    chat: Option<ChatId>,
) -> Result<Box<RawValue>, serde_json::Error> {
    #[derive(Serialize)]
    struct Output<'a> {
        #[serde(flatten)]
        fields: Map<String, Value>,
        figures: Vec<FigureView<'a>>,
    }
    let mut fields: Map<String, Value> = serde_json::from_str(&output.text)?;
    fields.remove(FIGURES);
    let figures = output.attachments.iter();
    to_raw_value(&Output {
        fields,
        figures: figures.map(|figure| FigureView::of(figure, chat)).collect(),
    })
}
