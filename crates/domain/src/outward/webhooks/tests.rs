//! Tests of webhooks.

use uuid::Uuid;

use super::*;
use crate::ids::FileId;

const NOW: OffsetDateTime = OffsetDateTime::UNIX_EPOCH;

fn webhook() -> Webhook {
    Webhook {
        id: WebhookId::new(Uuid::from_u128(1)),
        url: WebhookUrl::parse("https://lab.example.org/hook").unwrap(),
        events: vec![EventPattern::ANY],
        filters: WebhookFilters::default(),
        format: WebhookFormat::Standard,
        state: WebhookState::ENABLED,
        secret: SecretVersion::FIRST,
        created_by: UserId::new(Uuid::from_u128(2)),
        created_at: NOW,
    }
}

fn failed(at: OffsetDateTime) -> DeliveryOutcome {
    DeliveryOutcome::Failed {
        at,
        status: None,
        error: "down".to_owned(),
        gone: false,
    }
}

#[test]
fn patterns_are_the_types_of_events_and_all() {
    let names: Vec<&str> = EventPattern::ALL.map(EventPattern::as_str).into();
    assert_eq!(names[..TYPES], LoggedEventKind::TYPES);
    assert_eq!(names[TYPES], "*");
    for name in names {
        assert_eq!(
            EventPattern::from_name(name).map(EventPattern::as_str),
            Some(name)
        );
    }
    assert_eq!(EventPattern::from_name("file.*"), None);
}

#[test]
fn a_webhook_receives_what_it_asks_for_and_nobody_elses_notifications() {
    let event = LoggedEventKind::FileConfirmed(FileId::new(Uuid::nil()));
    let none = FilteredRecords::default();
    assert!(webhook().receives(&event, None, &none));
    assert!(webhook().receives(&event, Some(webhook().created_by), &none));
    assert!(!webhook().receives(&event, Some(UserId::new(Uuid::nil())), &none));
    let other = Webhook {
        events: vec![EventPattern::from_name("table.changed").unwrap()],
        ..webhook()
    };
    assert!(!other.receives(&event, None, &none));
    let disabled = Webhook {
        state: WebhookState::Disabled(DisabledBy::Person),
        ..webhook()
    };
    assert!(!disabled.receives(&event, None, &none));
}

#[test]
fn all_filters_must_pass() {
    let records = FilteredRecords {
        table: Some("sample".to_owned()),
        instrument: Some(InstrumentId::new(Uuid::from_u128(1))),
        jobs: vec![
            JobId::new(Uuid::from_u128(2)),
            JobId::new(Uuid::from_u128(3)),
        ],
    };
    let filters = WebhookFilters {
        table: Some("sample".to_owned()),
        instrument: Some(InstrumentId::new(Uuid::from_u128(1))),
        job: Some(JobId::new(Uuid::from_u128(3))),
    };
    assert!(filters.pass(&records));
    assert!(!filters.pass(&FilteredRecords::default()));
    let other_job = WebhookFilters {
        job: Some(JobId::new(Uuid::from_u128(4))),
        ..filters
    };
    assert!(!other_job.pass(&records));
}

#[test]
fn five_days_of_failures_disable_and_a_delivery_in_between_does_not() {
    let state = WebhookState::ENABLED.after(&failed(NOW));
    assert!(state.is_failing());
    let almost = NOW + FAILING_TIME - Duration::SECOND;
    assert!(state.after(&failed(almost)).is_enabled());
    let disabled = state.after(&failed(NOW + FAILING_TIME));
    assert_eq!(disabled, WebhookState::Disabled(DisabledBy::Failures));
    let delivered = DeliveryOutcome::Delivered {
        at: almost,
        status: 200,
    };
    let well = state.after(&delivered);
    assert_eq!(well, WebhookState::ENABLED);
    assert!(well.after(&failed(NOW + FAILING_TIME)).is_enabled());
    assert_eq!(disabled.after(&delivered), disabled);
}

#[test]
fn gone_disables_at_once_and_administrators_are_told() {
    let gone = DeliveryOutcome::Failed {
        at: NOW,
        status: Some(410),
        error: "the receiver answered 410".to_owned(),
        gone: true,
    };
    let disabled = Webhook {
        state: webhook().state.after(&gone),
        ..webhook()
    };
    assert_eq!(disabled.state, WebhookState::Disabled(DisabledBy::Gone));
    let notice = disabled.disabled_notice(NOW).unwrap();
    assert_eq!(notice.check(), Ok(()));
    assert!(notice.title.contains("lab.example.org"), "{}", notice.title);
    assert_eq!(webhook().disabled_notice(NOW), None);
}

#[test]
fn a_change_keeps_what_it_does_not_name() {
    assert_eq!(WebhookChange::default().apply(webhook()), webhook());
    let disable = WebhookChange {
        enabled: Some(false),
        ..WebhookChange::default()
    };
    let disabled = disable.apply(webhook());
    assert_eq!(disabled.state, WebhookState::Disabled(DisabledBy::Person));
    assert_eq!(disabled.disabled_notice(NOW), None);
    let enable = WebhookChange {
        enabled: Some(true),
        ..WebhookChange::default()
    };
    assert_eq!(enable.apply(disabled), webhook());
    let failing = Webhook {
        state: webhook().state.after(&failed(NOW)),
        ..webhook()
    };
    // Enabling what is enabled does not forget its failures.
    assert_eq!(enable.apply(failing.clone()), failing);
}
