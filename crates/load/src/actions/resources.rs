//! Notifications, API keys, tables, jobs and datasets.

use std::sync::{PoisonError, atomic::Ordering};

use reqwest::Method;
use serde_json::json;

use crate::{
    client::{Outcome, Payload, Request},
    ledger::{Certainty, Kind},
    load::Connection,
    setup::{column, define},
};

/// Revoked keys that are tried at the end.
const MAX_TRIED_KEYS: usize = 20;

/// Sends a notification.
pub(super) async fn notification(connection: &mut Connection) {
    let load = connection.load.clone();
    if load.notifications_are_capped.load(Ordering::Relaxed) {
        return;
    }
    let tag = connection.tag();
    let body = json!({"title": tag, "dedupe_key": tag, "body": "A message of the load."});
    let request =
        Request::post("POST /notifications", "/api/v1/notifications", body).idempotent(&tag);
    let certainty = match load.client.send(&request).await {
        Outcome::Done(response) if response.text("status") == "delivered" => {
            Certainty::Acknowledged
        }
        Outcome::Unknown => Certainty::Unknown,
        Outcome::Refused(response) if response.status == 429 => {
            load.notifications_are_capped.store(true, Ordering::Relaxed);
            return;
        }
        Outcome::Done(response) | Outcome::Refused(response) => {
            return load.client.wrong(&request, &response, "was not expected");
        }
    };
    let state = Some(String::new());
    load.ledger.enter(Kind::Notification, tag, state, certainty);
}

/// Creates an API key, uses it, and revokes it.
pub(super) async fn api_key(connection: &mut Connection) {
    let tag = connection.tag();
    let load = connection.load.clone();
    let body = json!({"name": tag, "scopes": ["read"]});
    let request = Request::post("POST /api-keys", "/api/v1/api-keys", body).once();
    let state = |text: &str| Some(text.to_owned());
    let created = connection.change(&request, Kind::ApiKey, &tag, state("active"));
    let Some(response) = created.await else {
        return;
    };
    let (id, key) = (response.text("id"), response.text("key"));
    let me = Request::get("GET /me", "/api/v1/me").with_key(&key);
    load.client.expect(&me).await;
    let revoke = Request::new(
        "DELETE /api-keys/{id}",
        Method::DELETE,
        format!("/api/v1/api-keys/{id}"),
        Payload::Empty,
    );
    if connection
        .change(&revoke, Kind::ApiKey, &tag, state("revoked"))
        .await
        .is_some()
    {
        let mut keys = load
            .revoked_keys
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if keys.len() < MAX_TRIED_KEYS {
            keys.push(key);
        }
    }
}

/// Defines a table, adds a column, and drops it.
pub(super) async fn table(connection: &mut Connection) {
    let name = format!("load_{}", connection.tag().replace('-', "_"));
    let definition = |columns: &[&str]| {
        let columns = columns.iter().map(|name| {
            let mut column = column(name, "integer");
            if let Some(fields) = column.as_object_mut() {
                fields.insert("is_nullable".to_owned(), json!(true));
            }
            column
        });
        json!({"semantic_category": "curated", "columns": columns.collect::<Vec<_>>()})
    };
    for columns in [["a", "b"].as_slice(), &["a", "b", "c"]] {
        let request = define(&name, definition(columns));
        let state = Some(columns.join(","));
        if connection
            .change(&request, Kind::Table, &name, state)
            .await
            .is_none()
        {
            return;
        }
    }
    let request = Request::new(
        "DELETE /tables/{name}",
        Method::DELETE,
        format!("/api/v1/tables/{name}"),
        Payload::Empty,
    );
    connection.change(&request, Kind::Table, &name, None).await;
}

/// Creates a job, changes it, and archives it.
pub(super) async fn job(connection: &mut Connection) {
    let tag = connection.tag();
    let body = json!({"name": tag, "code": "print(1)\n"});
    let request = Request::post("POST /jobs", "/api/v1/jobs", body).idempotent(&tag);
    let state = |text: &str| Some(text.to_owned());
    let created = connection.change(&request, Kind::Job, &tag, state(" false"));
    let Some(response) = created.await else {
        return;
    };
    let path = format!("/api/v1/jobs/{}", response.text("id"));
    for (change, after) in [
        (
            json!({"description": "changed", "code": "print(2)\n"}),
            "changed false",
        ),
        (json!({"archived": true}), "changed true"),
    ] {
        let payload = Payload::Json(change);
        let request = Request::new("PATCH /jobs/{id}", Method::PATCH, path.clone(), payload);
        if connection
            .change(&request, Kind::Job, &tag, state(after))
            .await
            .is_none()
        {
            return;
        }
    }
}

/// Makes a dataset of a query.
pub(super) async fn dataset(connection: &mut Connection) {
    create_dataset(connection, "SELECT name, counter FROM load_plate LIMIT 50").await;
}

/// Makes a dataset; returns its id.
pub(super) async fn create_dataset(connection: &mut Connection, query: &str) -> Option<String> {
    let tag = connection.tag();
    let body = json!({"name": tag, "query": query});
    let request = Request::post("POST /datasets", "/api/v1/datasets", body).idempotent(&tag);
    let state = Some(String::new());
    let created = connection.change(&request, Kind::Dataset, &tag, state);
    Some(created.await?.text("id"))
}
