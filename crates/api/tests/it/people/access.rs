//! Callers that lose their access while a response lasts.

use reqwest::Method;
use serde_json::{Value, json};

use crate::server::{Client, Reply, TestServer, send};

/// A caller with the scopes read and write, and the request that ends its access.
pub(crate) struct Access {
    pub(crate) client: Client,
    admin: Client,
    end: (Method, String, Value),
}

impl Access {
    /// A caller whose key is revoked.
    pub(crate) async fn by_key(server: &TestServer) -> Self {
        let admin = server.admin().await;
        let (id, client) = key(server, &admin).await;
        let end = (Method::DELETE, format!("/api/v1/api-keys/{id}"), json!({}));
        Self { client, admin, end }
    }

    /// A caller whose user is disabled.
    pub(crate) async fn by_user(server: &TestServer) -> Self {
        let admin = server.admin().await;
        let body = json!({"email": "grace@example.org", "role": "member"});
        let user = admin.post("/api/v1/users", &body).await.json(200);
        let id = user["id"].as_str().unwrap();
        let user = id.parse().unwrap();
        let scopes = labdata_domain::people::role::Role::Member.scopes();
        let scopes: Vec<_> = scopes.iter().collect();
        let key = server.key(&scopes, |key| key.user = user).await;
        let path = format!("/api/v1/users/{id}");
        Self {
            client: server.with_key(&key),
            admin,
            end: (Method::PATCH, path, json!({"disabled": true})),
        }
    }

    /// Ends the access.
    pub(crate) async fn end(&self) {
        let (method, path, body) = &self.end;
        let request = self.admin.request(method.clone(), path).json(body);
        let reply: Reply = send(request).await;
        assert!(reply.status.is_success(), "{}", reply.text);
    }
}

/// A key of the administrator.
async fn key(server: &TestServer, admin: &Client) -> (String, Client) {
    let body = json!({"name": "of a caller", "scopes": ["read", "write"]});
    let made = admin.post("/api/v1/api-keys", &body).await.json(200);
    let text = |field: &str| made[field].as_str().unwrap().to_owned();
    (text("id"), server.with_key(&text("key")))
}
