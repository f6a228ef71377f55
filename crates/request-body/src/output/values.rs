//! Schemas of plain values.

use std::collections::BTreeMap;

use labdata_domain::ids::{
    AgentRunId, AnnotationId, ApiKeyId, AuditEntryId, ChatFileId, ChatId, DatasetId, DeliveryId,
    EventId, ExecutionId, FileId, GroupId, InstrumentId, InvitationId, JobId, ModelId,
    ModelVersionId, NotificationId, OrganizationId, SavedViewId, SqlLoginId, TrashId, TriggerId,
    UserId, WebhookId,
};
use labdata_domain::refusal::ErrorCode;
use serde_json::{Map, Number, Value, json, value::RawValue};

use super::Output;
use crate::schema::{Definitions, Schema};

/// Describes types without parameters.
macro_rules! describe {
    ($($($type:ty),+ => $schema:expr;)+) => {$($(
        impl Output for $type {
            fn schema(_: &mut Definitions) -> Schema {
                $schema
            }
        }
    )+)+};
}

fn integer(format: &str) -> Schema {
    Schema::of("integer").with("format", format)
}

describe! {
    String, &'static str => Schema::of("string");
    AgentRunId, AnnotationId, ApiKeyId, AuditEntryId, ChatFileId, ChatId, DatasetId, DeliveryId, EventId, ExecutionId, FileId, GroupId, InstrumentId, InvitationId, JobId,
    ModelId, ModelVersionId, NotificationId, OrganizationId, SavedViewId, SqlLoginId, TrashId, TriggerId, UserId, WebhookId => Schema::of("string");
    bool => Schema::of("boolean");
    i32 => integer("int32");
    i64 => integer("int64");
    u32 => integer("int32").with("minimum", 0);
    u64 => integer("int64").with("minimum", 0);
    usize => Schema::of("integer").with("minimum", 0);
    f64, Number => Schema::of("number").with("format", "double");
    Value, Box<RawValue> => Schema::default();
    Map<String, Value> => Schema::of("object")
        .with("additionalProperties", json!({}))
        .with("propertyNames", json!({"type": "string"}));
}

impl Output for ErrorCode {
    fn schema(definitions: &mut Definitions) -> Schema {
        let description =
            "Stable word that says why a request failed. Messages may change, codes do not.";
        definitions.define("ErrorCode", |_| {
            let words: Vec<&str> = Self::ALL.iter().map(|code| code.as_str()).collect();
            Schema::of("string")
                .with("enum", words)
                .described(description)
        })
    }
}

impl<T: Output> Output for Option<T> {
    fn schema(definitions: &mut Definitions) -> Schema {
        T::schema(definitions).or_null()
    }
}

impl<T: Output> Output for Vec<T> {
    fn schema(definitions: &mut Definitions) -> Schema {
        Schema::of("array").with("items", T::schema(definitions))
    }
}

impl<T: Output> Output for BTreeMap<String, T> {
    fn schema(definitions: &mut Definitions) -> Schema {
        Schema::of("object")
            .with("additionalProperties", T::schema(definitions))
            .with("propertyNames", json!({"type": "string"}))
    }
}
