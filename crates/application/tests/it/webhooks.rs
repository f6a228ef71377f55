//! Webhooks over days of simulated time, with workers that die.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Mutex,
};

use async_trait::async_trait;
use labdata_application::{
    Services,
    executions::start_execution::{StartExecution, start_execution},
    notifications::list_notifications::list_notifications,
    outward::webhooks::{
        create_webhook::{CreateWebhook, create_webhook},
        deliver::{claim_deliveries, deliver},
        list_deliveries::list_deliveries,
        resend_delivery::resend_delivery,
        rotate_secret::rotate_secret,
        sweep_deliveries::sweep_deliveries,
        tell_of_disabled::tell_of_disabled,
        test_webhook::test_webhook,
        update_webhook::update_webhook,
    },
};
use labdata_domain::{
    audit::{AuditAction, AuditFilter},
    ids::{InstrumentId, JobId},
    outward::webhooks::{
        AttemptResult, DELIVERY_RETENTION, DeliveryState, DisabledBy, EventPattern, Webhook,
        WebhookChange, WebhookFilters, WebhookFormat, WebhookSecret, WebhookState, WebhookUrl,
    },
    page::PageRequest,
    people::{actor::Actor, scope::Scope},
    refusal::RefusalKind,
};
use labdata_ports::outward::webhooks::{ClaimedDelivery, WebhookRequest, WebhookSender};
use time::{Duration, OffsetDateTime};

use crate::lab::Lab;

const ALL: PageRequest = PageRequest {
    limit: None,
    after: None,
};

/// A receiver whose answer a test sets, and what it took.
#[derive(Default)]
struct Receiver {
    status: Mutex<Option<u16>>,
    requests: Mutex<Vec<WebhookRequest>>,
}

impl Receiver {
    fn answer(&self, status: Option<u16>) {
        *self.status.lock().unwrap() = status;
    }

    fn ids(&self) -> BTreeSet<String> {
        let requests = self.requests.lock().unwrap();
        requests.iter().map(|it| it.headers[0].1.clone()).collect()
    }
}

#[async_trait]
impl WebhookSender for Receiver {
    async fn send(&self, request: &WebhookRequest) -> AttemptResult {
        let Some(status) = *self.status.lock().unwrap() else {
            return AttemptResult::Failed("connection refused".to_owned());
        };
        if (200..300).contains(&status) {
            self.requests.lock().unwrap().push(request.clone());
        }
        AttemptResult::Responded(status)
    }
}

fn command(url: &str) -> CreateWebhook {
    CreateWebhook {
        url: WebhookUrl::parse(url).unwrap(),
        events: vec![EventPattern::ANY],
        filters: WebhookFilters::default(),
        format: WebhookFormat::Standard,
        enabled: true,
    }
}

async fn made(services: &Services, actor: &Actor) -> (Webhook, WebhookSecret) {
    let made = create_webhook(services, actor, command("https://lab.example.org/hook"));
    made.await.unwrap()
}

async fn cause_event(services: &Services, actor: &Actor) {
    let started = start_execution(services, actor, StartExecution::default());
    started.await.unwrap();
}

/// Sends what is due now, and what becomes due by it.
async fn send_due(services: &Services, receiver: &Receiver) -> usize {
    let mut sent = 0;
    loop {
        let claimed = claim_deliveries(services, &[], 64).await.unwrap();
        if claimed.is_empty() {
            return sent;
        }
        for one in claimed {
            deliver(services, receiver, &one).await.unwrap();
            sent += 1;
        }
    }
}

async fn state(services: &Services, actor: &Actor, webhook: &Webhook) -> WebhookState {
    let stored = services.webhooks.get(actor.organization, webhook.id);
    stored.await.unwrap().state
}

