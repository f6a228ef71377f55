//! `/api/v1/notifications`

use labdata_domain::{
    ids::{ApiKeyId, NotificationId},
    notifications::{Notification, Sender},
};
use labdata_request_body::{
    Timestamp,
    fields::required,
    names, output,
    readers::{MaybeId, id},
    shape,
};
use serde_json::{Map, Value};

use crate::Operation;

pub mod list;
pub mod mark;
pub mod preferences;
pub mod send;
pub mod unread_count;

names! {
    /// Kind of sender.
    pub NotificationSenderKind = Sender::KINDS;
}

output! {
    /// Sender of a notification.
    #[derive(Clone, Debug)]
    pub struct SenderView as "NotificationSender" from sender: Sender {
        /// Its kind.
        kind: NotificationSenderKind = sender.kind().into(),
        /// The key's name when it was sent, or the platform's.
        name: String = sender.name().to_owned(),
        /// Null of the platform's own.
        api_key_id: Option<ApiKeyId> = sender.api_key(),
    }
}

output! {
    /// One row of the caller's inbox.
    #[derive(Clone, Debug)]
    pub struct NotificationView as "Notification" from notification: Notification {
        /// Its id.
        id: NotificationId = notification.id,
        /// Its title, one line.
        title: String = notification.title,
        /// May be empty.
        body: String = notification.body,
        /// The path of the platform that it opens; may be empty.
        #[example = "/jobs/0191d5a4-0000-7000-8000-000000000000"]
        action_url: String = notification.action_url,
        /// The context that was stored with it.
        data: Option<Map<String, Value>> = notification.data,
        /// The key that sent it; null of the platform's own.
        api_key_id: Option<ApiKeyId> = notification.sender.api_key(),
        sender: SenderView = notification.sender.into(),
        created_at: Timestamp = notification.created_at.into(),
        /// Null while it is unread.
        read_at: Option<Timestamp> = notification.read_at.map(Into::into),
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

pub(crate) fn operations() -> Vec<Operation> {
    let mut operations = vec![
        send::operation(),
        list::operation(),
        unread_count::operation(),
        mark::operation(),
    ];
    operations.extend(preferences::operations());
    operations
}
