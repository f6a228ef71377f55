//! Bodies of deliveries.

use serde::Serialize;
use serde_json::{Error, to_string};
use time::OffsetDateTime;
use uuid::Uuid;

use super::{delivery::DeliverySubject, format::WebhookFormat};
use crate::{events::EventReferences, timestamp::render};

/// Body by Standard Webhooks 1.0.
#[derive(Serialize)]
struct Standard<'a> {
    r#type: &'a str,
    timestamp: String,
    data: Data,
}

/// Ids of the records that it refers to, as events have them.
#[derive(Default, Serialize)]
struct Data {
    #[serde(skip_serializing_if = "Option::is_none")]
    file_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    job_execution_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    table: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ml_model_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version_number: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    notification_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instrument_id: Option<Uuid>,
}

impl From<EventReferences> for Data {
    fn from(references: EventReferences) -> Self {
        // Without `..`: a new kind of record must not be forgotten here.
        let EventReferences {
            file,
            execution,
            table,
            model,
            version_number,
            notification,
            instrument,
        } = references;
        Self {
            file_id: file.map(Into::into),
            job_execution_id: execution.map(Into::into),
            table,
            ml_model_id: model.map(Into::into),
            version_number,
            notification_id: notification.map(Into::into),
            instrument_id: instrument.map(Into::into),
        }
    }
}

/// A message of Slack.
#[derive(Serialize)]
struct Slack {
    text: String,
}

/// A message of Teams' workflows: an adaptive card.
#[derive(Serialize)]
struct Teams {
    r#type: &'static str,
    attachments: [Attachment; 1],
}

#[derive(Serialize)]
struct Attachment {
    #[serde(rename = "contentType")]
    content_type: &'static str,
    content: Card,
}

#[derive(Serialize)]
struct Card {
    #[serde(rename = "$schema")]
    schema: &'static str,
    r#type: &'static str,
    version: &'static str,
    body: [TextBlock; 1],
}

#[derive(Serialize)]
struct TextBlock {
    r#type: &'static str,
    text: String,
    wrap: bool,
}

/// The body of a delivery: type, time and ids, nothing else.
///
/// # Errors
/// None that a text or an id can cause.
pub fn message(
    format: WebhookFormat,
    subject: &DeliverySubject,
    at: OffsetDateTime,
) -> Result<String, Error> {
    match format {
        WebhookFormat::Standard => to_string(&Standard {
            r#type: subject.as_str(),
            timestamp: render(at),
            data: subject.references().into(),
        }),
        WebhookFormat::Slack => to_string(&Slack {
            text: sentence(subject),
        }),
        WebhookFormat::Teams => to_string(&Teams {
            r#type: "message",
            attachments: [Attachment {
                content_type: "application/vnd.microsoft.card.adaptive",
                content: Card {
                    schema: "http://adaptivecards.io/schemas/adaptive-card.json",
                    r#type: "AdaptiveCard",
                    version: "1.4",
                    body: [TextBlock {
                        r#type: "TextBlock",
                        text: sentence(subject),
                        wrap: true,
                    }],
                },
            }],
        }),
    }
}

/// One line for people. Names of tables have letters, digits and `_` only, so nothing needs to be escaped.
fn sentence(subject: &DeliverySubject) -> String {
    let Data {
        file_id,
        job_execution_id,
        table,
        ml_model_id,
        version_number,
        notification_id,
        instrument_id,
    } = subject.references().into();
    let ids = [
        ("table", table),
        ("file", file_id.map(|id| id.to_string())),
        ("job execution", job_execution_id.map(|id| id.to_string())),
        ("model", ml_model_id.map(|id| id.to_string())),
        ("version", version_number.map(|number| number.to_string())),
        ("notification", notification_id.map(|id| id.to_string())),
        ("instrument", instrument_id.map(|id| id.to_string())),
    ];
    let named: Vec<String> = ids
        .into_iter()
        .filter_map(|(name, id)| id.map(|id| format!("{name} {id}")))
        .collect();
    let subject = subject.as_str();
    if named.is_empty() {
        format!("Lab data: {subject}")
    } else {
        format!("Lab data: {subject} ({})", named.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;
    use crate::{events::LoggedEventKind, ids::ExecutionId};

    fn written() -> DeliverySubject {
        DeliverySubject::Event(LoggedEventKind::DataWritten {
            execution: ExecutionId::new(Uuid::from_u128(7)),
            table: "sample".to_owned(),
        })
    }

    #[test]
    fn bodies_have_type_time_and_ids() {
        let at = datetime!(2026-11-26 08:00:00.25 UTC);
        let body = |format, subject| message(format, &subject, at).unwrap();
        assert_eq!(
            body(WebhookFormat::Standard, written()),
            r#"{"type":"data.written","timestamp":"2026-11-26T08:00:00.25Z","data":{"job_execution_id":"00000000-0000-0000-0000-000000000007","table":"sample"}}"#
        );
        assert_eq!(
            body(WebhookFormat::Standard, DeliverySubject::Test),
            r#"{"type":"webhook.test","timestamp":"2026-11-26T08:00:00.25Z","data":{}}"#
        );
        assert_eq!(
            body(WebhookFormat::Slack, written()),
            r#"{"text":"Lab data: data.written (table sample, job execution 00000000-0000-0000-0000-000000000007)"}"#
        );
        let teams = body(WebhookFormat::Teams, DeliverySubject::Test);
        assert!(
            teams.contains(r#""text":"Lab data: webhook.test","wrap":true"#),
            "{teams}"
        );
    }
}
