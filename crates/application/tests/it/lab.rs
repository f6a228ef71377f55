//! One organization on in-memory ports.

use std::sync::Arc;

use labdata_application::Services;
use labdata_domain::{
    ids::ApiKeyId,
    people::{
        actor::Actor,
        rights::Rights,
        role::Role,
        scope::{Scope, Scopes},
        tenancy::{Organization, User},
    },
};
use labdata_memory::{FixedClock, Memory, ports};
use labdata_ports::Clock;

/// An empty store with one organization and one user.
pub(crate) struct Lab {
    pub(crate) services: Services,
    pub(crate) clock: Arc<FixedClock>,
    pub(crate) memory: Memory,
    organization: Organization,
    user: User,
}

impl Lab {
    pub(crate) async fn new() -> Self {
        let clock = Arc::new(FixedClock::default());
        let displayed: Arc<dyn Clock> = clock.clone();
        let memory = Memory::new().on_clock(Arc::clone(&displayed));
        let services = Services::unlimited(ports(&memory, displayed));
        let organization = Organization {
            id: services.ids.next_id().into(),
            name: "lab".to_owned(),
            created_at: clock.now(),
        };
        let organization = services
            .tenancy
            .ensure_organization(&organization)
            .await
            .unwrap();
        let user = User {
            id: services.ids.next_id().into(),
            organization: organization.id,
            email: "ada@example.org".to_owned(),
            name: "Ada".to_owned(),
            role: Role::Admin,
            groups: Vec::new(),
            created_at: clock.now(),
            disabled_at: None,
        };
        let user = services.tenancy.ensure_user(&user).await.unwrap();
        Self {
            services,
            clock,
            memory,
            organization,
            user,
        }
    }

    /// The user, with a key of these scopes.
    pub(crate) fn actor(&self, scopes: &[Scope]) -> Actor {
        Actor {
            organization: self.organization.id,
            user: self.user.id,
            api_key: ApiKeyId::new(self.services.ids.next_id()),
            scopes: scopes.iter().copied().collect::<Scopes>(),
            rights: Rights::admin(),
            execution: None,
        }
    }
}
