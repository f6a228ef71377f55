//! Contract of [`JobRepository`].

pub mod changes;

use futures::future::join_all;
use labdata_domain::{
    ids::{JobId, OrganizationId},
    jobs::Job,
};
use labdata_ports::jobs::{JobFilter, JobRepository};

use crate::{
    Subject,
    assertions::{assert_not_found, assert_unanimous},
    fixtures::Tenants,
    given::{self, at},
    paging::{ALL, first, read_to_the_end},
};

/// Makes one test of each clause of [`crate::jobs`].
#[macro_export]
macro_rules! jobs_contract {
    ($harness:ty $(, $test:meta)?) => {
        $crate::clauses! { [$($test)?] $harness, jobs in jobs:
            a_missing_job_is_stored_as_the_candidate,
            an_existing_job_is_returned_unchanged,
            an_archived_job_still_owns_its_name,
            jobs_of_organizations_are_separate,
            racing_calls_end_with_one_job,
            an_unknown_job_is_not_found,
            a_job_of_another_organization_is_not_found,
            the_list_is_newest_first_and_total,
            pages_lose_and_repeat_nothing_while_others_insert,
            the_list_shows_no_other_organization,
            the_name_filter_is_exact,
            archived_jobs_are_listed_only_when_wanted,
        }
    };
}

/// The filter that matches all jobs but archived ones.
const ACTIVE: JobFilter = JobFilter {
    name: None,
    include_archived: false,
};

/// Stores jobs that were created at these seconds, and returns them newest first.
async fn stored(
    jobs: &dyn JobRepository,
    organization: OrganizationId,
    seconds: &[i64],
) -> Vec<Job> {
    let mut added = Vec::new();
    for (number, seconds) in seconds.iter().enumerate() {
        let candidate = given::job(&format!("job {number}"), at(*seconds));
        added.push(jobs.ensure(organization, &candidate).await.unwrap());
    }
    added.sort_by_key(|job| std::cmp::Reverse((job.created_at, job.id)));
    added
}

/// A missing job is created with every field of the candidate, and reads back so.
pub async fn a_missing_job_is_stored_as_the_candidate<H>(harness: &H)
where
    H: Tenants + Subject<dyn JobRepository>,
{
    let lab = harness.organization("lab").await.id;
    let jobs = harness.subject();
    let full = given::job("Parse \"Gen5\" – täglich", at(0));
    let bare = Job {
        description: None,
        ..given::job("bare", at(1))
    };
    for candidate in [full, bare] {
        assert_eq!(jobs.ensure(lab, &candidate).await.unwrap(), candidate);
        assert_eq!(jobs.get(lab, candidate.id).await.unwrap(), candidate);
    }
}

/// For a name that exists, the candidate is dropped and the stored job returned.
pub async fn an_existing_job_is_returned_unchanged<H>(harness: &H)
where
    H: Tenants + Subject<dyn JobRepository>,
{
    let lab = harness.organization("lab").await.id;
    let jobs = harness.subject();
    let stored = jobs.ensure(lab, &given::job("parse", at(0))).await.unwrap();
    let later = Job {
        description: None,
        ..given::job("parse", at(60))
    };
    assert_eq!(jobs.ensure(lab, &later).await.unwrap(), stored);
    assert_eq!(jobs.list(lab, &ACTIVE, ALL).await.unwrap().items, [stored]);
    assert_not_found(jobs.get(lab, later.id).await);
}

/// An archived job is found by its name, and stays archived.
pub async fn an_archived_job_still_owns_its_name<H>(harness: &H)
where
    H: Tenants + Subject<dyn JobRepository>,
{
    let lab = harness.organization("lab").await.id;
    let jobs = harness.subject();
    let archived = Job {
        archived: true,
        ..given::job("parse", at(0))
    };
    assert_eq!(jobs.ensure(lab, &archived).await.unwrap(), archived);
    assert_eq!(
        jobs.ensure(lab, &given::job("parse", at(1))).await.unwrap(),
        archived
    );
}

/// The same name in another organization is another job.
pub async fn jobs_of_organizations_are_separate<H>(harness: &H)
where
    H: Tenants + Subject<dyn JobRepository>,
{
    let (ours, theirs) = harness.two_organizations().await;
    let jobs = harness.subject();
    let here = jobs
        .ensure(ours, &given::job("parse", at(0)))
        .await
        .unwrap();
    let there = jobs
        .ensure(theirs, &given::job("parse", at(0)))
        .await
        .unwrap();
    assert_ne!(here.id, there.id);
}

/// Concurrent calls with one name all return the same job, and only that one is stored.
pub async fn racing_calls_end_with_one_job<H>(harness: &H)
where
    H: Tenants + Subject<dyn JobRepository>,
{
    let lab = harness.organization("lab").await.id;
    let jobs = harness.subject();
    let candidates: Vec<Job> = (0..6)
        .map(|second| given::job("parse", at(second)))
        .collect();
    let results = join_all(
        candidates
            .iter()
            .map(|candidate| jobs.ensure(lab, candidate)),
    )
    .await;
    let winner = assert_unanimous(results);
    assert!(candidates.contains(&winner));
    assert_eq!(jobs.list(lab, &ACTIVE, ALL).await.unwrap().items, [winner]);
}

