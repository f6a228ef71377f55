//! Contract of [`WebhookRepository`](labdata_ports::outward::webhooks::WebhookRepository): deliveries.

use std::collections::BTreeSet;

use futures::future::join_all;
use labdata_domain::{
    events::LoggedEventKind,
    executions::FinalStatus,
    ids::DeliveryId,
    outward::webhooks::{
        Delivery, DeliveryOutcome, DeliveryState, DeliverySubject, DisabledBy, FAILING_TIME,
        HeldDelivery, MAX_PER_ORGANIZATION, MAX_PER_WEBHOOK, Webhook, WebhookChange,
        WebhookFilters, WebhookState,
    },
    storage::StorageQuota,
};
use labdata_ports::outward::webhooks::{ClaimedDelivery, DisabledWebhook};
use time::Duration;

use super::{WebhooksLab, pattern, webhook};
use crate::{
    assertions::assert_not_found,
    files::{confirmed, of},
    given::{self, at},
    notifications::{PLENTY, notification},
    paging::assert_pages,
};

const LEASE: Duration = Duration::seconds(60);

fn event(kind: LoggedEventKind) -> DeliverySubject {
    DeliverySubject::Event(kind)
}

fn delivered(seconds: i64) -> DeliveryOutcome {
    DeliveryOutcome::Delivered {
        at: at(seconds),
        status: 204,
    }
}

fn retry(seconds: i64, due: i64) -> DeliveryOutcome {
    DeliveryOutcome::Retry {
        at: at(seconds),
        due_at: at(due),
        status: Some(503),
        error: "the receiver answered 503".to_owned(),
    }
}

fn failed(seconds: i64, gone: bool) -> DeliveryOutcome {
    DeliveryOutcome::Failed {
        at: at(seconds),
        status: gone.then_some(410),
        error: "no".to_owned(),
        gone,
    }
}

impl WebhooksLab {
    /// Makes due deliveries and claims them, as a worker does.
    async fn claim(
        &self,
        seconds: i64,
        held: &[HeldDelivery],
        free: usize,
    ) -> Vec<ClaimedDelivery> {
        self.make(999).await;
        let claimed = self.webhooks.claim(at(seconds), LEASE, held, free);
        claimed.await.unwrap()
    }

    /// The only delivery that is due.
    async fn claim_one(&self, seconds: i64) -> ClaimedDelivery {
        let mut claimed = self.claim(seconds, &[], 99).await;
        assert_eq!(claimed.len(), 1, "{claimed:?}");
        claimed.remove(0)
    }

    async fn settle(&self, claimed: &ClaimedDelivery, outcome: &DeliveryOutcome) -> bool {
        self.webhooks.settle(claimed, outcome).await.unwrap()
    }

    async fn state(&self, webhook: &Webhook) -> WebhookState {
        let stored = self.webhooks.get(self.ours, webhook.id).await.unwrap();
        stored.state
    }

    /// A webhook that received one start of an execution.
    async fn subscribed_once(&self) -> Webhook {
        let told = self.add(webhook(self.ada.id, 0)).await;
        self.execution(self.ours, at(0), None).await;
        told
    }
}

