//! Rights that invitations give, and when they end.

use futures::future::join_all;
use labdata_domain::people::scope::Scope;
use serde_json::{Value, json};

use crate::server::{Client, Reply, TestServer};

const INVITATIONS: &str = "/api/v1/invitations";
const USERS: &str = "/api/v1/users";
const GROUPS: &str = "/api/v1/groups";

/// The token of an invitation with that body.
async fn invited(client: &Client, body: &Value) -> String {
    let made = client.post(INVITATIONS, body).await.json(200);
    let url = made["url"].as_str().unwrap();
    url.split_once("#token=").unwrap().1.to_owned()
}

async fn accept(server: &TestServer, token: &str) -> Reply {
    let body = json!({"token": token});
    server.anonymous().post("/api/v1/session", &body).await
}

async fn user(admin: &Client, name: &str, role: &str) -> String {
    let body = json!({"email": format!("{name}@example.org"), "role": role});
    let made = admin.post(USERS, &body).await.json(200);
    made["id"].as_str().unwrap().to_owned()
}

async fn members(admin: &Client) -> Value {
    admin.get(GROUPS).await.json(200)[0]["members"].clone()
}

#[tokio::test]
async fn who_accept_at_once_are_all_members_in_the_end() {
    let server = TestServer::start().await;
    let admin = server.admin().await;
    let group = json!({"name": "Microscopy"});
    admin.post(GROUPS, &group).await.json(200);
    let (mut ids, mut tokens) = (Vec::new(), Vec::new());
    for number in 0..8 {
        let name = format!("u{number}");
        ids.push(user(&admin, &name, "member").await);
        let email = format!("{name}@example.org");
        let invite = json!({"email": email, "role": "member", "groups": ["Microscopy"]});
        tokens.push(invited(&admin, &invite).await);
    }
    let accepted = join_all(tokens.iter().map(|token| accept(&server, token)));
    for reply in accepted.await {
        reply.json(200);
    }
    ids.sort_unstable();
    assert_eq!(members(&admin).await, json!(ids));
    let entries = admin.get("/api/v1/audit?action=group.updated").await;
    let entries = entries.json(200);
    let joined = entries.as_array().unwrap().iter();
    let mut joined: Vec<&str> = joined
        .map(|entry| entry["details"]["joined"][0].as_str().unwrap())
        .collect();
    joined.sort_unstable();
    assert_eq!(joined, ids);
}

#[tokio::test]
async fn an_acceptance_beside_a_removal_brings_nobody_back() {
    let server = TestServer::start().await;
    let admin = server.admin().await;
    let ada = user(&admin, "ada2", "member").await;
    let group = json!({"name": "Microscopy", "members": [ada]});
    let group = admin.post(GROUPS, &group).await.json(200);
    let path = format!("{GROUPS}/{}", group["id"].as_str().unwrap());
    for number in 0..6 {
        let all = json!({"members": [ada]});
        admin.patch(&path, &all).await.json(200);
        let email = format!("ben{number}@example.org");
        let invite = json!({"email": email, "groups": ["Microscopy"]});
        let token = invited(&admin, &invite).await;
        let none = json!({"members": []});
        let emptied = admin.patch(&path, &none);
        let (emptied, accepted) = futures::join!(emptied, accept(&server, &token));
        emptied.json(200);
        accepted.json(200);
        let left = members(&admin).await;
        assert!(!left.as_array().unwrap().contains(&json!(ada)), "{left}");
    }
}

/// A key gives no role whose scopes it lacks, be it by an invitation or to a user who exists. A new user has no way in yet.
#[tokio::test]
async fn a_key_gives_no_role_beyond_its_scopes() {
    let server = TestServer::start().await;
    let admin = server.admin().await;
    let viewer = user(&admin, "viewer", "viewer").await;
    let key = server.key(&[Scope::Read, Scope::Admin], |_| {}).await;
    let client = server.with_key(&key);
    let path = format!("{USERS}/{viewer}");
    for role in ["member", "admin"] {
        for refused in [
            client
                .post(
                    INVITATIONS,
                    &json!({"email": "x@example.org", "role": role}),
                )
                .await,
            client.patch(&path, &json!({"role": role})).await,
        ] {
            assert_eq!(refused.code(403), "scope_missing", "{}", refused.text);
        }
    }
    let member = json!({"email": "m@example.org", "role": "member"});
    client.post(USERS, &member).await.json(200);
    // The link of an existing administrator would open the administrator's session.
    let body = json!({"email": "ADA@example.org", "role": "viewer"});
    let refused = client.post(INVITATIONS, &body).await;
    assert_eq!(refused.code(403), "scope_missing");
    let allowed = json!({"email": "new@example.org", "role": "viewer"});
    client.post(INVITATIONS, &allowed).await.json(200);
    client.patch(&path, &json!({"name": "V"})).await.json(200);
}

#[tokio::test]
async fn an_invitation_ends_with_the_rights_of_its_inviter() {
    let server = TestServer::start().await;
    let admin = server.admin().await;
    let inviter = user(&admin, "inviter", "admin").await;
    let id = inviter.parse().unwrap();
    let key = server.key(&Scope::ALL, |key| key.user = id).await;
    let client = server.with_key(&key);
    let invite = |email: &str| json!({"email": email, "role": "admin"});
    let token = invited(&client, &invite("friend@example.org")).await;
    let path = format!("{USERS}/{inviter}");
    for (end, back) in [
        (json!({"disabled": true}), json!({"disabled": false})),
        (json!({"role": "member"}), json!({"role": "admin"})),
    ] {
        admin.patch(&path, &end).await.json(200);
        let refused = accept(&server, &token).await;
        assert_eq!(refused.code(401), "credential_invalid");
        admin.patch(&path, &back).await.json(200);
    }
    accept(&server, &token).await.json(200);
}
