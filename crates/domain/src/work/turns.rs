//! Turn-taking: the order in which waiting work of several organizations starts.

use std::collections::BTreeMap;

use time::OffsetDateTime;

use super::WorkId;
use crate::ids::OrganizationId;

/// Work that waits for a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitingWork {
    /// The organization that queued it.
    pub organization: OrganizationId,
    /// Its id.
    pub id: WorkId,
    /// When it was queued.
    pub queued_at: OffsetDateTime,
}

/// Free slots of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreeSlots {
    /// Number of runs that the worker can start.
    pub free: u32,
    /// Number of these that only organizations without a running run may take.
    pub reserved: u32,
}

impl FreeSlots {
    /// Returns the free slots of a worker that runs up to `concurrency` runs at a time. One more is
    /// reserved, so that long runs of one organization never block all others.
    #[must_use]
    pub const fn of_worker(concurrency: u32, running: u32) -> Self {
        // A slot taken from the setting would stay idle where no other organization has work, and a script that waits for a run which it started would wait forever. Who sets 1 wants one at a time.
        let reserved = if concurrency > 1 { 1 } else { 0 };
        Self {
            free: concurrency.saturating_add(reserved).saturating_sub(running),
            reserved,
        }
    }

    /// Returns that number of slots for any organization.
    #[must_use]
    pub const fn for_any(free: u32) -> Self {
        Self { free, reserved: 0 }
    }

    /// Returns the number of slots that an organization with a running run may take.
    #[must_use]
    pub const fn for_running(self) -> u32 {
        self.free.saturating_sub(self.reserved)
    }
}

/// The next work to start in the free slots, in the order in which it was queued.
///
/// Organizations take turns: the next work belongs to the organization with the least running, and
/// among those it is the oldest. `running` counts the running work of each organization.
#[must_use]
pub fn next_work(
    mut waiting: Vec<WaitingWork>,
    running: &BTreeMap<OrganizationId, u64>,
    slots: FreeSlots,
) -> Vec<WaitingWork> {
    let age = |work: &WaitingWork| (work.queued_at, work.id);
    waiting.sort_by_key(age);
    // Running work is turns already taken, so a busy organization waits for the rest.
    let mut turns = running.clone();
    let mut in_turns: Vec<(u64, WaitingWork)> = waiting
        .into_iter()
        .map(|work| {
            let turn = turns.entry(work.organization).or_default();
            *turn += 1;
            (*turn, work)
        })
        .collect();
    // The sort is stable: within a turn the oldest is first.
    in_turns.sort_by_key(|(turn, _)| *turn);
    let for_running = slots.for_running();
    let mut next: Vec<WaitingWork> = (0..slots.free)
        .zip(in_turns)
        // Turn 1 means that nothing of the organization runs, so a reserved slot is open to it.
        .filter(|(slot, (turn, _))| *turn == 1 || *slot < for_running)
        .map(|(_, (_, work))| work)
        .collect();
    next.sort_by_key(age);
    next
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;

    use time::Duration;
    use uuid::Uuid;

    use super::*;
    use crate::work::WorkKind;

    fn organization(number: u128) -> OrganizationId {
        OrganizationId::new(Uuid::from_u128(number))
    }

    /// Runs of these organizations, queued a second after each other.
    fn waiting(organizations: &[u128]) -> Vec<WaitingWork> {
        (1_u8..)
            .zip(organizations)
            .map(|(second, number)| WaitingWork {
                organization: organization(*number),
                id: WorkKind::Run.work(Uuid::from_u128(second.into())),
                queued_at: OffsetDateTime::UNIX_EPOCH + Duration::seconds(second.into()),
            })
            .collect()
    }

    /// Numbers of the runs that start next, by their age.
    fn next(organizations: &[u128], running: &[(u128, u64)], limit: u32) -> Vec<u128> {
        next_in(organizations, running, FreeSlots::for_any(limit))
    }

    fn next_in(organizations: &[u128], running: &[(u128, u64)], slots: FreeSlots) -> Vec<u128> {
        let running = running
            .iter()
            .map(|(number, runs)| (organization(*number), *runs));
        let mut waiting = waiting(organizations);
        waiting.reverse();
        next_work(waiting, &running.collect(), slots)
            .iter()
            .map(|run| run.id.as_uuid().as_u128())
            .collect()
    }

    #[test]
    fn the_oldest_runs_of_one_organization_start_first() {
        assert_eq!(next(&[1, 1, 1], &[], 2), [1, 2]);
        assert_eq!(next(&[1, 1, 1], &[(1, 5)], 9), [1, 2, 3]);
        assert!(next(&[1], &[], 0).is_empty());
    }

    #[test]
    fn a_long_queue_of_one_organization_does_not_delay_another() {
        assert_eq!(next(&[1, 1, 1, 2], &[], 2), [1, 4]);
        assert_eq!(next(&[1, 1, 1, 2, 2], &[], 3), [1, 2, 4]);
    }

    #[test]
    fn the_organization_with_fewer_running_runs_is_next() {
        assert_eq!(next(&[1, 2], &[(1, 1)], 1), [2]);
        assert_eq!(next(&[1, 2], &[(1, 1), (2, 1)], 1), [1]);
        assert_eq!(next(&[1, 1, 2, 2], &[(1, 2)], 3), [1, 3, 4]);
    }

    #[test]
    fn an_organization_has_all_slots_and_another_one_more() {
        let idle = FreeSlots::of_worker(2, 0);
        assert_eq!(next_in(&[1, 1, 1], &[], idle), [1, 2]);
        assert_eq!(next_in(&[1, 1, 2], &[], idle), [1, 3]);
        // A script that waits for a run which it started sees it start.
        let busy = FreeSlots::of_worker(2, 1);
        assert_eq!(next_in(&[1, 1], &[(1, 1)], busy), [1]);
        let full = FreeSlots::of_worker(2, 2);
        assert!(next_in(&[1], &[(1, 2)], full).is_empty());
        assert_eq!(next_in(&[1, 2], &[(1, 2)], full), [2]);
        let over = FreeSlots::of_worker(2, 3);
        assert!(next_in(&[1, 3], &[(1, 2), (2, 1)], over).is_empty());
    }

    #[test]
    fn a_worker_of_one_slot_runs_one_at_a_time() {
        assert_eq!(next_in(&[1, 2], &[], FreeSlots::of_worker(1, 0)), [1]);
        assert_eq!(next_in(&[1], &[(1, 1)], FreeSlots::of_worker(1, 0)), [1]);
        assert!(next_in(&[2], &[(1, 1)], FreeSlots::of_worker(1, 1)).is_empty());
    }

    #[test]
    fn of_runs_queued_at_the_same_time_the_smaller_id_starts_first() {
        let mut same = waiting(&[1, 1]);
        for run in &mut same {
            run.queued_at = OffsetDateTime::UNIX_EPOCH;
        }
        same.sort_by_key(|run| Reverse(run.id));
        let first = next_work(same, &BTreeMap::new(), FreeSlots::for_any(1));
        assert_eq!(first.first().map(|run| run.id.as_uuid().as_u128()), Some(1));
    }
}
