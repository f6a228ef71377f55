//! Roles of users: ceilings of keys and sessions.

use labdata_domain::{audit::AuditAction, people::scope::Scope};
use serde_json::{Value, json};
use time::Duration;

use crate::server::{Client, TestServer};

const USERS: &str = "/api/v1/users";
const KEYS: &str = "/api/v1/api-keys";
const INVITATIONS: &str = "/api/v1/invitations";
const ME: &str = "/api/v1/me";

async fn user(admin: &Client, name: &str, role: &str) -> Value {
    let body = json!({"email": format!("{name}@example.org"), "role": role});
    admin.post(USERS, &body).await.json(200)
}

async fn set_role(admin: &Client, user: &Value, role: &str) -> Value {
    let path = format!("{USERS}/{}", user["id"].as_str().unwrap());
    admin.patch(&path, &json!({"role": role})).await.json(200)
}

async fn key_of(server: &TestServer, admin: &Client, user: &Value, scopes: &[&str]) -> Client {
    let body = json!({"name": "laptop", "scopes": scopes, "user_id": user["id"]});
    let made = admin.post(KEYS, &body).await.json(200);
    server.with_key(made["key"].as_str().unwrap())
}

#[tokio::test]
async fn a_user_has_the_role_that_was_asked_for_or_is_a_member() {
    let server = TestServer::start().await;
    let admin = server.admin().await;
    for role in ["viewer", "member", "admin"] {
        assert_eq!(user(&admin, role, role).await["role"], role);
    }
    let unasked = admin.post(USERS, &json!({"email": "x@example.org"})).await;
    assert_eq!(unasked.json(200)["role"], "member");
    let wrong = json!({"email": "y@example.org", "role": "owner"});
    let problems = admin.post(USERS, &wrong).await.problems();
    assert_eq!(problems, [("enum".to_owned(), "body.role".to_owned())]);
    let me = admin.get(ME).await.json(200);
    assert_eq!(
        (&me["user"]["role"], &me["user"]["groups"]),
        (&json!("admin"), &json!([]))
    );
}

#[tokio::test]
async fn no_key_is_made_beyond_the_role_of_its_user() {
    let server = TestServer::start().await;
    let admin = server.admin().await;
    for (role, scope) in [
        ("viewer", "write"),
        ("viewer", "admin"),
        ("member", "admin"),
    ] {
        let name = format!("{role}.{scope}");
        let user = user(&admin, &name, role).await;
        let body = json!({"name": "n", "scopes": ["read", scope], "user_id": user["id"]});
        let refused = admin.post(KEYS, &body).await;
        assert_eq!(refused.code(403), "role_exceeded");
        let detail = refused.detail(403);
        assert!(detail.contains(role) && detail.contains(scope), "{detail}");
    }
}

/// A demotion takes effect at once on the server that is asked, and within 5 s on every other.
#[tokio::test]
async fn a_demotion_takes_scopes_of_keys_and_sessions_on_every_server() {
    let server = TestServer::start().await;
    let replica = server.replica().await;
    let admin = server.admin().await;
    let grace = user(&admin, "grace", "member").await;
    let body = json!({"name": "laptop", "scopes": ["read", "write"], "user_id": grace["id"]});
    let made = admin.post(KEYS, &body).await.json(200);
    let key = made["key"].as_str().unwrap();
    let session = server
        .anonymous()
        .post("/api/v1/session", &json!({"api_key": key}))
        .await;
    let cookie = session
        .header("set-cookie")
        .unwrap()
        .split(';')
        .next()
        .unwrap()
        .to_owned();
    let write = async |server: &TestServer, by_session: bool| {
        let client = if by_session {
            server.anonymous()
        } else {
            server.with_key(key)
        };
        let mut request = client.request(reqwest::Method::POST, "/api/v1/job-executions");
        if by_session {
            request = request
                .header("cookie", &cookie)
                .header("sec-fetch-site", "same-origin");
        }
        crate::server::send(request.json(&json!({}))).await
    };
    for by_session in [false, true] {
        for server in [&server, &replica] {
            write(server, by_session).await.json(200);
        }
    }
    let demoted = set_role(&admin, &grace, "viewer").await;
    assert_eq!(demoted["role"], "viewer");
    for by_session in [false, true] {
        let refused = write(&server, by_session).await.detail(403);
        assert_eq!(refused, "this API key lacks the write scope");
    }
    server.clock.advance(Duration::seconds(4));
    for by_session in [false, true] {
        write(&replica, by_session).await.detail(403);
    }
    // The key shows what it may do now; promoted again, it may do what it could.
    let me = server.with_key(key).get(ME).await.json(200);
    assert_eq!(me["api_key"]["scopes"], json!(["read"]));
    set_role(&admin, &grace, "admin").await;
    write(&server, false).await.json(200);
    let me = server.with_key(key).get(ME).await.json(200);
    assert_eq!(me["api_key"]["scopes"], json!(["read", "write"]));
}

