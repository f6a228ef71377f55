//! Units of work: transactions that their caller holds.

use std::time::Duration;

use labdata_domain::{
    idempotency::{Fingerprint, StoredResponse},
    ids::{ApiKeyId, JobId, OrganizationId},
    jobs::{Job, JobName},
};
use labdata_port_contracts::{Harness as _, fixtures::Tenants as _, given};
use labdata_ports::{
    PortError, Repositories,
    idempotency::{Begun, Idempotency, IdempotentRequest, UnitOfWork},
};
use labdata_postgres::{Database, DatabaseSettings, PgStore};
use time::OffsetDateTime;

use crate::contracts::Postgres;

/// A store over two connections, and an organization.
struct Lab {
    store: PgStore,
    organization: OrganizationId,
    // Dropped after the store, whose connections it would cut off.
    _harness: Postgres,
}

impl Lab {
    async fn start() -> Self {
        let settings = DatabaseSettings {
            max_connections: 2,
            wait: Duration::from_secs(2),
            ..DatabaseSettings::default()
        };
        let harness = Postgres::fresh().await;
        let organization = harness.organization("lab").await.id;
        let database = Database::new(harness.url(), settings).expect("a pool");
        Self {
            store: PgStore::new(database.clone(), database),
            organization,
            _harness: harness,
        }
    }

    async fn unit(&self) -> Box<dyn UnitOfWork> {
        let request = IdempotentRequest {
            organization: self.organization,
            api_key: ApiKeyId::new(given::uuid()),
            operation: "POST /api/v1/jobs".to_owned(),
            key: "key".to_owned(),
            fingerprint: Fingerprint {
                body: [7; 32],
                rights: [0; 32],
            },
            now: OffsetDateTime::UNIX_EPOCH,
        };
        match self
            .store
            .idempotency()
            .begin(&request)
            .await
            .expect("a unit")
        {
            Begun::New(unit) => unit,
            Begun::Replayed(_) => panic!("it ran before"),
        }
    }

    async fn create(&self, repositories: &Repositories, name: &str) -> Result<JobId, PortError> {
        let id = JobId::new(given::uuid());
        let name = JobName::parse(name).expect("a name");
        let job = Job::new(id, name, OffsetDateTime::UNIX_EPOCH);
        let created = repositories.jobs.ensure(self.organization, &job).await?;
        Ok(created.id)
    }

    async fn exists(&self, job: JobId) -> bool {
        let jobs = self.store.repositories().jobs;
        jobs.get(self.organization, job).await.is_ok()
    }
}

fn response() -> StoredResponse {
    StoredResponse {
        status: 200,
        content_type: "application/json".to_owned(),
        body: b"{}".to_vec(),
        tables: Vec::new(),
    }
}

#[tokio::test]
async fn changes_are_seen_by_others_after_the_commit_only() {
    let lab = Lab::start().await;
    let unit = lab.unit().await;
    let job = lab.create(&unit.repositories(), "parse").await.unwrap();
    let within = unit.repositories().jobs;
    assert!(within.get(lab.organization, job).await.is_ok());
    assert!(!lab.exists(job).await);
    unit.commit(Some(&response())).await.unwrap();
    assert!(lab.exists(job).await);
}

#[tokio::test]
async fn a_unit_that_is_rolled_back_or_dropped_changes_nothing() {
    let lab = Lab::start().await;
    let unit = lab.unit().await;
    let job = lab.create(&unit.repositories(), "parse").await.unwrap();
    unit.roll_back().await;
    assert!(!lab.exists(job).await);
    let unit = lab.unit().await;
    let job = lab.create(&unit.repositories(), "parse").await.unwrap();
    drop(unit);
    assert!(!lab.exists(job).await);
}

#[tokio::test]
async fn calls_of_other_repositories_take_no_part() {
    let lab = Lab::start().await;
    let unit = lab.unit().await;
    // Within the unit's own task, and yet a separate transaction.
    let job = lab
        .create(&lab.store.repositories(), "parse")
        .await
        .unwrap();
    unit.roll_back().await;
    assert!(lab.exists(job).await);
}

#[tokio::test]
async fn a_spawned_task_takes_part_in_the_unit_that_it_was_given() {
    let lab = Lab::start().await;
    let unit = lab.unit().await;
    let (organization, repositories) = (lab.organization, unit.repositories());
    let job = Job::new(
        JobId::new(given::uuid()),
        JobName::parse("parse").unwrap(),
        OffsetDateTime::UNIX_EPOCH,
    );
    let id = job.id;
    let task = async move { repositories.jobs.ensure(organization, &job).await.map(drop) };
    tokio::spawn(task).await.unwrap().unwrap();
    unit.roll_back().await;
    assert!(!lab.exists(id).await);
}

#[tokio::test]
async fn repositories_of_an_ended_unit_fail() {
    let lab = Lab::start().await;
    let unit = lab.unit().await;
    let repositories = unit.repositories();
    unit.commit(Some(&response())).await.unwrap();
    let refused = lab.create(&repositories, "late").await;
    assert!(
        matches!(refused, Err(PortError::Internal(_))),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_unit_without_a_request_is_stored_or_undone_as_a_whole() {
    let lab = Lab::start().await;
    for is_stored in [true, false] {
        let units = lab.store.repositories().units;
        let unit = units.begin(lab.organization).await.unwrap();
        // A part of the same transaction, however it is begun.
        let within = unit.repositories().units;
        let within = within.begin(lab.organization).await.unwrap();
        let (repositories, name) = (within.repositories(), format!("job {is_stored}"));
        let job = lab.create(&repositories, &name).await.unwrap();
        within.commit(None).await.unwrap();
        assert!(!lab.exists(job).await);
        if is_stored {
            unit.commit(None).await.unwrap();
        } else {
            unit.roll_back().await;
        }
        assert_eq!(lab.exists(job).await, is_stored);
    }
}
