//! `/api/v1/notifications`

use labdata_domain::{
    ids::NotificationId,
    notifications::{Notification, Sender},
};
use labdata_request_body::{
    fields::required,
    readers::{MaybeId, id},
    shape,
};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::names;

use crate::http::Timestamp;

pub mod list;
pub mod mark;
pub mod preferences;
pub mod send;
pub mod unread_count;
pub mod unsubscribe;

names! {
    /// Kind of sender.
    pub NotificationSenderKind = Sender::KINDS;
}

/// Sender of a notification.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = NotificationSender)]
pub struct SenderView {
    /// Its kind.
    #[schema(value_type = NotificationSenderKind)]
    kind: &'static str,
    /// The key's name when it was sent, or the platform's.
    name: String,
    /// Null of the platform's own.
    api_key_id: Option<String>,
}

impl From<Sender> for SenderView {
    fn from(sender: Sender) -> Self {
        Self {
            kind: sender.kind(),
            name: sender.name().to_owned(),
            api_key_id: sender.api_key().map(|id| id.to_string()),
        }
    }
}

/// One row of the caller's inbox.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Notification)]
pub struct NotificationView {
    /// Its id.
    id: String,
    /// Its title, one line.
    title: String,
    /// May be empty.
    body: String,
    /// The path of the platform that it opens; may be empty.
    #[schema(example = "/jobs/0191d5a4-0000-7000-8000-000000000000")]
    action_url: String,
    /// The context that was stored with it.
    data: Option<Map<String, Value>>,
    sender: SenderView,
    /// The key that sent it; null of the platform's own.
    api_key_id: Option<String>,
    created_at: Timestamp,
    /// Null while it is unread.
    read_at: Option<Timestamp>,
}

impl From<Notification> for NotificationView {
    fn from(notification: Notification) -> Self {
        let sender = SenderView::from(notification.sender);
        Self {
            id: notification.id.to_string(),
            title: notification.title,
            body: notification.body,
            action_url: notification.action_url,
            data: notification.data,
            api_key_id: sender.api_key_id.clone(),
            sender,
            created_at: notification.created_at.into(),
            read_at: notification.read_at.map(Into::into),
        }
    }
}

shape! {
    /// The path of a notification.
    #[derive(Clone, Copy, Debug)]
    pub struct NotificationPath {
        /// The notification's id
        pub id: MaybeId<NotificationId> = required(id()),
    }
}
