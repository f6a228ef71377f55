//! Contract of [`JobRepository`](labdata_ports::jobs::JobRepository).

pub mod changes;

use futures::future::join_all;
use labdata_domain::{
    ids::{JobId, OrganizationId},
    jobs::Job,
};
use labdata_ports::jobs::JobFilter;

use crate::{
    assertions::{assert_not_found, assert_unanimous},
    given::{self, at},
    lab::lab,
    paging::{ALL, assert_pages, first, read_to_the_end},
};

/// The filter that matches all jobs but archived ones.
const ACTIVE: JobFilter = JobFilter {
    name: None,
    include_archived: false,
};

lab!(
    /// Jobs of two organizations.
    pub struct JobsLab {}
);

impl JobsLab {
    /// Stores the job if its name is new, and returns the job of that name.
    async fn ensure(&self, candidate: &Job) -> Job {
        self.jobs.ensure(self.ours, candidate).await.unwrap()
    }

    async fn list(&self, filter: &JobFilter) -> Vec<Job> {
        self.jobs.list(self.ours, filter, ALL).await.unwrap().items
    }

    /// Stores jobs that were created at these seconds, and returns them newest first.
    async fn stored(&self, organization: OrganizationId, seconds: &[i64]) -> Vec<Job> {
        let mut added = Vec::new();
        for (number, seconds) in seconds.iter().enumerate() {
            let candidate = given::job(&format!("job {number}"), at(*seconds));
            added.push(self.jobs.ensure(organization, &candidate).await.unwrap());
        }
        added.sort_by_key(|job| std::cmp::Reverse((job.created_at, job.id)));
        added
    }
}

crate::suite!(
    use jobs;

    /// A missing job is created with every field of the candidate, and reads back so.
    async fn a_missing_job_is_stored_as_the_candidate(lab: &JobsLab) {
        let full = given::job("Parse \"Gen5\" – täglich", at(0));
        let bare = Job {
            description: None,
            ..given::job("bare", at(1))
        };
        for candidate in [full, bare] {
            assert_eq!(lab.ensure(&candidate).await, candidate);
            assert_eq!(
                lab.jobs.get(lab.ours, candidate.id).await.unwrap(),
                candidate
            );
        }
    }

    /// For a name that exists, the candidate is dropped and the stored job returned.
    async fn an_existing_job_is_returned_unchanged(lab: &JobsLab) {
        let stored = lab.ensure(&given::job("parse", at(0))).await;
        let later = Job {
            description: None,
            ..given::job("parse", at(60))
        };
        assert_eq!(lab.ensure(&later).await, stored);
        assert_eq!(lab.list(&ACTIVE).await, [stored]);
        assert_not_found(lab.jobs.get(lab.ours, later.id).await);
    }

    /// An archived job is found by its name, and stays archived.
    async fn an_archived_job_still_owns_its_name(lab: &JobsLab) {
        let archived = Job {
            archived: true,
            ..given::job("parse", at(0))
        };
        assert_eq!(lab.ensure(&archived).await, archived);
        assert_eq!(lab.ensure(&given::job("parse", at(1))).await, archived);
    }

    /// The same name in another organization is another job.
    async fn jobs_of_organizations_are_separate(lab: &JobsLab) {
        let here = lab.ensure(&given::job("parse", at(0))).await;
        let there = lab
            .jobs
            .ensure(lab.theirs, &given::job("parse", at(0)))
            .await
            .unwrap();
        assert_ne!(here.id, there.id);
    }

    /// Concurrent calls with one name all return the same job, and only that one is stored.
    async fn racing_calls_end_with_one_job(lab: &JobsLab) {
        let candidates: Vec<Job> = (0..6)
            .map(|second| given::job("parse", at(second)))
            .collect();
        let results = join_all(
            candidates
                .iter()
                .map(|candidate| lab.jobs.ensure(lab.ours, candidate)),
        )
        .await;
        let winner = assert_unanimous(results);
        assert!(candidates.contains(&winner));
        assert_eq!(lab.list(&ACTIVE).await, [winner]);
    }

    /// An id that no job has is not found.
    async fn an_unknown_job_is_not_found(lab: &JobsLab) {
        assert_not_found(lab.jobs.get(lab.ours, JobId::new(given::uuid())).await);
    }

    /// Another organization's job is answered like one that does not exist.
    async fn a_job_of_another_organization_is_not_found(lab: &JobsLab) {
        let job = lab
            .jobs
            .ensure(lab.theirs, &given::job("parse", at(0)))
            .await
            .unwrap();
        assert_not_found(lab.jobs.get(lab.ours, job.id).await);
    }

    /// The list is ordered by creation time, then id, newest first, with any page size.
    async fn the_list_is_newest_first_and_total(lab: &JobsLab) {
        let expected = lab.stored(lab.ours, &[20, 10, 30, 10, 20, 10, 10]).await;
        let all = lab.jobs.list(lab.ours, &ACTIVE, ALL).await.unwrap();
        assert_eq!((all.items, all.next), (expected.clone(), None));
        let read = async |page| lab.jobs.list(lab.ours, &ACTIVE, page).await;
        assert_pages([1, 2, 7, 100], &expected, read).await;
        assert_eq!(
            lab.jobs
                .list(lab.ours, &ACTIVE, first(7))
                .await
                .unwrap()
                .next,
            None
        );
    }

    /// Items that exist when paging begins are read exactly once, while newer ones are added.
    async fn pages_lose_and_repeat_nothing_while_others_insert(lab: &JobsLab) {
        let expected = lab.stored(lab.ours, &[1, 2, 2, 2, 3, 4, 5]).await;
        let items = read_to_the_end(2, async |number, request| {
            let page = lab.jobs.list(lab.ours, &ACTIVE, request).await?;
            lab.jobs
                .ensure(lab.ours, &given::job(&format!("new {number}"), at(60)))
                .await?;
            Ok(page)
        })
        .await;
        assert_eq!(items, expected);
    }

    /// An organization's list has no jobs of another, and no cursor leads to them.
    async fn the_list_shows_no_other_organization(lab: &JobsLab) {
        let expected = lab.stored(lab.ours, &[1, 3, 5]).await;
        lab.stored(lab.theirs, &[2, 4, 6]).await;
        let read = async |page| lab.jobs.list(lab.ours, &ACTIVE, page).await;
        assert_pages([1], &expected, read).await;
    }

    /// A name matches as a whole and exactly; nothing in it is a wildcard.
    async fn the_name_filter_is_exact(lab: &JobsLab) {
        for name in ["parse", "Parse", "parse 2", "par%"] {
            lab.ensure(&given::job(name, at(0))).await;
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
            let items = lab.list(&filter).await;
            assert_eq!(items.len(), count, "{name}");
            assert!(items.iter().all(|job| job.name == name));
        }
    }

    /// Archived jobs are left out unless the filter includes them; a name makes no exception.
    async fn archived_jobs_are_listed_only_when_wanted(lab: &JobsLab) {
        let active = lab.ensure(&given::job("active", at(0))).await;
        let archived = Job {
            archived: true,
            ..given::job("archived", at(1))
        };
        lab.ensure(&archived).await;
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
            let items = lab.list(&filter).await;
            assert_eq!(items, expected, "{filter:?}");
        }
    }
);
