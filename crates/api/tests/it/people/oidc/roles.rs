//! Roles that an identity provider gives, and when they end.

use std::sync::atomic::Ordering;

use labdata_application::people::oidc::follow_roles;
use labdata_domain::people::oidc::Groups;
use labdata_ports::people::oidc::ProviderError;
use serde_json::{Value, json};
use time::Duration;

use super::{Lab, listed};

#[tokio::test]
async fn the_role_of_a_user_follows_the_provider_at_each_sign_in() {
    let lab = Lab::start("admins=admin,lab=member", "false").await;
    let lab = lab.with_another_admin().await;
    // Administrators of tests act with Ada's keys, which follow her role: Bob signs in.
    let bob = json!({"email": "Bob@example.org", "role": "viewer"});
    lab.admin()
        .await
        .post("/api/v1/users", &bob)
        .await
        .json(200);
    let person = |groups: &'static [&str]| {
        lab.change(|person| {
            person.email = Some("bob@example.org".to_owned());
            person.subject = "bob-1".to_owned();
            person.groups = listed(groups);
        });
    };
    for (code, groups, role) in [
        ("1", &["lab"][..], "member"),
        ("2", &["admins"], "admin"),
        ("3", &["lab"], "member"),
    ] {
        person(groups);
        let session = lab.session(code).await;
        assert_eq!(lab.me(&session).await["user"]["role"], role);
        assert_eq!(lab.role_of("Bob@example.org").await, role);
    }
    person(&["others"]);
    assert!(lab.refused().await.contains("none of your groups"));
    assert_eq!(lab.role_of("Bob@example.org").await, "viewer");
    let changes: Vec<Value> = lab
        .audit("user.role_changed")
        .await
        .into_iter()
        .map(|(name, details)| {
            assert_eq!(name, "Bob@example.org");
            assert_eq!(details["by"], "identity_provider");
            json!([details["from"], details["to"]])
        })
        .collect();
    assert_eq!(
        changes,
        [
            json!(["viewer", "member"]),
            json!(["member", "admin"]),
            json!(["admin", "member"]),
            json!(["member", "viewer"])
        ]
    );
    let started = lab.audit("session.started").await;
    assert_eq!(started.len(), 3);
    assert_eq!(
        started[1].1,
        json!({"by": "identity_provider", "role": "admin"})
    );
}

#[tokio::test]
async fn the_last_administrator_is_not_demoted() {
    let lab = Lab::start("lab=member", "false").await;
    let session = lab.session("1").await;
    assert_eq!(lab.me(&session).await["user"]["role"], "admin");
    lab.refreshes_to(Ok(listed(&["others"])));
    lab.server.clock.advance(Duration::minutes(8));
    assert_eq!(follow_roles(&lab.services()).await.unwrap(), 1);
    assert_eq!(lab.role_of("ada@example.org").await, "admin");
    assert_eq!(lab.audit("user.role_changed").await, []);
}

#[tokio::test]
async fn a_role_follows_the_provider_within_a_session() {
    let lab = Lab::start("lab=member,guests=viewer", "false").await;
    let lab = lab.with_another_admin().await;
    let session = lab.session("1").await;
    assert_eq!(follow_roles(&lab.services()).await.unwrap(), 0, "not due");
    assert_eq!(lab.provider.refreshes.load(Ordering::Relaxed), 0);
    let step = async |refresh, role: &str| {
        lab.refreshes_to(refresh);
        lab.server.clock.advance(Duration::minutes(8));
        assert_eq!(follow_roles(&lab.services()).await.unwrap(), 0);
        assert_eq!(lab.me(&session).await["user"]["role"], role);
    };
    step(Ok(listed(&["lab"])), "member").await;
    step(Ok(listed(&["guests"])), "viewer").await;
    step(Ok(listed(&["lab"])), "member").await;
    let down = ProviderError::Unavailable("down".to_owned());
    step(Err(down), "member").await;
    // A provider that did not respond is asked again sooner.
    lab.refreshes_to(Ok(listed(&["guests"])));
    lab.server.clock.advance(Duration::minutes(5));
    follow_roles(&lab.services()).await.unwrap();
    assert_eq!(lab.me(&session).await["user"]["role"], "viewer");
}

#[tokio::test]
async fn a_session_ends_when_the_provider_refuses_or_names_no_role() {
    let lab = Lab::start("lab=member,guests=viewer", "false").await;
    let lab = lab.with_another_admin().await;
    let refused = ProviderError::Refused("invalid_grant".to_owned());
    for (code, refresh, role) in [
        ("1", Err(refused), "member"),
        ("2", Ok(Groups::Omitted), "member"),
        ("3", Ok(listed(&["others"])), "viewer"),
    ] {
        let session = lab.session(code).await;
        lab.refreshes_to(refresh.clone());
        lab.server.clock.advance(Duration::minutes(8));
        assert_eq!(follow_roles(&lab.services()).await.unwrap(), 1);
        let status = lab.get("/api/v1/me", &session).await.status();
        assert_eq!(status, 401, "{refresh:?}");
        let user = lab
            .server
            .services
            .tenancy
            .user(lab.server.organization, lab.server.user);
        assert_eq!(user.await.unwrap().role.as_str(), role, "{refresh:?}");
    }
    let asked = lab.provider.refreshes.load(Ordering::Relaxed);
    lab.server.clock.advance(Duration::minutes(20));
    assert_eq!(follow_roles(&lab.services()).await.unwrap(), 0);
    let again = lab.provider.refreshes.load(Ordering::Relaxed);
    assert_eq!(again, asked, "nothing is asked for ended sessions");
}

#[tokio::test]
async fn a_person_who_signed_out_is_not_asked_for() {
    let lab = Lab::start("lab=member", "false").await;
    let session = lab.session("1").await;
    let url = format!("http://{}/api/v1/session", lab.server.address);
    let request = lab.http.delete(url).header("Cookie", &session);
    let signed_out = request.header("Sec-Fetch-Site", "same-origin").send();
    assert_eq!(signed_out.await.unwrap().status(), 204);
    assert_eq!(lab.get("/api/v1/me", &session).await.status(), 401);
    lab.server.clock.advance(Duration::minutes(8));
    assert_eq!(follow_roles(&lab.services()).await.unwrap(), 0);
    assert_eq!(lab.provider.refreshes.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn several_servers_share_sessions_and_ask_once_for_each() {
    let lab = Lab::start("lab=member", "false").await;
    let other = lab.server.replica().await;
    let session = lab.session("1").await;
    let on_other = format!("http://{}/api/v1/me", other.address);
    let me = lab.http.get(on_other).header("Cookie", &session).send();
    assert_eq!(me.await.unwrap().status(), 200);
    lab.server.clock.advance(Duration::minutes(8));
    let services = [lab.services(), lab.services()];
    let (one, two) = tokio::join!(follow_roles(&services[0]), follow_roles(&services[1]));
    assert_eq!((one.unwrap(), two.unwrap()), (0, 0));
    assert_eq!(lab.provider.refreshes.load(Ordering::Relaxed), 1);
}