#[tokio::test]
async fn a_receiver_that_is_down_for_two_days_gets_every_event_though_workers_die() {
    const EVENTS: usize = 1_000;
    let lab = Lab::new().await;
    let (services, admin) = (&lab.services, lab.actor(&Scope::ALL));
    let (webhook, _) = made(services, &admin).await;
    for _ in 0..EVENTS {
        cause_event(services, &admin).await;
    }
    let receiver = Receiver::default();
    let began = lab.clock_now();
    let mut attempts = 0;
    while lab.clock_now() - began < Duration::days(4) {
        let is_up = lab.clock_now() - began >= Duration::days(2);
        receiver.answer(is_up.then_some(204));
        let claimed = claim_deliveries(services, &[], 64).await.unwrap();
        for (number, one) in claimed.iter().enumerate() {
            attempts += 1;
            // Every fifth worker dies before it sends, every seventh before it records the outcome.
            if (attempts + number) % 5 == 0 {
                continue;
            }
            if attempts % 7 == 0 {
                if is_up {
                    let request = request_of(one);
                    receiver.send(&request).await;
                }
                continue;
            }
            deliver(services, &receiver, one).await.unwrap();
        }
        if claimed.is_empty() {
            lab.clock.advance(Duration::minutes(10));
        }
    }
    let deliveries = list_deliveries(services, &admin, webhook.id, ALL)
        .await
        .unwrap()
        .items;
    let ids: BTreeSet<String> = deliveries.iter().map(|it| it.id.to_string()).collect();
    assert_eq!(ids.len(), EVENTS);
    assert_eq!(receiver.ids(), ids, "each arrived");
    let delivered = |state| matches!(state, DeliveryState::Delivered { .. });
    assert!(deliveries.iter().all(|it| delivered(it.state)));
    assert_eq!(
        state(services, &admin, &webhook).await,
        WebhookState::ENABLED
    );
}

/// The request that a worker sends before it dies.
fn request_of(claimed: &ClaimedDelivery) -> WebhookRequest {
    WebhookRequest {
        url: claimed.webhook.url.as_str().to_owned(),
        headers: vec![("webhook-id", claimed.delivery.id.to_string())],
        body: String::new(),
    }
}

#[tokio::test]
async fn attempts_carry_one_id_a_fresh_time_and_signatures_of_both_secrets() {
    let lab = Lab::new().await;
    let (services, admin) = (&lab.services, lab.actor(&Scope::ALL));
    let (webhook, old) = made(services, &admin).await;
    let (_, new) = rotate_secret(services, &admin, webhook.id).await.unwrap();
    assert_ne!(old, new);
    let test = test_webhook(services, &admin, webhook.id).await.unwrap();
    let receiver = Receiver::default();
    assert_eq!(send_due(services, &receiver).await, 1);
    lab.clock.advance(Duration::seconds(5));
    receiver.answer(Some(200));
    assert_eq!(send_due(services, &receiver).await, 1);
    let requests = receiver.requests.lock().unwrap();
    let headers: BTreeMap<&str, &str> = requests[0]
        .headers
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    let timestamp = lab.clock_now().unix_timestamp();
    let body = requests[0].body.as_str();
    assert_eq!(headers["webhook-id"], test.id.to_string());
    assert_eq!(headers["webhook-timestamp"], timestamp.to_string());
    let signed = [new, old].map(|secret| secret.sign(test.id, timestamp, body));
    assert_eq!(headers["webhook-signature"], signed.join(" "));
    assert!(body.starts_with("{\"type\":\"webhook.test\","), "{body}");
}

