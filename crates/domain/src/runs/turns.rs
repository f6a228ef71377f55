//! Turn-taking: the order in which waiting runs of several organizations start.

use std::collections::BTreeMap;

use time::OffsetDateTime;

use crate::ids::{ExecutionId, OrganizationId};

/// A run that waits for a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitingRun {
    /// The organization that queued it.
    pub organization: OrganizationId,
    /// The run's execution.
    pub id: ExecutionId,
    /// When it was queued.
    pub queued_at: OffsetDateTime,
}

/// The next `limit` runs to start, in the order in which they were queued.
///
/// Organizations take turns: the next run belongs to the organization with the fewest running, and
/// among those it is the oldest. `running` counts the running runs of each organization.
#[must_use]
pub fn next_runs(
    mut waiting: Vec<WaitingRun>,
    running: &BTreeMap<OrganizationId, u64>,
    limit: u32,
) -> Vec<WaitingRun> {
    let age = |run: &WaitingRun| (run.queued_at, run.id);
    waiting.sort_by_key(age);
    let mut turns = running.clone();
    // The sort is stable: within a turn the oldest run is first.
    waiting.sort_by_cached_key(|run| {
        let turn = turns.entry(run.organization).or_default();
        *turn += 1;
        *turn
    });
    waiting.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    waiting.sort_by_key(age);
    waiting
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;

    use time::Duration;
    use uuid::Uuid;

    use super::*;

    fn organization(number: u128) -> OrganizationId {
        OrganizationId::new(Uuid::from_u128(number))
    }

    /// Runs of these organizations, queued a second after each other.
    fn waiting(organizations: &[u128]) -> Vec<WaitingRun> {
        (1_u8..)
            .zip(organizations)
            .map(|(second, number)| WaitingRun {
                organization: organization(*number),
                id: ExecutionId::new(Uuid::from_u128(second.into())),
                queued_at: OffsetDateTime::UNIX_EPOCH + Duration::seconds(second.into()),
            })
            .collect()
    }

    /// Numbers of the runs that start next, by their age.
    fn next(organizations: &[u128], running: &[(u128, u64)], limit: u32) -> Vec<u128> {
        let running = running
            .iter()
            .map(|(number, runs)| (organization(*number), *runs));
        let mut waiting = waiting(organizations);
        waiting.reverse();
        next_runs(waiting, &running.collect(), limit)
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
    fn of_runs_queued_at_the_same_time_the_smaller_id_starts_first() {
        let mut same = waiting(&[1, 1]);
        for run in &mut same {
            run.queued_at = OffsetDateTime::UNIX_EPOCH;
        }
        same.sort_by_key(|run| Reverse(run.id));
        let first = next_runs(same, &BTreeMap::new(), 1);
        assert_eq!(first.first().map(|run| run.id.as_uuid().as_u128()), Some(1));
    }
}
