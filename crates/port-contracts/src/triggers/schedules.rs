//! Contract of [`TriggerStore`](labdata_ports::triggers::TriggerStore): schedules.

use std::collections::BTreeSet;

use futures::future::join_all;
use labdata_domain::{
    jobs::Job,
    triggers::{Candidate, Category},
};
use labdata_ports::triggers::Fired;
use serde_json::{Value, json};
use time::{Duration, macros::datetime};

use crate::triggers::lab::{TriggersLab, jobs_of, run_of, tick};

fn daily(hour: u32) -> Value {
    json!({"cron": format!("0 {hour} * * *"), "timezone": "Europe/Berlin"})
}

crate::suite!(
    use triggers::schedules;

    /// A schedule starts nothing before its tick, one run at it, and nothing until the next.
    async fn a_schedule_fires_at_its_tick_and_moves_on(lab: &TriggersLab) {
        let job = lab.job("daily", Category::Schedule, daily(9)).await;
        // Winter: 09:00 in Berlin is 08:00 UTC.
        let tick = datetime!(2026-01-01 08:00 UTC);
        assert_eq!(lab.tick(tick - Duration::microseconds(1)).await, 0);
        assert_eq!(lab.tick(tick).await, 1);
        assert_eq!(lab.tick(tick + Duration::hours(23)).await, 0);
        let runs = lab.claim().await;
        assert_eq!(jobs_of(&runs), BTreeSet::from([job.id]));
        let run = run_of(&runs[0].execution);
        assert_eq!((run.trigger_file, run.source), (None, None));
        assert_eq!(lab.tick(tick + Duration::days(1)).await, 1);
    }

    /// Missed ticks start one run together, and the next tick is the first after now.
    async fn missed_ticks_fire_once(lab: &TriggersLab) {
        lab.job("daily", Category::Schedule, daily(9)).await;
        let late = datetime!(2026-01-11 12:00 UTC);
        assert_eq!(lab.tick(late).await, 1);
        assert_eq!(lab.tick(late).await, 0);
        let next = datetime!(2026-01-12 08:00 UTC);
        assert_eq!(lab.tick(next - Duration::seconds(1)).await, 0);
        assert_eq!(lab.tick(next).await, 1);
    }

    /// Concurrent workers start one run per tick.
    async fn of_racing_workers_one_fires_a_tick(lab: &TriggersLab) {
        for number in 0..5 {
            lab.job(&format!("daily {number}"), Category::Schedule, daily(9))
                .await;
        }
        let due = datetime!(2026-01-01 08:00 UTC);
        let decide = |candidate: &Candidate| tick(candidate, due);
        let mut runs = 0;
        loop {
            let looks = (0..6).map(|_| lab.triggers.fire_schedules(due, 3, &decide));
            let fired: Vec<Fired> = join_all(looks)
                .await
                .into_iter()
                .map(Result::unwrap)
                .collect();
            let round: u32 = fired.iter().map(|fired| fired.runs).sum();
            if round == 0 {
                break;
            }
            runs += round;
        }
        assert_eq!(runs, 5);
        assert_eq!(lab.claim().await.len(), 5);
    }

    /// Of more due schedules than the limit, those with the earliest ticks fire.
    async fn the_longest_due_fire_first_up_to_the_limit(lab: &TriggersLab) {
        let mut jobs = Vec::new();
        for hour in [10, 8, 9] {
            let name = format!("daily at {hour}");
            jobs.push(lab.job(&name, Category::Schedule, daily(hour)).await.id);
        }
        let due = datetime!(2026-01-01 12:00 UTC);
        let decide = |candidate: &Candidate| tick(candidate, due);
        for (handled, fired) in [(2, vec![jobs[1], jobs[2]]), (1, vec![jobs[0]])] {
            let look = lab.triggers.fire_schedules(due, 2, &decide).await.unwrap();
            assert_eq!((look.handled, look.runs), (handled, handled));
            assert_eq!(jobs_of(&lab.claim().await), BTreeSet::from_iter(fired));
        }
    }

    /// Renaming a job neither repeats nor loses a tick; setting the trigger again restarts it from that
    /// time.
    async fn a_change_of_the_job_does_not_move_its_schedule(lab: &TriggersLab) {
        let job = lab.job("daily", Category::Schedule, daily(9)).await;
        let tick = datetime!(2026-01-01 08:00 UTC);
        assert_eq!(lab.tick(tick).await, 1);
        let renamed = Job {
            name: "every day".to_owned(),
            ..job
        };
        let mut job = lab.change(&renamed).await;
        assert_eq!(lab.tick(tick + Duration::hours(1)).await, 0);
        let trigger = job.trigger.as_mut().unwrap();
        trigger.armed_at = tick + Duration::days(3) + Duration::hours(1);
        lab.change(&job).await;
        assert_eq!(lab.tick(tick + Duration::days(3)).await, 0);
        assert_eq!(lab.tick(tick + Duration::days(4)).await, 1);
    }
);
