//! Contract of [`WebhookRepository`](labdata_ports::outward::webhooks::WebhookRepository): webhooks.

use labdata_domain::{
    catalog::TableDefinition,
    ids::{InstrumentId, JobId, UserId, WebhookId},
    outward::webhooks::{
        DisabledBy, SecretVersion, Webhook, WebhookChange, WebhookFilters, WebhookFormat,
        WebhookState, WebhookUrl,
    },
};

use super::{WebhooksLab, pattern, webhook};
use crate::{
    assertions::assert_not_found,
    catalog::definitions,
    given::{self, at},
    paging::assert_pages,
};

fn full(created_by: UserId) -> Webhook {
    Webhook {
        url: WebhookUrl::parse("http://10.0.0.7:8080/hook?token=%20").unwrap(),
        events: vec![pattern("file.confirmed"), pattern("data.written")],
        filters: WebhookFilters {
            table: Some("sample".to_owned()),
            instrument: Some(InstrumentId::new(given::uuid())),
            job: Some(JobId::new(given::uuid())),
        },
        format: WebhookFormat::Teams,
        state: WebhookState::Disabled(DisabledBy::Gone),
        secret: SecretVersion {
            number: 3,
            previous_until: Some(at(60)),
            oldest: 2,
        },
        ..webhook(created_by, 0)
    }
}

crate::suite!(
    use outward::webhooks;

    /// Every field is stored, with and without the optional ones.
    async fn a_webhook_reads_back_as_it_was_added(lab: &WebhooksLab) {
        for webhook in [full(lab.ada.id), webhook(lab.ada.id, 1)] {
            lab.add(webhook.clone()).await;
            assert_eq!(
                lab.webhooks.get(lab.ours, webhook.id).await.unwrap(),
                webhook
            );
        }
    }

    /// A filter follows its table under a new name. That of another organization of the same name stays.
    async fn a_filter_follows_its_table(lab: &WebhooksLab) {
        let webhook = lab.add(full(lab.ada.id)).await;
        let theirs = full(lab.eve.id);
        assert!(lab.webhooks.add(lab.theirs, &theirs, 50).await.unwrap());
        let renamed = TableDefinition {
            name: "specimen".to_owned(),
            renamed_from: Some("sample".to_owned()),
            ..definitions::sample()
        };
        for definition in [definitions::sample(), renamed, definitions::sample()] {
            let defined = lab.catalog.define(lab.ours, &definition, at(1));
            defined.await.unwrap();
        }
        for (organization, id, table) in [
            (lab.ours, webhook.id, "specimen"),
            (lab.theirs, theirs.id, "sample"),
        ] {
            let stored = lab.webhooks.get(organization, id).await.unwrap();
            assert_eq!(stored.filters.table.as_deref(), Some(table));
        }
    }

    /// A user of another organization, or of none, makes none.
    async fn a_webhook_belongs_to_a_user_of_its_organization(lab: &WebhooksLab) {
        let theirs = webhook(lab.eve.id, 0);
        assert_not_found(lab.webhooks.add(lab.ours, &theirs, 50).await);
    }

    /// At the limit nothing is stored; those of other organizations do not count.
    async fn an_organization_has_a_limited_number(lab: &WebhooksLab) {
        lab.add_theirs().await;
        for _ in 0..2 {
            let new = webhook(lab.ada.id, 0);
            assert!(lab.webhooks.add(lab.ours, &new, 2).await.unwrap());
        }
        let third = webhook(lab.ada.id, 0);
        assert!(!lab.webhooks.add(lab.ours, &third, 2).await.unwrap());
    }

    /// Another organization's webhook is like one that does not exist, for every call.
    async fn another_organizations_webhook_is_not_found(lab: &WebhooksLab) {
        let theirs = lab.add_theirs().await;
        let unknown = WebhookId::new(given::uuid());
        let change = WebhookChange::default();
        for id in [theirs.id, unknown] {
            assert_not_found(lab.webhooks.get(lab.ours, id).await);
            assert_not_found(lab.webhooks.update(lab.ours, id, &change, at(1)).await);
            assert_not_found(lab.webhooks.rotate(lab.ours, id, at(1)).await);
            assert_not_found(lab.webhooks.delete(lab.ours, id).await);
        }
        assert_eq!(
            lab.webhooks.get(lab.theirs, theirs.id).await.unwrap(),
            theirs
        );
    }

    /// The list is ordered by creation time, then id, newest first, with any page size.
    async fn the_list_is_newest_first_and_total(lab: &WebhooksLab) {
        lab.add_theirs().await;
        let mut expected = Vec::new();
        for seconds in [20, 10, 30, 10] {
            expected.push(lab.add(webhook(lab.ada.id, seconds)).await);
        }
        expected.sort_by_key(|webhook| std::cmp::Reverse((webhook.created_at, webhook.id)));
        let read = async |page| lab.webhooks.list(lab.ours, page).await;
        assert_pages([1, 3, 100], &expected, read).await;
    }

    /// A change is stored, and keeps what it does not name.
    async fn a_change_is_stored(lab: &WebhooksLab) {
        let added = lab.add(webhook(lab.ada.id, 0)).await;
        let other = full(lab.ada.id);
        let change = WebhookChange {
            url: Some(other.url),
            events: Some(other.events),
            filters: Some(other.filters),
            format: Some(other.format),
            enabled: Some(false),
        };
        for change in [change, WebhookChange::default()] {
            let stored = lab.webhooks.get(lab.ours, added.id).await.unwrap();
            let changed = lab.webhooks.update(lab.ours, added.id, &change, at(1));
            let changed = changed.await.unwrap();
            assert_eq!(changed, change.apply(stored));
            assert_eq!(lab.webhooks.get(lab.ours, added.id).await.unwrap(), changed);
        }
    }

    /// A rotation takes the next secret, and the old one signs for a while.
    async fn a_rotation_is_stored(lab: &WebhooksLab) {
        let added = lab.add(webhook(lab.ada.id, 0)).await;
        let rotated = lab
            .webhooks
            .rotate(lab.ours, added.id, at(1))
            .await
            .unwrap();
        assert_eq!(rotated.secret, added.secret.rotated(at(1)));
        assert_eq!(lab.webhooks.get(lab.ours, added.id).await.unwrap(), rotated);
    }

    /// A deleted webhook is deleted with its deliveries, and receives nothing.
    async fn a_webhook_is_deleted_with_its_deliveries(lab: &WebhooksLab) {
        let added = lab.add(webhook(lab.ada.id, 0)).await;
        lab.execution(lab.ours, at(0), None).await;
        assert_eq!(lab.deliveries(&added).await.len(), 1);
        assert_eq!(
            lab.webhooks.delete(lab.ours, added.id).await.unwrap(),
            added
        );
        lab.execution(lab.ours, at(1), None).await;
        assert_not_found(lab.webhooks.get(lab.ours, added.id).await);
        assert_eq!(lab.deliveries(&added).await, []);
    }
);
