//! Contract of [`JobRepository`](labdata_ports::jobs::JobRepository): jobs with a script, and their changes.

use futures::future::join_all;
use labdata_domain::{
    ids::JobId,
    jobs::{Job, PublishStatus, ScriptVersion},
    page::PageRequest,
    people::tenancy::User,
    triggers::{Category, Trigger},
};
use labdata_ports::jobs::JobFilter;
use serde_json::json;

use crate::{
    assertions::{assert_conflict_is, assert_not_found, assert_one_winner},
    given::{self, at},
    jobs::JobsLab,
    paging::ALL,
};

/// A job with a first version of its script, not stored yet.
fn with_script(name: &str, user: &User) -> (Job, ScriptVersion) {
    let job = Job {
        version_number: Some(1),
        parameters: given::parameters(),
        ..given::job(name, at(0))
    };
    (job, given::script(1, "print(1)\n", user.id))
}

impl JobsLab {
    /// A stored job with a first version of its script.
    async fn added(&self, name: &str) -> Job {
        let (job, script) = with_script(name, &self.ada);
        self.jobs.add(self.ours, &job, &script).await.unwrap();
        job
    }

    /// Changes a job from the state that was read; returns whether it was still its state.
    async fn update(&self, read: &Job, changed: &Job, script: Option<&ScriptVersion>) -> bool {
        let updated = self.jobs.update(self.ours, read.revision, changed, script);
        updated.await.unwrap()
    }

    /// Stores the next version of the job's script.
    async fn save(&self, job: &Job, code: &str) -> Job {
        let number = job.version_number.unwrap_or(0) + 1;
        let changed = Job {
            version_number: Some(number),
            ..job.clone()
        };
        let script = given::script(number, code, self.ada.id);
        assert!(self.update(job, &changed, Some(&script)).await);
        self.get(job.id).await
    }

    async fn get(&self, job: JobId) -> Job {
        self.jobs.get(self.ours, job).await.unwrap()
    }

    async fn numbers(&self, job: JobId, page: PageRequest) -> Vec<u32> {
        let page = self.jobs.versions(self.ours, job, page).await.unwrap();
        page.items.iter().map(|version| version.number).collect()
    }
}

