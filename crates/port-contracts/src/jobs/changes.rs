//! Contract of [`JobRepository`]: jobs with a script, and their changes.

use futures::future::join_all;
use labdata_domain::{
    ids::{JobId, OrganizationId},
    jobs::{Job, ScriptVersion},
    page::PageRequest,
    people::tenancy::User,
    triggers::{Category, Trigger},
};
use labdata_ports::jobs::{JobFilter, JobRepository};
use serde_json::json;

use crate::{
    Subject,
    assertions::{assert_conflict_is, assert_not_found, assert_one_winner},
    fixtures::{Instruments, Tenants},
    given::{self, at},
    paging::ALL,
};

/// Makes one test of each clause of [`crate::jobs::changes`].
#[macro_export]
macro_rules! job_changes_contract {
    ($harness:ty $(, $test:meta)?) => {
        $crate::clauses! { [$($test)?] $harness, job_changes in jobs::changes:
            an_added_job_reads_back_with_its_script,
            a_name_that_is_taken_is_refused,
            of_racing_additions_one_wins,
            every_field_can_change,
            a_change_made_from_an_old_state_changes_nothing,
            of_racing_changes_one_wins,
            a_refused_change_saves_no_version,
            versions_are_listed_newest_first,
            versions_are_read_by_the_page,
            an_unknown_version_is_not_found,
            other_organizations_change_and_read_nothing,
            a_trigger_comes_and_goes_with_its_job,
        }
    };
}

/// A job with a first version of its script, not stored yet.
fn with_script(name: &str, user: &User) -> (Job, ScriptVersion) {
    let job = Job {
        version_number: Some(1),
        parameters: given::parameters(),
        ..given::job(name, at(0))
    };
    (job, given::script(1, "print(1)\n", user.id))
}

async fn added(jobs: &dyn JobRepository, name: &str, user: &User) -> Job {
    let (job, script) = with_script(name, user);
    jobs.add(user.organization, &job, &script).await.unwrap();
    job
}

/// Stores the next version of the job's script.
async fn save(jobs: &dyn JobRepository, job: &Job, code: &str, user: &User) -> Job {
    let number = job.version_number.unwrap_or(0) + 1;
    let changed = Job {
        version_number: Some(number),
        ..job.clone()
    };
    let script = given::script(number, code, user.id);
    let saved = jobs
        .update(user.organization, job.revision, &changed, Some(&script))
        .await;
    assert!(saved.unwrap());
    jobs.get(user.organization, job.id).await.unwrap()
}

async fn numbers(
    jobs: &dyn JobRepository,
    organization: OrganizationId,
    job: JobId,
    page: PageRequest,
) -> Vec<u32> {
    let page = jobs.versions(organization, job, page).await.unwrap();
    page.items.iter().map(|version| version.number).collect()
}

/// A new job and its script are stored together, every field of them.
pub async fn an_added_job_reads_back_with_its_script<H>(harness: &H)
where
    H: Tenants + Subject<dyn JobRepository>,
{
    let lab = harness.organization("lab").await.id;
    let user = harness.user(lab, "somebody@example.org").await;
    let jobs = harness.subject();
    let (job, script) = with_script("parse", &user);
    jobs.add(lab, &job, &script).await.unwrap();
    assert_eq!(jobs.get(lab, job.id).await.unwrap(), job);
    assert_eq!(jobs.version(lab, job.id, 1).await.unwrap(), script);
}

/// A name belongs to one job of the organization, archived or not; a refused job is not stored.
pub async fn a_name_that_is_taken_is_refused<H>(harness: &H)
where
    H: Tenants + Subject<dyn JobRepository>,
{
    let (ours, theirs) = harness.two_organizations().await;
    let user = harness.user(ours, "somebody@example.org").await;
    let other = harness.user(theirs, "other@example.org").await;
    let jobs = harness.subject();
    let archived = Job {
        archived: true,
        ..given::job("archived", at(0))
    };
    jobs.ensure(ours, &archived).await.unwrap();
    added(&*jobs, "active", &user).await;
    for name in ["archived", "active"] {
        let (again, script) = with_script(name, &user);
        assert_conflict_is(jobs.add(ours, &again, &script).await, &again.name_taken());
        assert_not_found(jobs.get(ours, again.id).await);
        assert_not_found(jobs.version(ours, again.id, 1).await);
        added(&*jobs, name, &other).await;
    }
}

/// Of jobs added concurrently under one name exactly one is stored.
pub async fn of_racing_additions_one_wins<H>(harness: &H)
where
    H: Tenants + Subject<dyn JobRepository>,
{
    let lab = harness.organization("lab").await.id;
    let user = harness.user(lab, "somebody@example.org").await;
    let jobs = harness.subject();
    let candidates: Vec<_> = (0..8).map(|_| with_script("parse", &user)).collect();
    let calls = candidates.iter().map(async |(job, script)| {
        jobs.add(lab, job, script).await?;
        Ok(job.id)
    });
    let winner = assert_one_winner(join_all(calls).await);
    let stored = jobs.list(lab, &JobFilter::default(), ALL).await.unwrap();
    let ids: Vec<JobId> = stored.items.iter().map(|job| job.id).collect();
    assert_eq!(ids, [winner]);
}