/// An id that no job has is not found.
pub async fn an_unknown_job_is_not_found<H>(harness: &H)
where
    H: Tenants + Subject<dyn JobRepository>,
{
    let lab = harness.organization("lab").await.id;
    assert_not_found(harness.subject().get(lab, JobId::new(given::uuid())).await);
}

/// Another organization's job is answered like one that does not exist.
pub async fn a_job_of_another_organization_is_not_found<H>(harness: &H)
where
    H: Tenants + Subject<dyn JobRepository>,
{
    let (ours, theirs) = harness.two_organizations().await;
    let jobs = harness.subject();
    let job = jobs
        .ensure(theirs, &given::job("parse", at(0)))
        .await
        .unwrap();
    assert_not_found(jobs.get(ours, job.id).await);
}

/// The list is ordered by creation time, then id, newest first, with any page size.
pub async fn the_list_is_newest_first_and_total<H>(harness: &H)
where
    H: Tenants + Subject<dyn JobRepository>,
{
    let lab = harness.organization("lab").await.id;
    let jobs = harness.subject();
    let expected = stored(&*jobs, lab, &[20, 10, 30, 10, 20, 10, 10]).await;
    let all = jobs.list(lab, &ACTIVE, ALL).await.unwrap();
    assert_eq!((all.items, all.next), (expected.clone(), None));
    for limit in [1, 2, 7, 100] {
        let items =
            read_to_the_end(limit, async |_, page| jobs.list(lab, &ACTIVE, page).await).await;
        assert_eq!(items, expected, "in pages of {limit}");
    }
    assert_eq!(jobs.list(lab, &ACTIVE, first(7)).await.unwrap().next, None);
}

/// Items that exist when paging begins are read exactly once, while newer ones are added.
pub async fn pages_lose_and_repeat_nothing_while_others_insert<H>(harness: &H)
where
    H: Tenants + Subject<dyn JobRepository>,
{
    let lab = harness.organization("lab").await.id;
    let jobs = harness.subject();
    let expected = stored(&*jobs, lab, &[1, 2, 2, 2, 3, 4, 5]).await;
    let items = read_to_the_end(2, async |number, request| {
        let page = jobs.list(lab, &ACTIVE, request).await?;
        jobs.ensure(lab, &given::job(&format!("new {number}"), at(60)))
            .await?;
        Ok(page)
    })
    .await;
    assert_eq!(items, expected);
}

/// An organization's list has no jobs of another, and no cursor leads to them.
pub async fn the_list_shows_no_other_organization<H>(harness: &H)
where
    H: Tenants + Subject<dyn JobRepository>,
{
    let (ours, theirs) = harness.two_organizations().await;
    let jobs = harness.subject();
    let expected = stored(&*jobs, ours, &[1, 3, 5]).await;
    stored(&*jobs, theirs, &[2, 4, 6]).await;
    let items = read_to_the_end(1, async |_, page| jobs.list(ours, &ACTIVE, page).await).await;
    assert_eq!(items, expected);
}

/// A name matches as a whole and exactly; nothing in it is a wildcard.
pub async fn the_name_filter_is_exact<H>(harness: &H)
where
    H: Tenants + Subject<dyn JobRepository>,
{
    let lab = harness.organization("lab").await.id;
    let jobs = harness.subject();
    for name in ["parse", "Parse", "parse 2", "par%"] {
        jobs.ensure(lab, &given::job(name, at(0))).await.unwrap();
    }
    for (name, count) in [
        ("parse", 1),
        ("par%", 1),
        ("PARSE", 0),
        ("pars", 0),
        ("", 0),
    ] {
        let filter = JobFilter {
            name: Some(name.to_owned()),
            ..ACTIVE
        };
        let items = jobs.list(lab, &filter, ALL).await.unwrap().items;
        assert_eq!(items.len(), count, "{name}");
        assert!(items.iter().all(|job| job.name == name));
    }
}

/// Archived jobs are left out unless the filter includes them; a name makes no exception.
pub async fn archived_jobs_are_listed_only_when_wanted<H>(harness: &H)
where
    H: Tenants + Subject<dyn JobRepository>,
{
    let lab = harness.organization("lab").await.id;
    let jobs = harness.subject();
    let active = jobs
        .ensure(lab, &given::job("active", at(0)))
        .await
        .unwrap();
    let archived = Job {
        archived: true,
        ..given::job("archived", at(1))
    };
    jobs.ensure(lab, &archived).await.unwrap();
    let name = Some(archived.name.clone());
    for (name, include_archived, expected) in [
        (None, false, vec![active.clone()]),
        (None, true, vec![archived.clone(), active]),
        (name.clone(), false, vec![]),
        (name, true, vec![archived.clone()]),
    ] {
        let filter = JobFilter {
            name,
            include_archived,
        };
        let items = jobs.list(lab, &filter, ALL).await.unwrap().items;
        assert_eq!(items, expected, "{filter:?}");
    }
}
