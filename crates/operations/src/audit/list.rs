//! `GET /api/v1/audit`

use labdata_domain::{
    audit::{AuditAction, AuditFilter},
    ids::UserId,
    page::{DEFAULT_LIMIT, PageRequest},
};
use labdata_request_body::{
    fields::{optional, page},
    readers::{MaybeId, choice_of, datetime, id},
    shape,
};
use time::OffsetDateTime;

use super::AuditEntryView;
use crate::{About, Admin, JsonOrLines, Listing, Method, NoBody, Operation, Tag};

shape! {
    /// Filters of the audit log.
    #[derive(Clone, Debug)]
    pub struct AuditQuery {
        /// Only this action.
        action: Option<AuditAction> = optional(choice_of(AuditAction::ALL, AuditAction::as_str)),
        /// Only what this user did.
        user_id: Option<MaybeId<UserId>> = optional(id()),
        /// Only from this time on.
        from: Option<OffsetDateTime> = optional(datetime()),
        /// Only before this time.
        to: Option<OffsetDateTime> = optional(datetime()),
        page: PageRequest = page(Some(DEFAULT_LIMIT)),
    }
}

impl AuditQuery {
    /// The page.
    #[must_use]
    pub const fn page(&self) -> PageRequest {
        self.page
    }

    /// The filter; `None` if no entry can match, because no user has such an id.
    #[must_use]
    pub fn filter(&self) -> Option<AuditFilter> {
        let user = match self.user_id.map(MaybeId::known) {
            Some(None) => return None,
            user => user.flatten(),
        };
        Some(AuditFilter {
            action: self.action,
            user,
            from: self.from,
            to: self.to,
        })
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "list_audit_log",
        method: Method::Get,
        path: "/api/v1/audit",
        tag: Tag::Audit,
        summary: "Lists who did what, newest first",
        description: "Entries that match all filters given. By pages of `limit`; the header `Link` names the \
            next page. With `Accept: application/x-ndjson` all of them are sent, oldest first, one \
            in a line. Each entry bears the hash of the one before, so that a change of any of them is \
            evident: `labdata audit verify` checks the chain.",
        returns: "The entries",
        refusals: &[],
    }
    .served_by_hand::<Admin, NoBody, AuditQuery, (), JsonOrLines<Listing<AuditEntryView>, AuditEntryView>>()
}