/// A change replaces every field and increments the revision.
pub async fn every_field_can_change<H>(harness: &H)
where
    H: Tenants + Subject<dyn JobRepository>,
{
    let lab = harness.organization("lab").await.id;
    let user = harness.user(lab, "somebody@example.org").await;
    let jobs = harness.subject();
    let job = added(&*jobs, "parse", &user).await;
    let changed = Job {
        name: "parse plates".to_owned(),
        archived: true,
        description: None,
        version_number: Some(2),
        parameters: Vec::new(),
        ..job.clone()
    };
    let script = given::script(2, "print(2)\n", user.id);
    let saved = jobs
        .update(lab, job.revision, &changed, Some(&script))
        .await;
    assert!(saved.unwrap());
    let expected = Job {
        revision: job.revision + 1,
        ..changed
    };
    assert_eq!(jobs.get(lab, job.id).await.unwrap(), expected);
    assert_eq!(jobs.version(lab, job.id, 2).await.unwrap(), script);
}

/// A change made from an outdated revision is refused.
pub async fn a_change_made_from_an_old_state_changes_nothing<H>(harness: &H)
where
    H: Tenants + Subject<dyn JobRepository>,
{
    let lab = harness.organization("lab").await.id;
    let user = harness.user(lab, "somebody@example.org").await;
    let jobs = harness.subject();
    let old = added(&*jobs, "parse", &user).await;
    let standing = save(&*jobs, &old, "print(2)\n", &user).await;
    let late = Job {
        name: "late".to_owned(),
        version_number: Some(2),
        ..old.clone()
    };
    let script = given::script(2, "print('late')\n", user.id);
    let saved = jobs.update(lab, old.revision, &late, Some(&script)).await;
    assert!(!saved.unwrap());
    assert_eq!(jobs.get(lab, old.id).await.unwrap(), standing);
    let stored = jobs.version(lab, old.id, 2).await.unwrap();
    assert_eq!(stored.code, "print(2)\n");
}

/// Of concurrent changes of the same revision exactly one is stored.
pub async fn of_racing_changes_one_wins<H>(harness: &H)
where
    H: Tenants + Subject<dyn JobRepository>,
{
    let lab = harness.organization("lab").await.id;
    let user = harness.user(lab, "somebody@example.org").await;
    let jobs = harness.subject();
    let job = added(&*jobs, "parse", &user).await;
    let changed = Job {
        version_number: Some(2),
        ..job.clone()
    };
    let scripts: Vec<ScriptVersion> = (0..8)
        .map(|number| given::script(2, &format!("print({number})\n"), user.id))
        .collect();
    let calls = scripts
        .iter()
        .map(|script| jobs.update(lab, job.revision, &changed, Some(script)));
    let saved: Vec<bool> = join_all(calls)
        .await
        .into_iter()
        .map(Result::unwrap)
        .collect();
    assert_eq!(saved.iter().filter(|saved| **saved).count(), 1, "{saved:?}");
    let winner = saved.iter().position(|saved| *saved).unwrap();
    let stored = jobs.version(lab, job.id, 2).await.unwrap();
    assert_eq!(stored, scripts[winner]);
}

/// A change that is refused for its name stores nothing, no version either.
pub async fn a_refused_change_saves_no_version<H>(harness: &H)
where
    H: Tenants + Subject<dyn JobRepository>,
{
    let lab = harness.organization("lab").await.id;
    let user = harness.user(lab, "somebody@example.org").await;
    let jobs = harness.subject();
    added(&*jobs, "taken", &user).await;
    let job = added(&*jobs, "parse", &user).await;
    let changed = Job {
        name: "taken".to_owned(),
        version_number: Some(2),
        ..job.clone()
    };
    let script = given::script(2, "print(2)\n", user.id);
    let refused = jobs.update(lab, job.revision, &changed, Some(&script));
    assert_conflict_is(refused.await, &changed.name_taken());
    assert_eq!(jobs.get(lab, job.id).await.unwrap(), job);
    assert_not_found(jobs.version(lab, job.id, 2).await);
}

