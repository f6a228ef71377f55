//! Labs: what the clauses of an area start from, made over a harness.

use std::sync::Arc;

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

use crate::{Subject, given};

/// A harness with the records that those of other areas refer to.
pub trait Records:
    Subject<dyn TenancyRepository>
    + Subject<dyn ApiKeyRepository>
    + Subject<dyn InstrumentRepository>
    + Subject<dyn JobRepository>
    + Subject<dyn ExecutionRepository>
{
}

impl<H> Records for H where
    H: Subject<dyn TenancyRepository>
        + Subject<dyn ApiKeyRepository>
        + Subject<dyn InstrumentRepository>
        + Subject<dyn JobRepository>
        + Subject<dyn ExecutionRepository>
{
}

/// Two organizations, and builders of the records that those of other areas refer to. Each lab of
/// an area dereferences to it.
pub struct Lab {
    /// Organization that a clause acts for.
    pub ours: OrganizationId,
    /// Organization that must neither see nor change anything of [`Lab::ours`], nor the reverse.
    pub theirs: OrganizationId,
    /// User of [`Lab::ours`].
    pub ada: User,
    /// User of [`Lab::theirs`].
    pub eve: User,
    /// Organizations and users.
    pub tenancy: Arc<dyn TenancyRepository>,
    /// API keys.
    pub keys: Arc<dyn ApiKeyRepository>,
    /// Instruments.
    pub instruments: Arc<dyn InstrumentRepository>,
    /// Jobs.
    pub jobs: Arc<dyn JobRepository>,
    /// Executions.
    pub executions: Arc<dyn ExecutionRepository>,
}

impl Lab {
    /// Creates both organizations and their users.
    pub async fn over<H: Records>(harness: &H) -> Self {
        let tenancy: Arc<dyn TenancyRepository> = harness.subject();
        let [ours, theirs] = ["ours", "theirs"].map(given::organization);
        for organization in [&ours, &theirs] {
            tenancy.ensure_organization(organization).await.unwrap();
        }
        let ada = given::user(ours.id, "ada@example.org");
        let eve = given::user(theirs.id, "eve@example.org");
        for user in [&ada, &eve] {
            tenancy.ensure_user(user).await.unwrap();
        }
        Self {
            ours: ours.id,
            theirs: theirs.id,
            ada,
            eve,
            tenancy,
            keys: harness.subject(),
            instruments: harness.subject(),
            jobs: harness.subject(),
            executions: harness.subject(),
        }
    }

    /// The organization of that name, stored.
    pub async fn organization(&self, name: &str) -> Organization {
        let candidate = given::organization(name);
        self.tenancy.ensure_organization(&candidate).await.unwrap()
    }

    /// The user of that e-mail address in the organization, stored.
    pub async fn user(&self, organization: OrganizationId, email: &str) -> User {
        let candidate = given::user(organization, email);
        self.tenancy.ensure_user(&candidate).await.unwrap()
    }

    /// A new key of that user, stored.
    pub async fn api_key(&self, user: &User) -> ApiKey {
        let key = given::api_key(user);
        self.keys.add(&key).await.unwrap();
        key
    }

    /// The job of that name, stored.
    pub async fn job(&self, organization: OrganizationId, name: &str) -> Job {
        let candidate = given::job(name, given::at(0));
        self.jobs.ensure(organization, &candidate).await.unwrap()
    }

    /// A new execution that started then, with that timeout, of a job and a user of the
    /// organization's.
    pub async fn execution(
        &self,
        organization: OrganizationId,
        now: OffsetDateTime,
        timeout_minutes: Option<u32>,
    ) -> Execution {
        let job = self.job(organization, "some job").await;
        let user = self.user(organization, "somebody@example.org").await;
        let execution = given::execution(&job, now, timeout_minutes);
        self.executions
            .add(organization, &execution, StartedBy::user(user.id))
            .await
            .unwrap();
        execution
    }

    /// A new instrument of that name, stored.
    pub async fn instrument(&self, organization: OrganizationId, name: &str) -> Instrument {
        let instrument = given::instrument(name, given::at(0));
        self.instruments
            .add(organization, &instrument)
            .await
            .unwrap();
        instrument
    }
}

/// Declares the lab of an area: a [`Lab`] with further ports, a fixture of each harness that is a
/// subject of them all.
macro_rules! lab {
    (
        $(#[$doc:meta])+
        pub struct $Lab:ident {
            $($(#[$of:meta])+ pub $port:ident: $Port:ty,)*
        }
    ) => {
        $(#[$doc])+
        pub struct $Lab {
            lab: $crate::lab::Lab,
            $($(#[$of])+ pub $port: std::sync::Arc<$Port>,)*
            // Dropped last: it removes the store.
            _harness: Box<dyn std::any::Any + Send + Sync>,
        }

        #[$crate::async_trait]
        impl<H> $crate::Fixture<H> for $Lab
        where
            H: $crate::lab::Records + $($crate::Subject<$Port> +)* 'static
        {
            async fn over(harness: H) -> Self {
                Self {
                    lab: $crate::lab::Lab::over(&harness).await,
                    $($port: harness.subject(),)*
                    _harness: Box::new(harness),
                }
            }
        }

        impl std::ops::Deref for $Lab {
            type Target = $crate::lab::Lab;

            fn deref(&self) -> &$crate::lab::Lab {
                &self.lab
            }
        }
    };
}
pub(crate) use lab;
