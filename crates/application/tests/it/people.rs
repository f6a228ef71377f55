//! Making, showing and revoking keys.

use std::sync::Arc;

use async_trait::async_trait;
use labdata_application::{
    Error, Services,
    people::{
        authenticate::authenticate,
        create_api_key::{CreateApiKey, create_api_key},
        operator_keys::{IssueKey, issue},
        revoke_api_key::revoke_api_key,
    },
};
use labdata_domain::{
    conflict::Conflict,
    idempotency::StoredResponse,
    ids::OrganizationId,
    people::{
        ApiKey, FoundKey, PlainApiKey,
        actor::Actor,
        role::Role,
        scope::{Scope, Scopes},
    },
    refusal::{Refusal, RefusalKind},
    work::BackendPolicy,
};
use labdata_ports::{
    PortError, Repositories,
    idempotency::{UnitOfWork, Units},
    people::MockApiKeyRepository,
};

use crate::lab::Lab;

/// The key, found, of a user who is not disabled.
fn active(key: &ApiKey) -> FoundKey {
    FoundKey {
        key: key.clone(),
        user_disabled_at: None,
        role: Role::Admin,
        groups: Vec::new(),
    }
}

fn with_keys(lab: &Lab, keys: MockApiKeyRepository) -> Services {
    let mut services = lab.services.clone();
    services.api_keys = Arc::new(keys);
    services.units = Arc::new(UnitsOver(services.repositories.clone()));
    services
}

/// Units of work over those repositories, which undo nothing.
#[derive(Clone)]
struct UnitsOver(Repositories);

#[async_trait]
impl Units for UnitsOver {
    async fn begin(&self, _: OrganizationId) -> Result<Box<dyn UnitOfWork>, PortError> {
        Ok(Box::new(self.clone()))
    }
}

#[async_trait]
impl UnitOfWork for UnitsOver {
    fn repositories(&self) -> Repositories {
        self.0.clone()
    }

    async fn commit(&self, _: Option<&StoredResponse>) -> Result<(), PortError> {
        Ok(())
    }

    async fn roll_back(&self) {}
}

async fn make(lab: &Lab, actor: &Actor, scopes: Scopes) -> Result<(ApiKey, PlainApiKey), Error> {
    let command = CreateApiKey {
        name: "n".to_owned(),
        scopes,
        expires_at: None,
        user: None,
        tables: None,
    };
    let created = create_api_key(&lab.services, actor, command).await?;
    Ok((created.named.key, created.plain))
}

#[tokio::test]
async fn a_shown_key_tells_its_caller() {
    let lab = Lab::new().await;
    let admin = lab.actor(&Scope::ALL);
    let (key, plain) = make(&lab, &admin, [Scope::Read].into_iter().collect())
        .await
        .unwrap();
    let actor = authenticate(&lab.services, plain.reveal()).await.unwrap();
    assert_eq!(actor.api_key, key.id);
    assert_eq!(actor.organization, admin.organization);
    assert_eq!(actor.user, admin.user);
    assert_eq!(actor.scopes, [Scope::Read].into_iter().collect());
}

#[tokio::test]
async fn a_revoked_key_is_refused_at_once_though_it_was_used_before() {
    let lab = Lab::new().await;
    let admin = lab.actor(&Scope::ALL);
    let (key, plain) = make(&lab, &admin, Scopes::all()).await.unwrap();
    authenticate(&lab.services, plain.reveal()).await.unwrap();
    revoke_api_key(&lab.services, &admin, key.id).await.unwrap();
    let refused = authenticate(&lab.services, plain.reveal()).await;
    assert!(matches!(
        refused,
        Err(Error::Refused(Refusal {
            kind: RefusalKind::Unauthenticated,
            ..
        }))
    ));
}

#[tokio::test]
async fn a_burst_of_requests_costs_one_look_up() {
    let lab = Lab::new().await;
    let (key, plain) = make(&lab, &lab.actor(&Scope::ALL), Scopes::all())
        .await
        .unwrap();
    let mut keys = MockApiKeyRepository::new();
    keys.expect_find_by_prefix()
        .times(1)
        .returning(move |_| Ok(Some(active(&key))));
    keys.expect_touch().times(1).returning(|_| Ok(()));
    let services = with_keys(&lab, keys);
    for _ in 0..10 {
        authenticate(&services, plain.reveal()).await.unwrap();
    }
}

#[tokio::test]
async fn a_use_that_cannot_be_noted_does_not_concern_the_caller() {
    let lab = Lab::new().await;
    let (key, plain) = make(&lab, &lab.actor(&Scope::ALL), Scopes::all())
        .await
        .unwrap();
    let mut keys = MockApiKeyRepository::new();
    keys.expect_find_by_prefix()
        .returning(move |_| Ok(Some(active(&key))));
    keys.expect_touch()
        .returning(|_| Err(PortError::Busy("locked".to_owned())));
    authenticate(&with_keys(&lab, keys), plain.reveal())
        .await
        .unwrap();
}

#[tokio::test]
async fn a_prefix_that_is_taken_is_drawn_again() {
    let lab = Lab::new().await;
    let mut keys = MockApiKeyRepository::new();
    let mut tries = 0;
    keys.expect_add().times(3).returning(move |_| {
        tries += 1;
        if tries < 3 {
            Err(PortError::Conflict(Conflict::KeyPrefix(
                "prefix".to_owned(),
            )))
        } else {
            Ok(())
        }
    });
    let command = CreateApiKey {
        name: "n".to_owned(),
        scopes: Scopes::all(),
        expires_at: None,
        user: None,
        tables: None,
    };
    let services = with_keys(&lab, keys);
    create_api_key(&services, &lab.actor(&Scope::ALL), command)
        .await
        .unwrap();
}

#[tokio::test]
async fn only_an_admin_makes_keys_and_grants_only_what_it_has() {
    let lab = Lab::new().await;
    for (has, wants) in [
        (vec![Scope::Read, Scope::Write], vec![Scope::Read]),
        (vec![Scope::Admin], vec![Scope::Admin, Scope::Read]),
    ] {
        let refused = make(&lab, &lab.actor(&has), wants.into_iter().collect()).await;
        assert!(matches!(
            refused,
            Err(Error::Refused(Refusal {
                kind: RefusalKind::Forbidden,
                ..
            }))
        ));
    }
}

/// A key of the operator gives its user the role that it needs, says so, and takes none away.
#[tokio::test]
async fn a_key_of_the_operator_raises_the_role_of_its_user() {
    let lab = Lab::new().await;
    let issue = async |scopes: &[Scope]| {
        let command = IssueKey {
            name: "key".to_owned(),
            scopes: scopes.iter().copied().collect(),
            lifetime: None,
        };
        let policy = BackendPolicy::default();
        let issued = issue(&lab.services, policy, "lab", "grace@lab.example", command).await;
        let issued = issued.unwrap();
        let key = issued.plain.reveal().to_owned();
        let actor = authenticate(&lab.services, &key).await.unwrap();
        let user = lab.services.tenancy.user(actor.organization, actor.user);
        let role = user.await.unwrap().role;
        assert_eq!(actor.scopes, issued.key.scopes);
        (role, issued.raised_to)
    };
    assert_eq!(issue(&[Scope::Read]).await, (Role::Viewer, None));
    assert_eq!(issue(&Scope::ALL).await, (Role::Admin, Some(Role::Admin)));
    assert_eq!(issue(&[Scope::Read]).await, (Role::Admin, None));
}