crate::suite!(
    use outward::deliveries as webhook_deliveries;

    /// Every event of the organization is told, in its order, and none of another.
    async fn a_webhook_receives_its_organizations_events(lab: &WebhooksLab) {
        let told = lab.add(webhook(lab.ada.id, 0)).await;
        let theirs = lab.add_theirs().await;
        let execution = lab.execution(lab.ours, at(1), None).await;
        let closed = lab
            .executions
            .close(lab.ours, execution.id, FinalStatus::Completed, at(2));
        closed.await.unwrap();
        let expected = [
            event(LoggedEventKind::ExecutionStarted(execution.id)),
            event(LoggedEventKind::ExecutionCompleted(execution.id)),
        ];
        assert_eq!(lab.received(&told).await, expected);
        assert_eq!(lab.deliveries_of(lab.theirs, &theirs).await, []);
        assert_eq!(lab.deliveries_of(lab.theirs, &told).await, []);
        let newest = lab.deliveries(&told).await.remove(0);
        let as_stored = Delivery::new(newest.id, told.id, newest.subject.clone(), at(2));
        assert_eq!(newest, as_stored);
    }

    /// Types and filters choose; a disabled webhook receives nothing.
    async fn types_and_filters_choose(lab: &WebhooksLab) {
        let instrument = lab.instrument(lab.ours, "reader").await.id;
        let other = lab.instrument(lab.ours, "other").await.id;
        let job = lab.job(lab.ours, "some job").await.id;
        let with = |events: &[&str], filters: WebhookFilters| Webhook {
            events: events.iter().map(|name| pattern(name)).collect(),
            filters,
            ..webhook(lab.ada.id, 0)
        };
        let none = WebhookFilters::default();
        let files = lab
            .add(with(&["file.confirmed", "file.deleted"], none.clone()))
            .await;
        let of_instrument = WebhookFilters {
            instrument: Some(instrument),
            ..none.clone()
        };
        let of_instrument = lab.add(with(&["*"], of_instrument)).await;
        let of_job = WebhookFilters {
            job: Some(job),
            ..none.clone()
        };
        let of_job = lab.add(with(&["*"], of_job)).await;
        let of_table = WebhookFilters {
            table: Some("sample".to_owned()),
            ..none.clone()
        };
        let of_table = lab.add(with(&["*"], of_table)).await;
        let disabled = Webhook {
            state: WebhookState::Disabled(DisabledBy::Person),
            ..with(&["*"], none)
        };
        let disabled = lab.add(disabled).await;
        let execution = lab.execution(lab.ours, at(0), None).await;
        let by_reader = confirmed("a.csv", of(Some(instrument), None), at(1));
        let by_other = confirmed("a.csv", of(Some(other), None), at(2));
        let by_job = confirmed("b.csv", of(None, Some(execution.id)), at(3));
        for file in [&by_reader, &by_other, &by_job] {
            let added = lab
                .files
                .add(lab.ours, file, StorageQuota::UNLIMITED, at(3));
            added.await.unwrap();
        }
        for file in [by_reader.id, by_other.id, by_job.id] {
            lab.files.delete(lab.ours, file, at(4)).await.unwrap();
        }
        let deleted = |id| event(LoggedEventKind::FileDeleted(id));
        let confirmed = |id| event(LoggedEventKind::FileConfirmed(id));
        let started = event(LoggedEventKind::ExecutionStarted(execution.id));
        let all = [by_reader.id, by_other.id, by_job.id].map(confirmed);
        let received = lab.received(&files).await;
        assert_eq!(received.len(), 2 * all.len());
        let told: BTreeSet<_> = received.iter().map(|it| it.references().file).collect();
        assert_eq!(told, all.iter().map(|it| it.references().file).collect());
        assert_eq!(
            lab.received(&of_instrument).await,
            [confirmed(by_reader.id), deleted(by_reader.id)]
        );
        let of_the_job = [started, confirmed(by_job.id), deleted(by_job.id)];
        assert_eq!(lab.received(&of_job).await, of_the_job);
        assert_eq!(lab.received(&of_table).await, []);
        assert_eq!(lab.received(&disabled).await, []);
    }

    /// Of a notification only the webhooks of its recipient are told.
    async fn a_notification_is_told_to_its_recipients_webhooks_alone(lab: &WebhooksLab) {
        let bob = lab.user(lab.ours, "bob@example.org").await;
        let hers = lab.add(webhook(lab.ada.id, 0)).await;
        let his = lab.add(webhook(bob.id, 0)).await;
        let new = notification("once", 0);
        let sent = lab.notifications.send(lab.ours, lab.ada.id, &new, PLENTY);
        sent.await.unwrap();
        let expected = [event(LoggedEventKind::NotificationCreated(new.id))];
        assert_eq!(lab.received(&hers).await, expected);
        assert_eq!(lab.received(&his).await, []);
    }

    /// By time of the event, then id, with any page size.
    async fn deliveries_are_listed_newest_first(lab: &WebhooksLab) {
        let told = lab.add(webhook(lab.ada.id, 0)).await;
        for seconds in [3, 1, 2, 2] {
            lab.execution(lab.ours, at(seconds), None).await;
        }
        let mut expected = lab.deliveries(&told).await;
        assert_eq!(expected.len(), 4);
        expected.sort_by_key(|delivery| std::cmp::Reverse((delivery.at, delivery.id)));
        let read = async |page| lab.webhooks.deliveries(lab.ours, told.id, page).await;
        assert_pages([1, 3, 100], &expected, read).await;
    }

    /// A claim has webhook, delivery and number; another worker gets it when the lease ends, not before.
    async fn a_claimed_delivery_is_not_claimed_again_until_the_lease_ends(lab: &WebhooksLab) {
        let told = lab.subscribed_once().await;
        assert_eq!(lab.claim(-1, &[], 9).await, [], "not before it was made");
        let claimed = lab.claim_one(0).await;
        assert_eq!((claimed.organization, &claimed.webhook), (lab.ours, &told));
        assert_eq!(claimed.delivery.attempts, 1);
        assert_eq!(
            lab.deliveries(&told).await,
            std::slice::from_ref(&claimed.delivery)
        );
        assert_eq!(lab.claim(59, &[], 9).await, []);
        let again = lab.claim_one(60).await;
        assert_eq!(again.delivery.id, claimed.delivery.id);
        assert_eq!(again.delivery.attempts, 2);
        assert!(
            !lab.settle(&claimed, &delivered(61)).await,
            "it was taken over"
        );
        assert!(lab.settle(&again, &delivered(62)).await);
        assert!(!lab.settle(&again, &delivered(63)).await, "it is settled");
        assert_eq!(lab.claim(9_999, &[], 9).await, []);
    }

    /// Concurrent workers claim every delivery exactly once.
    async fn of_racing_workers_each_delivery_is_claimed_by_one(lab: &WebhooksLab) {
        let told = lab.add(webhook(lab.ada.id, 0)).await;
        for _ in 0..24 {
            lab.execution(lab.ours, at(0), None).await;
        }
        let waiting: BTreeSet<_> = lab.deliveries(&told).await.iter().map(|it| it.id).collect();
        let mut claimed = Vec::new();
        for _ in 0..99 {
            let workers = (0..8).map(|_| lab.claim(1, &[], 2));
            let round = join_all(workers).await.into_iter().flatten();
            claimed.extend(round.map(|claimed| claimed.delivery.id));
        }
        assert_eq!(claimed.len(), 24);
        assert_eq!(claimed.into_iter().collect::<BTreeSet<_>>(), waiting);
    }

    /// A backlog of one organization leaves room for others, and what a worker sends already counts.
    async fn organizations_take_turns(lab: &WebhooksLab) {
        let ours = lab.add(webhook(lab.ada.id, 0)).await;
        let theirs = lab.add_theirs().await;
        for _ in 0..20 {
            lab.execution(lab.ours, at(0), None).await;
        }
        lab.execution(lab.theirs, at(5), None).await;
        let round = lab.claim(9, &[], 2).await;
        let organizations: BTreeSet<_> = round.iter().map(|it| it.organization).collect();
        assert_eq!(organizations, BTreeSet::from([lab.ours, lab.theirs]));
        let held = |webhook: &Webhook, count| {
            let one = HeldDelivery {
                organization: lab.ours,
                webhook: webhook.id,
                is_to_failing: false,
            };
            vec![one; count]
        };
        let most = usize::try_from(MAX_PER_WEBHOOK).unwrap();
        assert_eq!(lab.claim(9, &held(&ours, 1), 99).await.len(), most - 1);
        assert_eq!(lab.claim(9, &held(&ours, most), 99).await, []);
        let most = usize::try_from(MAX_PER_ORGANIZATION).unwrap();
        // Of other webhooks of the organization.
        assert_eq!(lab.claim(9, &held(&theirs, most), 99).await, []);
        assert_eq!(lab.claim(9, &held(&theirs, most - 1), 99).await.len(), 1);
    }

    /// A failing webhook has one attempt at a time.
    async fn a_failing_webhook_has_one_slot(lab: &WebhooksLab) {
        let told = lab.add(webhook(lab.ada.id, 0)).await;
        for _ in 0..6 {
            lab.execution(lab.ours, at(0), None).await;
        }
        let first = lab.claim(0, &[], 1).await.remove(0);
        assert!(lab.settle(&first, &retry(1, 900)).await);
        assert_eq!(
            lab.state(&told).await,
            WebhookState::Enabled {
                failing_since: Some(at(1))
            }
        );
        let next = lab.claim(2, &[], 99).await;
        assert_eq!(next.len(), 1);
        assert!(next[0].webhook.state.is_failing());
        assert!(lab.settle(&next[0], &delivered(3)).await);
        assert_eq!(lab.state(&told).await, WebhookState::ENABLED);
        assert_eq!(lab.claim(4, &[], 99).await.len(), 4);
    }

    /// A retry is due at its time, and shows status and reason.
    async fn a_retry_waits_until_it_is_due(lab: &WebhooksLab) {
        let told = lab.subscribed_once().await;
        let claimed = lab.claim_one(0).await;
        assert!(lab.settle(&claimed, &retry(1, 70)).await);
        let stored = lab.deliveries(&told).await.remove(0);
        assert_eq!(stored.state, DeliveryState::Pending { due_at: at(70) });
        assert_eq!(stored.response_status, Some(503));
        assert_eq!(stored.error.as_deref(), Some("the receiver answered 503"));
        assert_eq!(lab.claim(69, &[], 9).await, []);
        let again = lab.claim_one(70).await;
        assert!(lab.settle(&again, &delivered(71)).await);
        let stored = lab.deliveries(&told).await.remove(0);
        assert_eq!(stored.state, DeliveryState::Delivered { at: at(71) });
        assert_eq!((stored.response_status, stored.error), (Some(204), None));
    }

    /// 410, and days of failures, disable the webhook and end what waits; administrators are told once.
    async fn failures_disable_a_webhook(lab: &WebhooksLab) {
        let days = FAILING_TIME.whole_seconds();
        for (reason, second, gone) in [
            (DisabledBy::Gone, 5, true),
            (DisabledBy::Failures, days + 1, false),
        ] {
            let told = lab.add(webhook(lab.ada.id, 0)).await;
            for _ in 0..3 {
                lab.execution(lab.ours, at(0), None).await;
            }
            let first = lab.claim(0, &[], 1).await.remove(0);
            assert!(lab.settle(&first, &retry(1, 2)).await);
            let second_claim = lab.claim(second, &[], 9).await.remove(0);
            assert!(lab.settle(&second_claim, &failed(second, gone)).await);
            assert_eq!(lab.state(&told).await, WebhookState::Disabled(reason));
            let deliveries = lab.deliveries(&told).await;
            let ended = DeliveryState::Failed { at: at(second) };
            assert!(
                deliveries.iter().all(|it| it.state == ended),
                "{deliveries:?}"
            );
            let disabled = lab.webhooks.disabled(9).await.unwrap();
            let expected = DisabledWebhook {
                organization: lab.ours,
                webhook: lab.webhooks.get(lab.ours, told.id).await.unwrap(),
                at: at(second),
            };
            assert_eq!(disabled, std::slice::from_ref(&expected));
            assert!(lab.webhooks.record_notified(&expected).await.unwrap());
            assert!(!lab.webhooks.record_notified(&expected).await.unwrap());
            assert_eq!(lab.webhooks.disabled(9).await.unwrap(), []);
            lab.webhooks.delete(lab.ours, told.id).await.unwrap();
        }
    }

    /// Disabling by a person ends what waits, sends no notice, and starts over when enabled.
    async fn a_webhook_that_a_person_disables_sends_nothing_of_then(lab: &WebhooksLab) {
        let told = lab.subscribed_once().await;
        let enabled = |enabled| WebhookChange {
            enabled: Some(enabled),
            ..WebhookChange::default()
        };
        for change in [false, true].map(enabled) {
            let changed = lab.webhooks.update(lab.ours, told.id, &change, at(7));
            changed.await.unwrap();
        }
        assert_eq!(lab.webhooks.disabled(9).await.unwrap(), []);
        assert_eq!(lab.claim(99, &[], 9).await, []);
        let stored = lab.deliveries(&told).await.remove(0);
        assert_eq!(stored.state, DeliveryState::Failed { at: at(7) });
        lab.execution(lab.ours, at(8), None).await;
        assert_eq!(lab.claim(99, &[], 9).await.len(), 1);
    }

    /// A delivery that ended, and one that waits, is due again at once.
    async fn a_delivery_is_sent_again(lab: &WebhooksLab) {
        let told = lab.subscribed_once().await;
        let claimed = lab.claim_one(0).await;
        assert!(lab.settle(&claimed, &delivered(1)).await);
        let id = claimed.delivery.id;
        for seconds in [100, 200] {
            let resent = lab
                .webhooks
                .resend(lab.ours, told.id, id, at(seconds))
                .await
                .unwrap();
            assert_eq!(
                resent.state,
                DeliveryState::Pending {
                    due_at: at(seconds)
                }
            );
            assert_eq!(resent.attempt().started_at, at(seconds));
            assert_eq!(lab.deliveries(&told).await, [resent]);
        }
        let again = lab.claim_one(200).await;
        assert_eq!(
            (again.delivery.attempts, again.delivery.attempt().number),
            (2, 1)
        );
        let unknown = DeliveryId::new(given::uuid());
        assert_not_found(lab.webhooks.resend(lab.ours, told.id, unknown, at(1)).await);
        assert_not_found(lab.webhooks.resend(lab.theirs, told.id, id, at(1)).await);
    }

    /// One that is no event's is stored like any other.
    async fn a_test_delivery_is_stored(lab: &WebhooksLab) {
        let told = lab.add(webhook(lab.ada.id, 0)).await;
        let id = DeliveryId::new(given::uuid());
        let test = Delivery::new(id, told.id, DeliverySubject::Test, at(3));
        lab.webhooks.add_delivery(lab.ours, &test).await.unwrap();
        assert_eq!(lab.deliveries(&told).await, [test]);
        assert_eq!(lab.claim_one(3).await.delivery.id, id);
    }

    /// Old ones go when they have ended, at most `limit` at a time.
    async fn old_deliveries_are_deleted(lab: &WebhooksLab) {
        let told = lab.add(webhook(lab.ada.id, 0)).await;
        for seconds in [1, 2, 3, 4] {
            lab.execution(lab.ours, at(seconds), None).await;
        }
        for claimed in lab.claim(3, &[], 9).await {
            assert!(lab.settle(&claimed, &delivered(9)).await);
        }
        let delete = async |limit| {
            let deleted = lab.webhooks.delete_deliveries_before(at(3), limit);
            deleted.await.unwrap()
        };
        assert_eq!(delete(1).await, 1);
        assert_eq!(delete(9).await, 1);
        assert_eq!(delete(9).await, 0);
        let left: Vec<_> = lab.deliveries(&told).await.iter().map(|it| it.at).collect();
        assert_eq!(left, [at(4), at(3)]);
    }
);