#[tokio::test]
async fn the_last_administrator_can_be_neither_demoted_nor_disabled() {
    let server = TestServer::start().await;
    let admin = server.admin().await;
    let me = admin.get(ME).await.json(200)["user"].clone();
    let path = format!("{USERS}/{}", me["id"].as_str().unwrap());
    for role in ["member", "viewer"] {
        let refused = admin.patch(&path, &json!({"role": role})).await;
        assert_eq!(refused.code(400), "last_admin");
    }
    set_role(&admin, &me, "admin").await;
    let grace = user(&admin, "grace", "admin").await;
    let by_grace = key_of(&server, &admin, &grace, &["read", "admin"]).await;
    // A disabled administrator is none.
    let of_grace = format!("{USERS}/{}", grace["id"].as_str().unwrap());
    admin
        .patch(&of_grace, &json!({"disabled": true}))
        .await
        .json(200);
    let refused = admin.patch(&path, &json!({"role": "member"})).await;
    assert_eq!(refused.code(400), "last_admin");
    admin
        .patch(&of_grace, &json!({"disabled": false}))
        .await
        .json(200);
    set_role(&admin, &me, "member").await;
    for body in [json!({"role": "viewer"}), json!({"disabled": true})] {
        let refused = by_grace.patch(&of_grace, &body).await;
        assert!(["last_admin", "disables_self"].contains(&&*refused.code(400)));
    }
    admin.get(KEYS).await.detail(403);
}

#[tokio::test]
async fn a_change_of_a_role_is_in_the_audit_log() {
    let server = TestServer::start().await;
    let admin = server.admin().await;
    let grace = user(&admin, "grace", "member").await;
    set_role(&admin, &grace, "viewer").await;
    set_role(&admin, &grace, "viewer").await;
    let action = AuditAction::UserRoleChanged.as_str();
    let entries = admin
        .get(&format!("/api/v1/audit?action={action}"))
        .await
        .json(200);
    let entries = entries.as_array().unwrap();
    assert_eq!(entries.len(), 1, "{entries:?}");
    assert_eq!(
        entries[0]["details"],
        json!({"from": "member", "to": "viewer"})
    );
    assert_eq!(entries[0]["target"]["name"], "grace@example.org");
}

#[tokio::test]
async fn a_viewer_reads_and_writes_nothing() {
    let server = TestServer::start().await;
    let admin = server.admin().await;
    let grace = user(&admin, "grace", "viewer").await;
    let viewer = key_of(&server, &admin, &grace, &["read"]).await;
    viewer.get("/api/v1/tools/schema").await.json(200);
    let write = json!({"tables": [{"table": "experiment", "rows": [{"name": "a"}]}]});
    viewer.post("/api/v1/data/write", &write).await.detail(403);
    // The stored scopes do not count beyond the role either.
    let key = server.key(&Scope::ALL, |key| {
        key.user = grace["id"].as_str().unwrap().parse().unwrap();
    });
    let wide = server.with_key(&key.await);
    wide.post("/api/v1/data/write", &write).await.detail(403);
    wide.get(KEYS).await.detail(403);
}

