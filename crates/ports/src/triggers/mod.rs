//! Triggers that fire.

pub mod events;

use async_trait::async_trait;
use time::OffsetDateTime;

use crate::{IdSource, PortError, runs::Wakeups};

/// What became of a look at what happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fired {
    /// How many events or ticks were acted on.
    pub handled: u32,
    /// How many runs were queued for them.
    pub runs: u32,
}

/// Where triggers meet what they wait for. The jobs of archived triggers do not run.
#[async_trait]
pub trait TriggerStore: Send + Sync {
    /// Acts on up to `limit` events of all organizations, the oldest first: queues the runs by
    /// which [`labdata_domain::triggers::Candidate::respond`] answers them, and deletes the
    /// events, all in one step. However many servers call it at once, and wherever one of them
    /// dies, each event MUST be acted on exactly once.
    async fn act_on_events(
        &self,
        ids: &dyn IdSource,
        now: OffsetDateTime,
        limit: u32,
    ) -> Result<Fired, PortError>;

    /// Queues a run for each of up to `limit` schedules that have come to a tick, and moves them
    /// on to their next tick after `now`, in one step: of racing calls one MUST fire a tick, and
    /// ticks that passed while nobody looked fire once together.
    async fn fire_schedules(
        &self,
        ids: &dyn IdSource,
        now: OffsetDateTime,
        limit: u32,
    ) -> Result<Fired, PortError>;

    /// Subscribes to news of events, from whatever server they come.
    fn subscribe(&self) -> Box<dyn Wakeups>;
}
