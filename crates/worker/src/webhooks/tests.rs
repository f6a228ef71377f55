//! Tests of deliveries, against receivers of this process.

use async_trait::async_trait;
use labdata_application::{
    executions::start_execution::{StartExecution, start_execution},
    outward::webhooks::create_webhook::{CreateWebhook, create_webhook},
};
use labdata_domain::{
    ids::ApiKeyId,
    outward::webhooks::{
        AttemptResult, DeliveryState, EventPattern, MAX_PER_WEBHOOK, Webhook, WebhookFilters,
        WebhookFormat, WebhookUrl,
    },
    page::PageRequest,
    people::{
        actor::Actor,
        rights::Rights,
        role::Role,
        scope::Scope,
        tenancy::{Organization, User},
    },
};
use labdata_ports::outward::webhooks::WebhookRequest;
use tokio::sync::mpsc;

use super::*;
use crate::testing::{actor, in_memory};

/// Receivers: those at `stuck.example.org` never answer. Tells the address of each request.
struct Receivers(mpsc::UnboundedSender<String>);

#[async_trait]
impl WebhookSender for Receivers {
    async fn send(&self, request: &WebhookRequest) -> AttemptResult {
        self.0.send(request.url.clone()).unwrap();
        if request.url.contains("stuck") {
            std::future::pending::<()>().await;
        }
        AttemptResult::Responded(200)
    }
}

async fn webhook(services: &Services, actor: &Actor, url: &str) -> Webhook {
    let command = CreateWebhook {
        url: WebhookUrl::parse(url).unwrap(),
        events: vec![EventPattern::ANY],
        filters: WebhookFilters::default(),
        format: WebhookFormat::Standard,
        enabled: true,
    };
    create_webhook(services, actor, command).await.unwrap().0
}

/// A person of another organization than [`actor`]'s.
async fn stranger(services: &Services) -> Actor {
    let organization = Organization {
        id: services.ids.next_id().into(),
        name: "another lab".to_owned(),
        created_at: services.clock.now(),
    };
    let user = User {
        id: services.ids.next_id().into(),
        organization: organization.id,
        email: "eve@example.org".to_owned(),
        name: "Eve".to_owned(),
        created_at: services.clock.now(),
        disabled_at: None,
        role: Role::Admin,
        groups: Vec::new(),
    };
    let tenancy = &services.tenancy;
    tenancy.ensure_organization(&organization).await.unwrap();
    tenancy.ensure_user(&user).await.unwrap();
    Actor {
        organization: organization.id,
        user: user.id,
        api_key: ApiKeyId::new(services.ids.next_id()),
        scopes: Scope::ALL.into_iter().collect(),
        rights: Rights::admin(),
        execution: None,
    }
}

async fn cause_events(services: &Services, actor: &Actor, count: usize) {
    for _ in 0..count {
        let started = start_execution(services, actor, StartExecution::default());
        started.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn receivers_that_never_answer_delay_no_other_organization() {
    let services = in_memory();
    let slow = actor(&services).await;
    let quick = stranger(&services).await;
    webhook(&services, &slow, "https://stuck.example.org/").await;
    let told = webhook(&services, &quick, "https://quick.example.org/").await;
    cause_events(&services, &slow, 200).await;
    let (sender, mut received) = mpsc::unbounded_channel();
    let (stop, stopping) = watch::channel(false);
    let settings = WebhookSettings(Arc::new(Receivers(sender)));
    let worker = tokio::spawn(deliver_to_webhooks(services.clone(), settings, stopping));
    for _ in 0..MAX_PER_WEBHOOK {
        assert_eq!(received.recv().await.unwrap(), "https://stuck.example.org/");
    }
    // The clock of the test moves on only while all wait, so this is what a receiver sees.
    let caused = tokio::time::Instant::now();
    cause_events(&services, &quick, 3).await;
    for _ in 0..3 {
        assert_eq!(received.recv().await.unwrap(), "https://quick.example.org/");
    }
    assert!(caused.elapsed() <= POLL_INTERVAL, "{:?}", caused.elapsed());
    assert!(
        received.is_empty(),
        "the stuck receiver has no further slot"
    );
    stop.send_replace(true);
    worker.abort();
    let all = PageRequest {
        limit: None,
        after: None,
    };
    let deliveries = services
        .webhooks
        .deliveries(quick.organization, told.id, all);
    let deliveries = deliveries.await.unwrap().items;
    let is_delivered = |state| matches!(state, DeliveryState::Delivered { .. });
    assert_eq!(deliveries.len(), 3);
    assert!(
        deliveries
            .iter()
            .all(|it| is_delivered(it.state) && it.attempts == 1)
    );
}

#[tokio::test]
async fn a_stop_waits_for_deliveries_in_flight() {
    let services = in_memory();
    let actor = actor(&services).await;
    webhook(&services, &actor, "https://quick.example.org/").await;
    cause_events(&services, &actor, 1).await;
    let (sender, mut received) = mpsc::unbounded_channel();
    let (stop, stopping) = watch::channel(false);
    let settings = WebhookSettings(Arc::new(Receivers(sender)));
    let worker = tokio::spawn(deliver_to_webhooks(services.clone(), settings, stopping));
    received.recv().await.unwrap();
    stop.send_replace(true);
    worker.await.unwrap();
    assert_eq!(
        services
            .health
            .figures()
            .await
            .unwrap()
            .oldest_delivery_due_at,
        None
    );
}
