//! Contract of [`AuditLog`].

use futures::future::join_all;
use labdata_domain::{
    audit::{
        AuditAction, AuditEntry, AuditFilter, AuditTarget, AuditTargetKind, ChainCheck,
        NewAuditEntry,
    },
    ids::{AuditEntryId, OrganizationId},
    page::PageRequest,
    people::author::{NamedKey, NamedUser},
};
use labdata_ports::{PortError, audit::AuditLog};
use serde_json::{Map, json};

use crate::{
    given::{self, at},
    lab::lab,
};

lab!(
    /// Audit logs of two organizations.
    pub struct AuditLab {
        /// The logs.
        pub audit: dyn AuditLog,
    }
);

impl AuditLab {
    async fn append(&self, entry: NewAuditEntry) {
        self.audit.append(self.ours, entry).await.unwrap();
    }

    /// All entries, oldest first.
    async fn all(&self, organization: OrganizationId) -> Vec<AuditEntry> {
        let all = AuditFilter::default();
        let read = self.audit.list_after(organization, &all, None, 1000);
        read.await.unwrap()
    }
}

/// An entry of the operator's, of that second.
fn dropped(table: &str, second: i64) -> NewAuditEntry {
    NewAuditEntry {
        id: AuditEntryId::new(given::uuid()),
        at: at(second),
        action: AuditAction::TableDropped,
        user: None,
        api_key: None,
        target: AuditTarget::named(AuditTargetKind::Table, table),
        details: Map::from_iter([("force".to_owned(), true.into())]),
    }
}

/// The names of the entries' targets.
fn names(entries: &[AuditEntry]) -> Vec<&str> {
    let names = entries.iter().map(|entry| entry.target.name.as_deref());
    names.map(Option::unwrap_or_default).collect()
}

crate::suite!(
    use audit;

    /// Every field is read back, the names of user and key as they were when it was appended.
    async fn an_entry_is_read_back_with_the_names_of_its_time(lab: &AuditLab) {
        let user = &lab.ada;
        let key = lab.api_key(user).await;
        let entry = NewAuditEntry {
            user: Some(user.id),
            api_key: Some(key.id),
            target: AuditTarget::new(AuditTargetKind::Table, 7, "prüfung \"1\""),
            details: Map::from_iter([("list".to_owned(), json!(["a", 1, null]))]),
            ..dropped("", 5)
        };
        lab.append(entry.clone()).await;
        let stored = lab.all(lab.ours).await;
        let expected = entry.chained(None, Some(NamedUser::of(user)), Some(NamedKey::of(&key)));
        assert_eq!(stored, [expected]);
    }

    /// Of racing calls each appends an entry, and all entries form one chain for each organization.
    async fn racing_entries_form_one_chain(lab: &AuditLab) {
        let appended = (0..12).map(|number| {
            let organization = if number % 3 == 0 {
                lab.theirs
            } else {
                lab.ours
            };
            lab.audit.append(organization, dropped("same moment", 0))
        });
        for appended in join_all(appended).await {
            appended.unwrap();
        }
        for (organization, count) in [(lab.ours, 8), (lab.theirs, 4)] {
            let mut check = ChainCheck::default();
            for entry in lab.all(organization).await {
                check.next(&entry).unwrap();
            }
            let end = lab.audit.end(organization).await.unwrap();
            assert_eq!(check.finish(end), Ok(count));
        }
    }

    /// Filters, and pages in both directions.
    async fn entries_are_listed_by_filters_and_pages(lab: &AuditLab) {
        let (organization, audit) = (lab.ours, &lab.audit);
        for (second, name) in [(1, "a"), (2, "b"), (3, "c"), (4, "d")] {
            let entry = NewAuditEntry {
                action: if name == "b" {
                    AuditAction::FileDeleted
                } else {
                    AuditAction::TableDropped
                },
                user: (name == "c").then_some(lab.ada.id),
                ..dropped(name, second)
            };
            lab.append(entry).await;
        }
        let first = PageRequest {
            limit: Some(3),
            after: None,
        };
        let every = AuditFilter::default();
        let page = audit.list(organization, &every, first).await.unwrap();
        assert_eq!(names(&page.items), ["d", "c", "b"]);
        let rest = PageRequest {
            after: page.next,
            ..first
        };
        let page = audit.list(organization, &every, rest).await.unwrap();
        assert_eq!((names(&page.items), page.next), (vec!["a"], None));
        let batch = audit.list_after(organization, &every, Some(at(2)), 1).await;
        assert_eq!(names(&batch.unwrap()), ["c"]);
        let filters = [
            (
                vec!["b"],
                AuditFilter {
                    action: Some(AuditAction::FileDeleted),
                    ..every.clone()
                },
            ),
            (
                vec!["c"],
                AuditFilter {
                    user: Some(lab.ada.id),
                    ..every.clone()
                },
            ),
            (
                vec!["c", "b"],
                AuditFilter {
                    from: Some(at(2)),
                    to: Some(at(4)),
                    ..every.clone()
                },
            ),
        ];
        for (expected, filter) in filters {
            let page = audit.list(organization, &filter, first).await.unwrap();
            assert_eq!(names(&page.items), expected, "{filter:?}");
        }
    }

    /// Organizations see nothing of each other, and one that does not exist has no log.
    async fn logs_belong_to_organizations(lab: &AuditLab) {
        lab.append(dropped("sample", 1)).await;
        assert_eq!(lab.all(lab.theirs).await, []);
        assert_eq!(lab.audit.end(lab.theirs).await.unwrap(), None);
        let nobody = OrganizationId::new(given::uuid());
        let refused = lab.audit.append(nobody, dropped("sample", 1)).await;
        assert!(
            matches!(refused, Err(PortError::NotFound(_))),
            "{refused:?}"
        );
    }
);