#[tokio::test]
async fn an_invitation_makes_a_user_and_a_session_once() {
    let server = TestServer::start().await;
    let admin = server.admin().await;
    admin
        .post("/api/v1/groups", &json!({"name": "Microscopy"}))
        .await
        .json(200);
    let invite =
        |email: &str, role: &str| json!({"email": email, "role": role, "groups": ["Microscopy"]});
    let made = admin
        .post(INVITATIONS, &invite("grace@example.org", "viewer"))
        .await;
    assert_eq!(made.header("cache-control"), Some("no-store"));
    let made = made.json(200);
    assert_eq!(made["expires_at"], "2026-01-08T00:00:00Z");
    let token = made["url"]
        .as_str()
        .unwrap()
        .split_once("#token=")
        .unwrap()
        .1;
    let listed = admin.get(INVITATIONS).await.json(200);
    assert_eq!(listed[0]["groups"], json!(["Microscopy"]));
    assert!(listed[0].get("url").is_none(), "{listed}");

    let browser = server.anonymous();
    let signed_in = browser
        .post("/api/v1/session", &json!({"token": token}))
        .await;
    assert!(signed_in.header("set-cookie").is_some());
    let me = signed_in.json(200);
    assert_eq!(
        (&me["user"]["email"], &me["user"]["role"]),
        (&json!("grace@example.org"), &json!("viewer"))
    );
    assert_eq!(me["user"]["groups"], json!(["Microscopy"]));
    assert_eq!(me["api_key"]["scopes"], json!(["read"]));
    browser
        .post("/api/v1/session", &json!({"token": token}))
        .await
        .detail(401);
    assert_eq!(admin.get(INVITATIONS).await.json(200), json!([]));

    let unknown = json!({"email": "x@example.org", "groups": ["Nobody"]});
    assert_eq!(
        admin.post(INVITATIONS, &unknown).await.code(400),
        "unknown_group"
    );
    admin
        .post(INVITATIONS, &json!({"email": "x"}))
        .await
        .detail(400);
    let entries = admin
        .get("/api/v1/audit?action=invitation.created")
        .await
        .json(200);
    assert_eq!(entries.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn an_invitation_that_is_revoked_or_a_week_old_is_refused() {
    let server = TestServer::start().await;
    let admin = server.admin().await;
    let token_of = |made: &Value| {
        made["url"]
            .as_str()
            .unwrap()
            .split_once("#token=")
            .unwrap()
            .1
            .to_owned()
    };
    let invite = json!({"email": "grace@example.org"});
    let made = admin.post(INVITATIONS, &invite).await.json(200);
    let path = format!("{INVITATIONS}/{}", made["id"].as_str().unwrap());
    server.stranger().await.delete(&path).await.detail(404);
    assert_eq!(admin.delete(&path).await.status, 204);
    admin.delete(&path).await.detail(404);
    let late = admin.post(INVITATIONS, &invite).await.json(200);
    server.clock.advance(Duration::days(7));
    for made in [made, late] {
        let body = json!({"token": token_of(&made)});
        server
            .anonymous()
            .post("/api/v1/session", &body)
            .await
            .detail(401);
    }
    assert_eq!(
        admin.get(USERS).await.json(200).as_array().unwrap().len(),
        1
    );
}

/// An invitation enables a user who exists, and takes no rights from one who has more.
#[tokio::test]
async fn an_invitation_enables_who_exists() {
    let server = TestServer::start().await;
    let admin = server.admin().await;
    let grace = user(&admin, "grace", "admin").await;
    let path = format!("{USERS}/{}", grace["id"].as_str().unwrap());
    for disabled in [false, true] {
        admin
            .patch(&path, &json!({"disabled": disabled}))
            .await
            .json(200);
        let invite = json!({"email": "Grace@example.org", "role": "viewer"});
        let made = admin.post(INVITATIONS, &invite).await.json(200);
        let token = made["url"]
            .as_str()
            .unwrap()
            .split_once("#token=")
            .unwrap()
            .1;
        let signed_in = server
            .anonymous()
            .post("/api/v1/session", &json!({"token": token}))
            .await;
        let me = signed_in.json(200);
        assert_eq!(
            (&me["user"]["id"], &me["user"]["role"]),
            (&grace["id"], &json!("admin"))
        );
    }
}
