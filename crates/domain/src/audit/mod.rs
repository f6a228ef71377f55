//! The audit log: who did what to an organization's records, as a chain that shows any change.

mod action;
mod canonical;

use std::fmt;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use time::{Duration, OffsetDateTime};

pub use action::{AuditAction, AuditTargetKind};

use crate::{
    ids::{ApiKeyId, AuditEntryId, UserId},
    people::author::{NamedKey, NamedUser},
    timestamp,
};

/// Target of an action, by its name at that time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditTarget {
    /// Its kind.
    pub kind: AuditTargetKind,
    /// Its id, if it has one.
    pub id: Option<String>,
    /// Its name, if it has one.
    pub name: Option<String>,
}

impl AuditTarget {
    /// A target with an id and a name.
    pub fn new(kind: AuditTargetKind, id: impl fmt::Display, name: impl Into<String>) -> Self {
        Self {
            kind,
            id: Some(id.to_string()),
            name: Some(name.into()),
        }
    }

    /// A target that its name identifies.
    pub fn named(kind: AuditTargetKind, name: impl Into<String>) -> Self {
        Self {
            kind,
            id: None,
            name: Some(name.into()),
        }
    }
}

/// An entry before it takes its place in the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewAuditEntry {
    /// Its id.
    pub id: AuditEntryId,
    /// When it happened.
    pub at: OffsetDateTime,
    /// Action.
    pub action: AuditAction,
    /// Author; `None` for the platform's operator.
    pub user: Option<UserId>,
    /// The key that was presented.
    pub api_key: Option<ApiKeyId>,
    /// Target.
    pub target: AuditTarget,
    /// Further facts: texts, booleans, integers of at most 53 bits, and lists of these.
    pub details: Map<String, Value>,
}

impl NewAuditEntry {
    /// The entry behind `previous`, which is `None` for the first of an organization. User and key are
    /// named as they are called at this time.
    #[must_use]
    pub fn chained(
        self,
        previous: Option<&ChainEnd>,
        user: Option<NamedUser>,
        api_key: Option<NamedKey>,
    ) -> AuditEntry {
        let at = timestamp::to_micros(self.at);
        let mut entry = AuditEntry {
            id: self.id,
            // The order in time is that of the chain, though the clocks of several servers differ.
            at: previous.map_or(at, |end| at.max(end.at + Duration::MICROSECOND)),
            action: self.action,
            user,
            api_key,
            target: self.target,
            details: self.details,
            previous_hash: previous.map(|end| end.hash),
            hash: AuditHash([0; 32]),
        };
        entry.hash = entry.computed_hash();
        entry
    }
}

/// SHA-256 of an entry. Its `Display` is hexadecimal, in lower case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditHash(pub [u8; 32]);

impl fmt::Display for AuditHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&base16ct::lower::encode_string(&self.0))
    }
}

/// The last entry of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainEnd {
    /// Its time.
    pub at: OffsetDateTime,
    /// Its hash.
    pub hash: AuditHash,
}

/// An entry of the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// Its id.
    pub id: AuditEntryId,
    /// When it happened: later than the entry before.
    pub at: OffsetDateTime,
    /// Action.
    pub action: AuditAction,
    /// Author; `None` for the platform's operator.
    pub user: Option<NamedUser>,
    /// The key that was presented.
    pub api_key: Option<NamedKey>,
    /// Target.
    pub target: AuditTarget,
    /// Further facts.
    pub details: Map<String, Value>,
    /// Hash of the entry before; `None` for the first of the organization.
    pub previous_hash: Option<AuditHash>,
    /// SHA-256 over the canonical JSON (RFC 8785) of everything else.
    pub hash: AuditHash,
}

impl AuditEntry {
    /// Returns what its hash is computed over: its fields as the API names them, but for the hash.
    #[must_use]
    pub fn document(&self) -> Value {
        json!({
            "id": self.id,
            "at": timestamp::render(self.at),
            "action": self.action.as_str(),
            "user": self.user.as_ref().map(|user| {
                json!({"id": user.id, "email": user.email, "name": user.name})
            }),
            "api_key": self.api_key.as_ref().map(|key| json!({"id": key.id, "name": key.name})),
            "target": {
                "kind": self.target.kind.as_str(),
                "id": self.target.id,
                "name": self.target.name,
            },
            "details": self.details,
            "previous_hash": self.previous_hash.map(|hash| hash.to_string()),
        })
    }

    /// Computes the hash of the content.
    #[must_use]
    pub fn computed_hash(&self) -> AuditHash {
        AuditHash(Sha256::digest(canonical::canonical(&self.document())).into())
    }

    /// The end of the chain that this entry is the last of.
    #[must_use]
    pub const fn chain_end(&self) -> ChainEnd {
        ChainEnd {
            at: self.at,
            hash: self.hash,
        }
    }
}

/// Why an entry does not fit the chain: it, or one before it, was changed or deleted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BrokenChain {
    /// The hash is not that of the entry.
    #[error("entry {0} was changed: its hash is not that of its content")]
    Changed(AuditEntryId),
    /// The entry does not follow the one before.
    #[error("entry {0} does not follow the entry before it: entries were changed or deleted")]
    Detached(AuditEntryId),
    /// The chain ends before its recorded end.
    #[error("the newest entries of the audit log are missing")]
    Cut,
}

