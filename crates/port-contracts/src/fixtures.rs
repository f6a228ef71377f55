//! Prerequisites of clauses: records that must be stored first.
//!
//! A harness that is a [`Subject`] of the ports concerned has these by default. A harness for an
//! adapter of a single port implements them over the store of the other records.

use async_trait::async_trait;
use labdata_domain::{
    executions::{Execution, started_by::StartedBy},
    ids::OrganizationId,
    instruments::Instrument,
    jobs::Job,
    people::{
        ApiKey,
        tenancy::{Organization, User},
    },
};
use labdata_ports::{
    executions::ExecutionRepository,
    instruments::InstrumentRepository,
    jobs::JobRepository,
    people::{ApiKeyRepository, tenancy::TenancyRepository},
};
use time::OffsetDateTime;

use crate::{Harness, Subject, given};

/// A harness that can store organizations and users.
#[async_trait]
pub trait Tenants: Harness {
    /// The organization of that name, stored.
    async fn organization(&self, name: &str) -> Organization;

    /// The user of that e-mail address in the organization, stored.
    async fn user(&self, organization: OrganizationId, email: &str) -> User;

    /// Two organizations, for clauses on what one of them must not see.
    async fn two_organizations(&self) -> (OrganizationId, OrganizationId) {
        (
            self.organization("ours").await.id,
            self.organization("theirs").await.id,
        )
    }
}

#[async_trait]
impl<H: Subject<dyn TenancyRepository>> Tenants for H {
    async fn organization(&self, name: &str) -> Organization {
        self.subject()
            .ensure_organization(&given::organization(name))
            .await
            .unwrap()
    }

    async fn user(&self, organization: OrganizationId, email: &str) -> User {
        self.subject()
            .ensure_user(&given::user(organization, email))
            .await
            .unwrap()
    }
}

/// A harness that can store API keys.
#[async_trait]
pub trait ApiKeys: Tenants {
    /// A new key of that user, stored.
    async fn api_key(&self, user: &User) -> ApiKey;
}

#[async_trait]
impl<H: Tenants + Subject<dyn ApiKeyRepository>> ApiKeys for H {
    async fn api_key(&self, user: &User) -> ApiKey {
        let key = given::api_key(user);
        self.subject().add(&key).await.unwrap();
        key
    }
}

/// A harness that can store jobs.
#[async_trait]
pub trait Jobs: Tenants {
    /// The job of that name, stored.
    async fn job(&self, organization: OrganizationId, name: &str) -> Job;
}

#[async_trait]
impl<H: Tenants + Subject<dyn JobRepository>> Jobs for H {
    async fn job(&self, organization: OrganizationId, name: &str) -> Job {
        self.subject()
            .ensure(organization, &given::job(name, given::at(0)))
            .await
            .unwrap()
    }
}

/// A harness that can store executions.
#[async_trait]
pub trait Executions: Jobs {
    /// A new execution that started then, with that timeout, of a job and a user of the
    /// organization's.
    async fn execution(
        &self,
        organization: OrganizationId,
        now: OffsetDateTime,
        timeout_minutes: Option<u32>,
    ) -> Execution;
}

#[async_trait]
impl<H: Jobs + Subject<dyn ExecutionRepository>> Executions for H {
    async fn execution(
        &self,
        organization: OrganizationId,
        now: OffsetDateTime,
        timeout_minutes: Option<u32>,
    ) -> Execution {
        let job = self.job(organization, "some job").await;
        let user = self.user(organization, "somebody@example.org").await;
        let execution = given::execution(&job, now, timeout_minutes);
        self.subject()
            .add(organization, &execution, StartedBy::user(user.id))
            .await
            .unwrap();
        execution
    }
}

/// A harness that can store instruments.
#[async_trait]
pub trait Instruments: Tenants {
    /// A new instrument of that name, stored.
    async fn instrument(&self, organization: OrganizationId, name: &str) -> Instrument;
}

#[async_trait]
impl<H: Tenants + Subject<dyn InstrumentRepository>> Instruments for H {
    async fn instrument(&self, organization: OrganizationId, name: &str) -> Instrument {
        let instrument = given::instrument(name, given::at(0));
        self.subject().add(organization, &instrument).await.unwrap();
        instrument
    }
}
