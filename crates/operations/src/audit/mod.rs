//! `/api/v1/audit`

use labdata_domain::{
    audit::{AuditAction, AuditEntry, AuditTarget, AuditTargetKind},
    ids::AuditEntryId,
};
use labdata_request_body::{Timestamp, names, output};
use serde_json::{Map, Value, json};

use crate::{
    Operation,
    executions::author::{NamedKeyView, NamedUserView},
};

pub mod list;

names! {
    /// An action that the audit log records.
    pub AuditActionName = AuditAction::NAMES;
    /// Kind of what an action was done to.
    pub AuditTargetKindName = AuditTargetKind::NAMES;
}

output! {
    /// Target of an action, as it was named then.
    #[derive(Clone, Debug)]
    pub struct AuditTargetView as "AuditTarget" from target: AuditTarget {
        /// Its kind.
        kind: AuditTargetKindName = target.kind.as_str().into(),
        /// Its id; null if it has none.
        id: Option<String> = target.id,
        /// Its name; null if it has none.
        #[example = "sample"]
        name: Option<String> = target.name,
    }
}

output! {
    /// An entry of the audit log. Entries are neither changed nor deleted.
    #[derive(Clone, Debug)]
    pub struct AuditEntryView as "AuditEntry" from entry: AuditEntry {
        /// Its id.
        id: AuditEntryId = entry.id,
        /// When it happened: later than the entry before.
        at: Timestamp = entry.at.into(),
        /// The action.
        action: AuditActionName = entry.action.as_str().into(),
        /// The user who acted; null for the platform's operator, and for a refused sign-in.
        user: Option<NamedUserView> = entry.user.map(Into::into),
        /// The key that was presented; null without one.
        api_key: Option<NamedKeyView> = entry.api_key.map(Into::into),
        /// Target of the action.
        target: AuditTargetView = entry.target.into(),
        /// Further details, by the action.
        #[example = json!({"force": true})]
        details: Map<String, Value> = entry.details,
        /// The hash of the entry before; null for the first one.
        previous_hash: Option<String> = entry.previous_hash.map(|hash| hash.to_string()),
        /// SHA-256 over the canonical JSON (RFC 8785) of the entry without this field.
        hash: String = entry.hash.to_string(),
    }
}

pub(super) fn operations() -> Vec<Operation> {
    vec![list::operation()]
}