/// Checks a chain, entry by entry from the oldest one.
#[derive(Clone, Debug, Default)]
pub struct ChainCheck {
    end: Option<ChainEnd>,
    /// Number of entries that were checked.
    pub entries: u64,
}

impl ChainCheck {
    /// Checks the next entry.
    ///
    /// # Errors
    /// [`BrokenChain`], if it does not fit.
    pub fn next(&mut self, entry: &AuditEntry) -> Result<(), BrokenChain> {
        let previous = self.end.map(|end| end.hash);
        let is_later = self.end.is_none_or(|end| entry.at > end.at);
        if entry.previous_hash != previous || !is_later {
            return Err(BrokenChain::Detached(entry.id));
        }
        if entry.computed_hash() != entry.hash {
            return Err(BrokenChain::Changed(entry.id));
        }
        self.end = Some(entry.chain_end());
        self.entries += 1;
        Ok(())
    }

    /// Checks that the chain ends where it was recorded to end.
    ///
    /// # Errors
    /// [`BrokenChain::Cut`].
    pub fn finish(self, recorded: Option<ChainEnd>) -> Result<u64, BrokenChain> {
        if self.end.map(|end| end.hash) == recorded.map(|end| end.hash) {
            Ok(self.entries)
        } else {
            Err(BrokenChain::Cut)
        }
    }
}

/// Filters of the audit log; an entry matches all that are given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Only this action.
    pub action: Option<AuditAction>,
    /// Only what this user did.
    pub user: Option<UserId>,
    /// Only from this time on.
    pub from: Option<OffsetDateTime>,
    /// Only before this time.
    pub to: Option<OffsetDateTime>,
}

impl AuditFilter {
    /// Returns whether an entry matches.
    #[must_use]
    pub fn matches(&self, entry: &AuditEntry) -> bool {
        let by = entry.user.as_ref().map(|user| user.id);
        self.action.is_none_or(|action| entry.action == action)
            && self.user.is_none_or(|user| by == Some(user))
            && self.from.is_none_or(|from| entry.at >= from)
            && self.to.is_none_or(|to| entry.at < to)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn new(number: u128) -> NewAuditEntry {
        NewAuditEntry {
            id: AuditEntryId::new(Uuid::from_u128(number)),
            at: OffsetDateTime::UNIX_EPOCH,
            action: AuditAction::TableDropped,
            user: None,
            api_key: None,
            target: AuditTarget::named(AuditTargetKind::Table, "sample"),
            details: Map::from_iter([("force".to_owned(), true.into())]),
        }
    }

    fn chain(length: u128) -> Vec<AuditEntry> {
        let mut entries: Vec<AuditEntry> = Vec::new();
        for number in 1..=length {
            let previous = entries.last().map(AuditEntry::chain_end);
            entries.push(new(number).chained(previous.as_ref(), None, None));
        }
        entries
    }

    fn check(entries: &[AuditEntry], recorded: &[AuditEntry]) -> Result<u64, BrokenChain> {
        let mut check = ChainCheck::default();
        for entry in entries {
            check.next(entry)?;
        }
        check.finish(recorded.last().map(AuditEntry::chain_end))
    }

    #[test]
    fn the_hash_is_that_of_the_canonical_json() {
        let first = new(1).chained(None, None, None);
        let text = r#"{"action":"table.dropped","api_key":null,"at":"1970-01-01T00:00:00Z","details":{"force":true},"id":"00000000-0000-0000-0000-000000000001","previous_hash":null,"target":{"id":null,"kind":"table","name":"sample"},"user":null}"#;
        assert_eq!(first.hash, AuditHash(Sha256::digest(text).into()));
    }

    #[test]
    fn entries_of_one_moment_have_an_order_in_time() {
        let entries = chain(3);
        assert!(entries.is_sorted_by(|a, b| a.at < b.at));
    }

    #[test]
    fn any_change_breaks_the_chain_where_it_was_made() {
        let good = chain(4);
        assert_eq!(check(&good, &good), Ok(4));
        assert_eq!(check(&[], &[]), Ok(0));
        let mut changed = good.clone();
        changed[1].details.clear();
        let second = good[1].id;
        assert_eq!(check(&changed, &good), Err(BrokenChain::Changed(second)));
        // With a hash that fits again, the next one no longer does.
        changed[1].hash = changed[1].computed_hash();
        let third = good[2].id;
        assert_eq!(check(&changed, &good), Err(BrokenChain::Detached(third)));
        let mut shorter = good.clone();
        shorter.remove(1);
        assert_eq!(check(&shorter, &good), Err(BrokenChain::Detached(third)));
        assert_eq!(check(&good[1..], &good), Err(BrokenChain::Detached(second)));
        assert_eq!(check(&good[..3], &good), Err(BrokenChain::Cut));
        assert_eq!(check(&[], &good), Err(BrokenChain::Cut));
    }
}
