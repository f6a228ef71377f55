//! Rows of notifications.

use diesel::prelude::*;
use labdata_domain::{
    ids::{ApiKeyId, NotificationId},
    notifications::{Notification, Sender},
};
use labdata_ports::PortError;
use serde_json::Value;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{database::errors::corrupt, schema::notification};

#[derive(Queryable, QueryableByName, Selectable)]
#[diesel(table_name = notification)]
pub(crate) struct NotificationRow {
    id: Uuid,
    title: String,
    body: String,
    action_url: String,
    data: Option<Value>,
    sender_kind: String,
    sender_name: String,
    api_key_id: Option<Uuid>,
    created_at: OffsetDateTime,
    read_at: Option<OffsetDateTime>,
}

impl TryFrom<NotificationRow> for Notification {
    type Error = PortError;

    fn try_from(row: NotificationRow) -> Result<Self, PortError> {
        let corrupt = |column| corrupt("notification", column, row.id);
        Ok(Self {
            id: NotificationId::new(row.id),
            sender: match (row.sender_kind.as_str(), row.api_key_id) {
                ("api_key", Some(id)) => Sender::ApiKey {
                    id: ApiKeyId::new(id),
                    name: row.sender_name,
                },
                ("platform", None) => Sender::Platform,
                _ => return Err(corrupt("sender_kind")),
            },
            data: match row.data {
                None => None,
                Some(Value::Object(data)) => Some(data),
                Some(_) => return Err(corrupt("data")),
            },
            title: row.title,
            body: row.body,
            action_url: row.action_url,
            created_at: row.created_at,
            read_at: row.read_at,
        })
    }
}