crate::suite!(
    use jobs::changes as job_changes;

    /// A new job and its script are stored together, every field of them.
    async fn an_added_job_reads_back_with_its_script(lab: &JobsLab) {
        let (job, script) = with_script("parse", &lab.ada);
        lab.jobs.add(lab.ours, &job, &script).await.unwrap();
        assert_eq!(lab.get(job.id).await, job);
        assert_eq!(lab.jobs.version(lab.ours, job.id, 1).await.unwrap(), script);
    }

    /// A name belongs to one job of the organization, archived or not; a refused job is not stored.
    async fn a_name_that_is_taken_is_refused(lab: &JobsLab) {
        let archived = Job {
            archived: true,
            ..given::job("archived", at(0))
        };
        lab.jobs.ensure(lab.ours, &archived).await.unwrap();
        lab.added("active").await;
        for name in ["archived", "active"] {
            let (again, script) = with_script(name, &lab.ada);
            assert_conflict_is(
                lab.jobs.add(lab.ours, &again, &script).await,
                &again.name_taken(),
            );
            assert_not_found(lab.jobs.get(lab.ours, again.id).await);
            assert_not_found(lab.jobs.version(lab.ours, again.id, 1).await);
            let (other, script) = with_script(name, &lab.eve);
            lab.jobs.add(lab.theirs, &other, &script).await.unwrap();
        }
    }

    /// Of jobs added concurrently under one name exactly one is stored.
    async fn of_racing_additions_one_wins(lab: &JobsLab) {
        let candidates: Vec<_> = (0..8).map(|_| with_script("parse", &lab.ada)).collect();
        let calls = candidates.iter().map(async |(job, script)| {
            lab.jobs.add(lab.ours, job, script).await?;
            Ok(job.id)
        });
        let winner = assert_one_winner(join_all(calls).await);
        let stored = lab
            .jobs
            .list(lab.ours, &JobFilter::default(), ALL)
            .await
            .unwrap();
        let ids: Vec<JobId> = stored.items.iter().map(|job| job.id).collect();
        assert_eq!(ids, [winner]);
    }

    /// A change replaces every field and increments the revision.
    async fn every_field_can_change(lab: &JobsLab) {
        let job = lab.added("parse").await;
        let changed = Job {
            name: "parse plates".to_owned(),
            archived: true,
            description: None,
            version_number: Some(2),
            publish_status: PublishStatus::InReview,
            published_version: Some(1),
            parameters: Vec::new(),
            ..job.clone()
        };
        let script = given::script(2, "print(2)\n", lab.ada.id);
        assert!(lab.update(&job, &changed, Some(&script)).await);
        let expected = Job {
            revision: job.revision + 1,
            ..changed
        };
        assert_eq!(lab.get(job.id).await, expected);
        assert_eq!(lab.jobs.version(lab.ours, job.id, 2).await.unwrap(), script);
    }

    /// A change made from an outdated revision is refused.
    async fn a_change_made_from_an_old_state_changes_nothing(lab: &JobsLab) {
        let old = lab.added("parse").await;
        let standing = lab.save(&old, "print(2)\n").await;
        let late = Job {
            name: "late".to_owned(),
            version_number: Some(2),
            ..old.clone()
        };
        let script = given::script(2, "print('late')\n", lab.ada.id);
        assert!(!lab.update(&old, &late, Some(&script)).await);
        assert_eq!(lab.get(old.id).await, standing);
        let stored = lab.jobs.version(lab.ours, old.id, 2).await.unwrap();
        assert_eq!(stored.code, "print(2)\n");
    }

    /// Of concurrent changes of the same revision exactly one is stored.
    async fn of_racing_changes_one_wins(lab: &JobsLab) {
        let job = lab.added("parse").await;
        let changed = Job {
            version_number: Some(2),
            ..job.clone()
        };
        let scripts: Vec<ScriptVersion> = (0..8)
            .map(|number| given::script(2, &format!("print({number})\n"), lab.ada.id))
            .collect();
        let calls = scripts
            .iter()
            .map(|script| lab.update(&job, &changed, Some(script)));
        let saved = join_all(calls).await;
        assert_eq!(saved.iter().filter(|saved| **saved).count(), 1, "{saved:?}");
        let winner = saved.iter().position(|saved| *saved).unwrap();
        let stored = lab.jobs.version(lab.ours, job.id, 2).await.unwrap();
        assert_eq!(stored, scripts[winner]);
    }

    /// A change that is refused for its name stores nothing, no version either.
    async fn a_refused_change_saves_no_version(lab: &JobsLab) {
        lab.added("taken").await;
        let job = lab.added("parse").await;
        let changed = Job {
            name: "taken".to_owned(),
            version_number: Some(2),
            ..job.clone()
        };
        let script = given::script(2, "print(2)\n", lab.ada.id);
        let refused = lab
            .jobs
            .update(lab.ours, job.revision, &changed, Some(&script));
        assert_conflict_is(refused.await, &changed.name_taken());
        assert_eq!(lab.get(job.id).await, job);
        assert_not_found(lab.jobs.version(lab.ours, job.id, 2).await);
    }

    /// Versions come newest first; the job's own is the current one. A job without script has none.
    async fn versions_are_listed_newest_first(lab: &JobsLab) {
        let bare = lab
            .jobs
            .ensure(lab.ours, &given::job("bare", at(0)))
            .await
            .unwrap();
        assert_eq!(lab.numbers(bare.id, ALL).await, [0; 0]);
        assert_not_found(lab.jobs.version(lab.ours, bare.id, 1).await);
        let first = lab.save(&bare, "print(1)\n").await;
        assert_eq!(first.version_number, Some(1));

        let job = lab.added("parse").await;
        let job = lab.save(&job, "print(2)\n").await;
        lab.save(&job, "print(3)\n").await;
        let versions = lab
            .jobs
            .versions(lab.ours, job.id, ALL)
            .await
            .unwrap()
            .items;
        let seen: Vec<_> = versions
            .iter()
            .map(|version| (version.number, version.is_current, version.created_at))
            .collect();
        assert_eq!(
            seen,
            [(3, true, at(3)), (2, false, at(2)), (1, false, at(1))]
        );
        assert!(
            versions
                .iter()
                .all(|version| version.created_by == lab.ada.id)
        );
    }

    /// Pages of versions are disjoint and end.
    async fn versions_are_read_by_the_page(lab: &JobsLab) {
        let mut job = lab.added("parse").await;
        for _ in 0..4 {
            job = lab.save(&job, "pass\n").await;
        }
        let pages = [vec![5, 4], vec![3, 2], vec![1]];
        let mut after = None;
        for (index, expected) in pages.iter().enumerate() {
            let request = PageRequest {
                limit: Some(2),
                after,
            };
            let page = lab.jobs.versions(lab.ours, job.id, request).await.unwrap();
            let numbers: Vec<u32> = page.items.iter().map(|it| it.number).collect();
            assert_eq!(numbers, *expected);
            after = page.next;
            assert_eq!(after.is_none(), index == 2);
        }
    }

    /// An unknown version number is not found.
    async fn an_unknown_version_is_not_found(lab: &JobsLab) {
        let job = lab.added("parse").await;
        for number in [0, 2, u32::MAX] {
            assert_not_found(lab.jobs.version(lab.ours, job.id, number).await);
        }
        let unknown = JobId::new(given::uuid());
        assert_not_found(lab.jobs.version(lab.ours, unknown, 1).await);
        assert_not_found(lab.jobs.versions(lab.ours, unknown, ALL).await);
        let never = Job {
            id: unknown,
            ..job.clone()
        };
        assert_not_found(lab.jobs.update(lab.ours, 1, &never, None).await);
    }

    /// Another organization's job can be neither changed nor read.
    async fn other_organizations_change_and_read_nothing(lab: &JobsLab) {
        let job = lab.added("parse").await;
        assert_not_found(lab.jobs.update(lab.theirs, job.revision, &job, None).await);
        assert_not_found(lab.jobs.versions(lab.theirs, job.id, ALL).await);
        assert_not_found(lab.jobs.version(lab.theirs, job.id, 1).await);
        assert_eq!(lab.get(job.id).await, job);
    }

    /// A trigger is stored, replaced, retained and removed together with its job.
    async fn a_trigger_comes_and_goes_with_its_job(lab: &JobsLab) {
        let instrument = lab.instrument(lab.ours, "reader").await;
        let source = lab.added("source").await;
        let (job, script) = with_script("parse", &lab.ada);
        let files = Trigger {
            instrument: Some(instrument.id),
            ..given::trigger(
                Category::FileUploaded,
                json!({"file_extensions": ["csv"]}),
                lab.ada.id,
            )
        };
        let mut job = Job {
            trigger: Some(files),
            ..job
        };
        lab.jobs.add(lab.ours, &job, &script).await.unwrap();
        assert_eq!(lab.get(job.id).await, job);
        let conditions = json!({"source_job_id": source.id, "statuses": ["failed"]});
        let after = Trigger {
            armed_at: at(10),
            ..given::trigger(Category::JobCompleted, conditions, lab.ada.id)
        };
        for trigger in [Some(after.clone()), Some(after), None] {
            job.trigger = trigger;
            assert!(lab.update(&job, &job, None).await);
            job.revision += 1;
            let stored = lab.get(job.id).await;
            assert_eq!(
                stored.trigger.as_ref().map(|trigger| &trigger.conditions),
                job.trigger.as_ref().map(|trigger| &trigger.conditions)
            );
            assert_eq!(stored.trigger.is_some(), job.trigger.is_some());
            let all = lab
                .jobs
                .list(lab.ours, &JobFilter::default(), ALL)
                .await
                .unwrap();
            assert!(all.items.contains(&stored));
        }
    }
);