#[tokio::test]
async fn five_days_of_failures_disable_and_administrators_are_told_once() {
    let lab = Lab::new().await;
    let (services, admin) = (&lab.services, lab.actor(&Scope::ALL));
    let (webhook, _) = made(services, &admin).await;
    let receiver = Receiver::default();
    let began = lab.clock_now();
    while state(services, &admin, &webhook).await.is_enabled() {
        assert!(lab.clock_now() - began <= Duration::days(6));
        cause_event(services, &admin).await;
        send_due(services, &receiver).await;
        lab.clock.advance(Duration::hours(6));
    }
    assert!(lab.clock_now() - began > Duration::days(5));
    let disabled = WebhookState::Disabled(DisabledBy::Failures);
    assert_eq!(state(services, &admin, &webhook).await, disabled);
    assert_eq!(tell_of_disabled(services).await.unwrap(), 1);
    assert_eq!(tell_of_disabled(services).await.unwrap(), 0);
    let inbox = list_notifications(services, &admin, None, ALL);
    let inbox = &inbox.await.unwrap().items;
    assert_eq!(inbox.len(), 1);
    assert!(
        inbox[0].title.contains("lab.example.org"),
        "{}",
        inbox[0].title
    );
    let refused = test_webhook(services, &admin, webhook.id).await;
    assert_eq!(refused.unwrap_err().kind(), Some(RefusalKind::Invalid));
    let every = AuditFilter::default();
    let entries = services.audit.list(admin.organization, &every, ALL);
    let entries = entries.await.unwrap().items;
    assert_eq!(entries[0].action, AuditAction::WebhookDisabled);
    // What was not delivered is sent again by hand, once the webhook is enabled.
    let enable = WebhookChange {
        enabled: Some(true),
        ..WebhookChange::default()
    };
    update_webhook(services, &admin, webhook.id, enable)
        .await
        .unwrap();
    let failed = list_deliveries(services, &admin, webhook.id, ALL)
        .await
        .unwrap()
        .items;
    receiver.answer(Some(200));
    resend_delivery(services, &admin, webhook.id, failed[0].id)
        .await
        .unwrap();
    assert_eq!(send_due(services, &receiver).await, 1);
    assert_eq!(receiver.ids(), BTreeSet::from([failed[0].id.to_string()]));
}

#[tokio::test]
async fn ended_deliveries_are_stored_for_two_weeks() {
    let lab = Lab::new().await;
    let (services, admin) = (&lab.services, lab.actor(&Scope::ALL));
    let (webhook, _) = made(services, &admin).await;
    cause_event(services, &admin).await;
    let receiver = Receiver::default();
    receiver.answer(Some(200));
    send_due(services, &receiver).await;
    lab.clock.advance(DELIVERY_RETENTION);
    assert_eq!(sweep_deliveries(services).await.unwrap(), 0);
    lab.clock.advance(Duration::SECOND);
    assert_eq!(sweep_deliveries(services).await.unwrap(), 1);
    let left = list_deliveries(services, &admin, webhook.id, ALL)
        .await
        .unwrap();
    assert_eq!(left.items, []);
}

#[tokio::test]
async fn webhooks_are_for_administrators_and_filters_name_what_exists() {
    let lab = Lab::new().await;
    let services = &lab.services;
    let writer = lab.actor(&[Scope::Read, Scope::Write]);
    let refused = create_webhook(services, &writer, command("https://lab.example.org/")).await;
    assert_eq!(refused.unwrap_err().kind(), Some(RefusalKind::Forbidden));
    let admin = lab.actor(&Scope::ALL);
    let (webhook, _) = made(services, &admin).await;
    let of_table = |table: &str| WebhookFilters {
        table: Some(table.to_owned()),
        ..WebhookFilters::default()
    };
    let instrument = WebhookFilters {
        instrument: Some(InstrumentId::new(services.ids.next_id())),
        ..WebhookFilters::default()
    };
    let job = WebhookFilters {
        job: Some(JobId::new(services.ids.next_id())),
        ..WebhookFilters::default()
    };
    for filters in [instrument, job, of_table("experimnt")] {
        let change = WebhookChange {
            filters: Some(filters.clone()),
            ..WebhookChange::default()
        };
        let unknown = CreateWebhook {
            filters,
            ..command("https://lab.example.org/")
        };
        let refused = [
            create_webhook(services, &admin, unknown).await.unwrap_err(),
            update_webhook(services, &admin, webhook.id, change)
                .await
                .unwrap_err(),
        ];
        for error in refused {
            assert_eq!(error.kind(), Some(RefusalKind::NotFound));
        }
    }
    let known = CreateWebhook {
        filters: of_table("experiment"),
        ..command("https://lab.example.org/")
    };
    create_webhook(services, &admin, known).await.unwrap();
}

impl Lab {
    fn clock_now(&self) -> OffsetDateTime {
        self.services.clock.now()
    }
}