/// Versions come newest first; the job's own is the current one. A job without script has none.
pub async fn versions_are_listed_newest_first<H>(harness: &H)
where
    H: Tenants + Subject<dyn JobRepository>,
{
    let lab = harness.organization("lab").await.id;
    let user = harness.user(lab, "somebody@example.org").await;
    let jobs = harness.subject();
    let bare = jobs.ensure(lab, &given::job("bare", at(0))).await.unwrap();
    assert_eq!(numbers(&*jobs, lab, bare.id, ALL).await, [0; 0]);
    assert_not_found(jobs.version(lab, bare.id, 1).await);
    let first = save(&*jobs, &bare, "print(1)\n", &user).await;
    assert_eq!(first.version_number, Some(1));

    let job = added(&*jobs, "parse", &user).await;
    let job = save(&*jobs, &job, "print(2)\n", &user).await;
    save(&*jobs, &job, "print(3)\n", &user).await;
    let versions = jobs.versions(lab, job.id, ALL).await.unwrap().items;
    let seen: Vec<_> = versions
        .iter()
        .map(|version| (version.number, version.is_current, version.created_at))
        .collect();
    assert_eq!(
        seen,
        [(3, true, at(3)), (2, false, at(2)), (1, false, at(1))]
    );
    assert!(versions.iter().all(|version| version.created_by == user.id));
}

/// Pages of versions are disjoint and end.
pub async fn versions_are_read_by_the_page<H>(harness: &H)
where
    H: Tenants + Subject<dyn JobRepository>,
{
    let lab = harness.organization("lab").await.id;
    let user = harness.user(lab, "somebody@example.org").await;
    let jobs = harness.subject();
    let mut job = added(&*jobs, "parse", &user).await;
    for _ in 0..4 {
        job = save(&*jobs, &job, "pass\n", &user).await;
    }
    let mut pages = Vec::new();
    let mut after = None;
    loop {
        let request = PageRequest {
            limit: Some(2),
            after,
        };
        let page = jobs.versions(lab, job.id, request).await.unwrap();
        pages.push(page.items.iter().map(|it| it.number).collect::<Vec<_>>());
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(pages, [vec![5, 4], vec![3, 2], vec![1]]);
}

/// An unknown version number is not found.
pub async fn an_unknown_version_is_not_found<H>(harness: &H)
where
    H: Tenants + Subject<dyn JobRepository>,
{
    let lab = harness.organization("lab").await.id;
    let user = harness.user(lab, "somebody@example.org").await;
    let jobs = harness.subject();
    let job = added(&*jobs, "parse", &user).await;
    for number in [0, 2, u32::MAX] {
        assert_not_found(jobs.version(lab, job.id, number).await);
    }
    let unknown = JobId::new(given::uuid());
    assert_not_found(jobs.version(lab, unknown, 1).await);
    assert_not_found(jobs.versions(lab, unknown, ALL).await);
    let never = Job {
        id: unknown,
        ..job.clone()
    };
    assert_not_found(jobs.update(lab, 1, &never, None).await);
}

/// Another organization's job can be neither changed nor read.
pub async fn other_organizations_change_and_read_nothing<H>(harness: &H)
where
    H: Tenants + Subject<dyn JobRepository>,
{
    let (ours, theirs) = harness.two_organizations().await;
    let user = harness.user(ours, "somebody@example.org").await;
    let jobs = harness.subject();
    let job = added(&*jobs, "parse", &user).await;
    assert_not_found(jobs.update(theirs, job.revision, &job, None).await);
    assert_not_found(jobs.versions(theirs, job.id, ALL).await);
    assert_not_found(jobs.version(theirs, job.id, 1).await);
    assert_eq!(jobs.get(ours, job.id).await.unwrap(), job);
}

/// A trigger is stored, replaced, kept and removed together with its job.
pub async fn a_trigger_comes_and_goes_with_its_job<H>(harness: &H)
where
    H: Tenants + Instruments + Subject<dyn JobRepository>,
{
    let lab = harness.organization("lab").await.id;
    let user = harness.user(lab, "somebody@example.org").await;
    let instrument = harness.instrument(lab, "reader").await;
    let jobs = harness.subject();
    let source = added(&*jobs, "source", &user).await;
    let (job, script) = with_script("parse", &user);
    let files = Trigger {
        instrument: Some(instrument.id),
        ..given::trigger(
            Category::FileUploaded,
            json!({"file_extensions": ["csv"]}),
            user.id,
        )
    };
    let mut job = Job {
        trigger: Some(files),
        ..job
    };
    jobs.add(lab, &job, &script).await.unwrap();
    assert_eq!(jobs.get(lab, job.id).await.unwrap(), job);
    let conditions = json!({"source_job_id": source.id, "statuses": ["failed"]});
    let after = Trigger {
        armed_at: at(10),
        ..given::trigger(Category::JobCompleted, conditions, user.id)
    };
    for trigger in [Some(after.clone()), Some(after), None] {
        job.trigger = trigger;
        assert!(jobs.update(lab, job.revision, &job, None).await.unwrap());
        job.revision += 1;
        let stored = jobs.get(lab, job.id).await.unwrap();
        assert_eq!(
            stored.trigger.as_ref().map(|trigger| &trigger.conditions),
            job.trigger.as_ref().map(|trigger| &trigger.conditions)
        );
        assert_eq!(stored.trigger.is_some(), job.trigger.is_some());
        let all = jobs.list(lab, &JobFilter::default(), ALL).await.unwrap();
        assert!(all.items.contains(&stored));
    }
}
