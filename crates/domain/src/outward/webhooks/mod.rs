//! Webhooks: addresses to which events are sent.

mod delivery;
mod fairness;
mod format;
mod message;
mod outbox;
mod outcome;
mod refusal;
mod schedule;
mod secret;
mod url;

use time::{Duration, OffsetDateTime};

pub use self::outcome::{DeliveryOutcome, DeliveryState, MAX_STORED_ERROR};
pub use self::{
    delivery::{DISABLED_ERROR, Delivery, DeliverySubject, TEST_TYPE},
    fairness::{
        DueDelivery, HeldDelivery, MAX_PER_FAILING_WEBHOOK, MAX_PER_ORGANIZATION, MAX_PER_WEBHOOK,
        MAX_TO_FAILING_WEBHOOKS, fair_turns,
    },
    format::WebhookFormat,
    message::message,
    outbox::{EventReceiver, MAX_EVENTS_PER_ORGANIZATION, OutboxEvent, fair_events},
    refusal::{MAX_WEBHOOKS, TooManyWebhooks, WebhookDisabled},
    schedule::{ATTEMPT_TIMEOUT, Attempt, AttemptResult, DELIVERY_TIME},
    secret::{OLD_SECRET_TIME, SecretVersion, WebhookSecret, signatures},
    url::{InvalidWebhookUrl, MAX_URL_LENGTH, WebhookUrl},
};

use crate::{
    events::LoggedEventKind,
    ids::{InstrumentId, JobId, UserId, WebhookId},
    notifications::Draft,
};

/// Time of failures, without a delivery in between, after which a webhook is disabled.
pub const FAILING_TIME: Duration = Duration::days(5);

/// Time for which ended deliveries are stored.
pub const DELIVERY_RETENTION: Duration = Duration::days(14);

/// Number of event types.
const TYPES: usize = LoggedEventKind::TYPES.len();

/// Event types to which a webhook subscribes: one of them, or all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventPattern(&'static str);

impl EventPattern {
    /// Every type.
    pub const ANY: Self = Self("*");

    /// All patterns: each type, then [`Self::ANY`].
    pub const ALL: [Self; TYPES + 1] = Self::all();

    #[expect(
        clippy::indexing_slicing,
        reason = "computed at compile time, where an index out of bounds is an error"
    )]
    const fn all() -> [Self; TYPES + 1] {
        let mut all = [Self::ANY; TYPES + 1];
        let mut index = 0;
        while index < TYPES {
            all[index] = Self(LoggedEventKind::TYPES[index]);
            index += 1;
        }
        all
    }

    /// Its name in the API and the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.0
    }

    /// The pattern of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|pattern| pattern.0 == name)
    }

    /// Returns whether events of that type fit it.
    #[must_use]
    pub fn matches(self, event: &LoggedEventKind) -> bool {
        self == Self::ANY || self.0 == event.as_str()
    }
}

/// Records to which the events of a webhook must refer. Those that are `None` do not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WebhookFilters {
    /// Name of the table.
    pub table: Option<String>,
    /// Instrument of the event, or of its file.
    pub instrument: Option<InstrumentId>,
    /// Job of the event's execution, or of the execution of its file.
    pub job: Option<JobId>,
}

/// Records of an event that filters look at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilteredRecords {
    /// Name of the event's table.
    pub table: Option<String>,
    /// Instrument of the event, or of its file.
    pub instrument: Option<InstrumentId>,
    /// Jobs of the event's execution, and of the execution of its file.
    pub jobs: Vec<JobId>,
}

impl WebhookFilters {
    /// Returns whether an event of these records passes.
    #[must_use]
    pub fn pass(&self, records: &FilteredRecords) -> bool {
        let table = self.table.is_none() || self.table == records.table;
        let instrument = self.instrument.is_none() || self.instrument == records.instrument;
        let job = self.job.is_none_or(|job| records.jobs.contains(&job));
        table && instrument && job
    }
}

/// Why a webhook is disabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisabledBy {
    /// An administrator disabled it.
    Person,
    /// Its address answered 410: it wants no further deliveries.
    Gone,
    /// Deliveries failed for [`FAILING_TIME`].
    Failures,
}

impl DisabledBy {
    /// All reasons.
    pub const ALL: [Self; 3] = [Self::Person, Self::Gone, Self::Failures];

    /// Its name in the API and the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Gone => "gone",
            Self::Failures => "failures",
        }
    }

    /// The reason of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == name)
    }
}

/// State of a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebhookState {
    /// It receives events.
    Enabled {
        /// Time of the first failure since the last delivery.
        failing_since: Option<OffsetDateTime>,
    },
    /// It receives nothing.
    Disabled(DisabledBy),
}

