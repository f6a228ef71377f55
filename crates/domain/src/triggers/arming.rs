//! Arming: when a job's trigger starts to count, and the first tick of its schedule.

use time::OffsetDateTime;

use super::Trigger;

/// Consequence of a change of a job for its stored trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arming {
    /// The job has no trigger any more; it has no next tick.
    Disarm,
    /// The trigger has not changed. Its next tick stays as it is: the schedule may have ticked since
    /// the trigger was set.
    Keep,
    /// The trigger is new or differs from the one before. It replaces that one, next tick included.
    Arm {
        /// First tick of its schedule; `None` unless it is one.
        first_tick: Option<OffsetDateTime>,
    },
}

impl Arming {
    /// The consequence of replacing the stored trigger `before` by `after`.
    #[must_use]
    pub fn of_change(before: Option<&Trigger>, after: Option<&Trigger>) -> Self {
        match after {
            None => Self::Disarm,
            // Arming again would skip a tick that is due and has not fired yet.
            Some(after) if before == Some(after) => Self::Keep,
            Some(after) => Self::Arm {
                first_tick: after.next_after(after.armed_at),
            },
        }
    }
}

impl Trigger {
    /// Arms the trigger of a job that leaves the archive at that time. Events and ticks that passed
    /// in the archive do not start it.
    pub fn rearm(&mut self, restored_at: OffsetDateTime) {
        self.armed_at = restored_at;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};
    use time::{Duration, macros::datetime};
    use uuid::Uuid;

    use super::*;
    use crate::{
        ids::{InstrumentId, TriggerId, UserId},
        triggers::Category,
    };

    const NOW: OffsetDateTime = datetime!(2026-03-01 12:00 UTC);

    fn upload() -> Trigger {
        Trigger {
            id: TriggerId::new(Uuid::from_u128(7)),
            category: Category::FileUploaded,
            instrument: None,
            conditions: Map::new(),
            set_by: UserId::new(Uuid::from_u128(9)),
            armed_at: NOW,
        }
    }

    fn schedule() -> Trigger {
        let mut conditions = Map::new();
        conditions.insert("cron".to_owned(), json!("0 9 * * *"));
        Trigger {
            category: Category::Schedule,
            conditions,
            ..upload()
        }
    }

    #[test]
    fn any_difference_arms_a_trigger_again() {
        let before = upload();
        let arm = Arming::Arm { first_tick: None };
        assert_eq!(Arming::of_change(None, Some(&before)), arm);
        assert_eq!(
            Arming::of_change(Some(&before), Some(&upload())),
            Arming::Keep
        );
        let later = Trigger {
            armed_at: NOW + Duration::hours(1),
            ..upload()
        };
        let other_conditions = Trigger {
            conditions: schedule().conditions,
            ..upload()
        };
        let other_instrument = Trigger {
            instrument: Some(InstrumentId::new(Uuid::from_u128(8))),
            ..upload()
        };
        let other_user = Trigger {
            set_by: UserId::new(Uuid::from_u128(10)),
            ..upload()
        };
        for after in [later, other_conditions, other_instrument, other_user] {
            assert_eq!(Arming::of_change(Some(&before), Some(&after)), arm);
        }
    }

    #[test]
    fn an_armed_schedule_ticks_first_after_it_was_armed() {
        let first_tick = Some(datetime!(2026-03-02 09:00 UTC));
        let arm = Arming::Arm { first_tick };
        assert_eq!(Arming::of_change(None, Some(&schedule())), arm);
        assert_eq!(Arming::of_change(Some(&upload()), Some(&schedule())), arm);
    }

    #[test]
    fn a_job_without_a_trigger_is_disarmed() {
        assert_eq!(Arming::of_change(None, None), Arming::Disarm);
        assert_eq!(Arming::of_change(Some(&schedule()), None), Arming::Disarm);
    }

    #[test]
    fn a_restored_schedule_ticks_first_after_its_job_was_restored() {
        let mut restored = schedule();
        restored.rearm(NOW + Duration::days(30));
        let first_tick = Some(datetime!(2026-04-01 09:00 UTC));
        assert_eq!(
            Arming::of_change(Some(&schedule()), Some(&restored)),
            Arming::Arm { first_tick }
        );
    }
}
