//! Saved views.

use labdata_domain::people::scope::Scope;
use reqwest::Method;
use serde_json::{Value, json};

use crate::server::{Client, TestServer, send};

const VIEWS: &str = "/api/v1/saved-views";

fn path_of(view: &Value) -> String {
    format!("{VIEWS}/{}", view["id"].as_str().unwrap())
}

fn names(views: &Value) -> Vec<&str> {
    let views = views.as_array().unwrap().iter();
    views.map(|view| view["name"].as_str().unwrap()).collect()
}

async fn member(server: &TestServer, admin: &Client, name: &str) -> Client {
    let body = json!({"email": format!("{name}@example.org"), "role": "member"});
    let user = admin.post("/api/v1/users", &body).await.json(200);
    let id = user["id"].as_str().unwrap().parse().unwrap();
    let key = server
        .key(&[Scope::Read, Scope::Write], |key| key.user = id)
        .await;
    server.with_key(&key)
}

async fn save(client: &Client, name: &str, address: &str) -> Value {
    let body = json!({"name": name, "address": address});
    client.post(VIEWS, &body).await.json(200)
}

#[tokio::test]
async fn views_are_saved_listed_changed_and_deleted() {
    let server = TestServer::start().await;
    let admin = server.admin().await;
    let pinned = json!({"name": "B", "address": "#/sql?q=select+1", "is_pinned": true});
    let pinned = admin.post(VIEWS, &pinned).await.json(200);
    let plain = save(&admin, "A", "#/tables/sample?_sort=-name").await;
    assert_eq!(plain["is_pinned"], false);
    assert_eq!(admin.get(VIEWS).await.json(200), json!([plain, pinned]));
    let change = json!({"name": "C", "is_pinned": true});
    let changed = admin.patch(&path_of(&plain), &change).await.json(200);
    assert_eq!(
        (&changed["name"], &changed["address"]),
        (&json!("C"), &plain["address"])
    );
    let taken = admin.patch(&path_of(&plain), &json!({"name": "B"})).await;
    assert_eq!(taken.code(409), "name_taken");
    for (body, code) in [
        (json!({"name": "a\nD", "address": "#/sql"}), "invalid_name"),
        (
            json!({"name": "D", "address": "javascript:alert(1)"}),
            "invalid_value",
        ),
    ] {
        assert_eq!(admin.post(VIEWS, &body).await.code(400), code);
    }
    assert_eq!(admin.delete(&path_of(&plain)).await.status, 204);
    assert_eq!(names(&admin.get(VIEWS).await.json(200)), ["B"]);
}

#[tokio::test]
async fn a_view_is_changed_by_who_saved_it_and_by_administrators() {
    let server = TestServer::start().await;
    let admin = server.admin().await;
    let ada = member(&server, &admin, "cleo").await;
    let ben = member(&server, &admin, "ben").await;
    let view = save(&ada, "A", "#/sql").await;
    let change = json!({"is_pinned": true});
    let refused = ben.patch(&path_of(&view), &change).await;
    assert_eq!(refused.code(403), "not_your_view");
    assert_eq!(ben.delete(&path_of(&view)).await.code(403), "not_your_view");
    ada.patch(&path_of(&view), &change).await.json(200);
    assert_eq!(admin.delete(&path_of(&view)).await.status, 204);
}

/// A view of a table that is hidden from somebody does not exist for them, however its address names the table.
#[tokio::test]
async fn a_view_of_a_hidden_table_does_not_exist() {
    let server = TestServer::start().await;
    let admin = server.admin().await;
    let group = json!({"name": "Clinic"});
    admin.post("/api/v1/groups", &group).await.json(200);
    let table = json!({
        "semantic_category": "curated",
        "columns": [{"name": "name", "data_type": "string"}],
        "access": {"read": ["Clinic"]},
    });
    let put = admin.request(Method::PUT, "/api/v1/tables/patient");
    send(put.json(&table)).await.json(200);
    let outsider = member(&server, &admin, "cleo").await;
    let page = save(&admin, "Page", "#/tables/patient").await;
    save(&admin, "SQL", "#/sql?q=select+%2A+from+%22%50atient%22").await;
    save(&admin, "Other", "#/tables/sample").await;
    for is_dropped in [false, true] {
        if is_dropped {
            // In the trash, the table has the access that it had.
            admin.delete("/api/v1/tables/patient").await;
        }
        assert_eq!(names(&outsider.get(VIEWS).await.json(200)), ["Other"]);
        let change = json!({"is_pinned": true});
        outsider.patch(&path_of(&page), &change).await.detail(404);
        outsider.delete(&path_of(&page)).await.detail(404);
    }
    assert_eq!(
        names(&admin.get(VIEWS).await.json(200)),
        ["Other", "SQL", "Page"]
    );
}