impl WebhookState {
    /// State of a new webhook, and of one that is enabled again.
    pub const ENABLED: Self = Self::Enabled {
        failing_since: None,
    };

    /// Returns whether the webhook receives events.
    #[must_use]
    pub const fn is_enabled(self) -> bool {
        matches!(self, Self::Enabled { .. })
    }

    /// Returns whether deliveries to it fail now.
    #[must_use]
    pub const fn is_failing(self) -> bool {
        matches!(
            self,
            Self::Enabled {
                failing_since: Some(_)
            }
        )
    }

    /// The state after an attempt at one of its deliveries. A disabled webhook stays as it is.
    #[must_use]
    pub fn after(self, outcome: &DeliveryOutcome) -> Self {
        let Self::Enabled { failing_since } = self else {
            return self;
        };
        match outcome {
            DeliveryOutcome::Delivered { .. } => Self::ENABLED,
            DeliveryOutcome::Failed { gone: true, .. } => Self::Disabled(DisabledBy::Gone),
            DeliveryOutcome::Retry { at, .. } | DeliveryOutcome::Failed { at, .. } => {
                let since = failing_since.unwrap_or(*at);
                if *at - since >= FAILING_TIME {
                    Self::Disabled(DisabledBy::Failures)
                } else {
                    Self::Enabled {
                        failing_since: Some(since),
                    }
                }
            }
        }
    }
}

/// A webhook of an organization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// Id.
    pub id: WebhookId,
    /// Address that receives the deliveries.
    pub url: WebhookUrl,
    /// Event types; never empty.
    pub events: Vec<EventPattern>,
    /// Filters.
    pub filters: WebhookFilters,
    /// Form of the bodies.
    pub format: WebhookFormat,
    /// State.
    pub state: WebhookState,
    /// Secret that signs.
    pub secret: SecretVersion,
    /// User who made it. Of notifications, it receives those to this user only.
    pub created_by: UserId,
    /// Creation time.
    pub created_at: OffsetDateTime,
}

impl Webhook {
    /// Returns whether it receives an event, which only `user` may see unless `None`.
    #[must_use]
    pub fn receives(
        &self,
        event: &LoggedEventKind,
        user: Option<UserId>,
        records: &FilteredRecords,
    ) -> bool {
        self.state.is_enabled()
            && user.is_none_or(|user| user == self.created_by)
            && self.events.iter().any(|pattern| pattern.matches(event))
            && self.filters.pass(records)
    }

    /// Message to the administrators about a webhook that the platform disabled at that time; `None` for any
    /// other.
    #[must_use]
    pub fn disabled_notice(&self, at: OffsetDateTime) -> Option<Draft> {
        let WebhookState::Disabled(reason) = self.state else {
            return None;
        };
        let why = match reason {
            DisabledBy::Person => return None,
            DisabledBy::Gone => "answered 410: it wants no further deliveries",
            DisabledBy::Failures => "did not take a delivery for five days",
        };
        let host = self.url.host();
        Some(Draft {
            title: format!("A webhook to {host} was disabled")
                .chars()
                .take(crate::notifications::MAX_TITLE)
                .collect(),
            // With the time: a webhook may be enabled and disabled again.
            dedupe_key: format!("webhook-disabled:{}:{}", self.id, at.unix_timestamp()),
            body: format!(
                "Its address {why}. Enable it again when the receiver works; what was not delivered is in the \
                 list of its deliveries, and can be sent again."
            ),
            action_url: String::new(),
            data: None,
        })
    }
}

/// Change of a webhook. Fields that are `None` stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WebhookChange {
    /// Address.
    pub url: Option<WebhookUrl>,
    /// Event types.
    pub events: Option<Vec<EventPattern>>,
    /// Filters, all of them.
    pub filters: Option<WebhookFilters>,
    /// Form of the bodies.
    pub format: Option<WebhookFormat>,
    /// True enables it, false disables it.
    pub enabled: Option<bool>,
}

impl WebhookChange {
    /// The webhook after the change.
    #[must_use]
    pub fn apply(&self, webhook: Webhook) -> Webhook {
        let state = match (self.enabled, webhook.state) {
            (Some(true), WebhookState::Disabled(_)) => WebhookState::ENABLED,
            (Some(false), WebhookState::Enabled { .. }) => {
                WebhookState::Disabled(DisabledBy::Person)
            }
            (_, state) => state,
        };
        Webhook {
            url: self.url.clone().unwrap_or(webhook.url),
            events: self.events.clone().unwrap_or(webhook.events),
            filters: self.filters.clone().unwrap_or(webhook.filters),
            format: self.format.unwrap_or(webhook.format),
            state,
            ..webhook
        }
    }
}

#[cfg(test)]
mod tests;
