//! Datasets of hidden tables: hidden with their tables at every operation.

use reqwest::Method;
use serde_json::{Value, json};

use super::{HIDDEN, Lab, MARK};
use crate::{
    mcp::lab::ask,
    server::{Client, Reply, send},
};

const PATH: &str = "/api/v1/datasets";

/// The ways in which a dataset is seen, each with whether this caller sees it.
async fn seen(client: &Client, dataset: &str) -> Vec<(String, bool)> {
    let mut seen = Vec::new();
    for part in ["", "/preview", "/download"] {
        let reply = client.get(&format!("{PATH}/{dataset}{part}")).await;
        seen.push((part.to_owned(), is_found(&reply)));
    }
    let training = json!({"name": "m", "dataset_id": dataset, "target_column": "none"});
    let reply = client.post("/api/v1/ml-models", &training).await;
    seen.push(("train".to_owned(), is_found(&reply)));
    let mut lists = vec![
        ("list", client.get(PATH).await.text),
        ("page", client.get(&format!("{PATH}?limit=1")).await.text),
    ];
    let read = json!({"target_type": "core-table", "target_name": "dataset"});
    lists.push(("read", client.post("/api/v1/tools/read", &read).await.text));
    let query = json!({"query": "select id from dataset"});
    lists.push(("sql", client.post("/api/v1/tools/query", &query).await.text));
    let tool = json!({"name": "list_datasets", "arguments": {}});
    lists.push(("mcp", ask(client, "tools/call", tool).await.text));
    seen.extend(
        lists
            .into_iter()
            .map(|(way, text)| (way.to_owned(), text.contains(dataset))),
    );
    seen
}

fn is_found(reply: &Reply) -> bool {
    reply.status != 404
}

async fn assert_seen(client: &Client, dataset: &str, expected: bool, why: &str) {
    let seen = seen(client, dataset).await;
    assert!(
        seen.iter().all(|(_, is)| *is == expected),
        "{why}: {seen:?}"
    );
}

async fn made(client: &Client, name: &str, query: &str) -> String {
    let dataset = json!({"name": name, "query": query});
    let made = client.post(PATH, &dataset).await.json(200);
    made["id"].as_str().unwrap().to_owned()
}

async fn put(lab: &Lab, path: &str, body: &Value) {
    let request = lab.on.client.request(Method::PUT, path).json(body);
    send(request).await.json(200);
}

#[tokio::test]
async fn a_dataset_of_a_hidden_table_does_not_exist() {
    let lab = Lab::start().await;
    let named = format!("select plain as v from \"{HIDDEN}\"");
    let hidden = made(&lab.on.client, "hush copy", &named).await;
    for client in [&lab.inside, &lab.viewer_inside, &lab.reader, &lab.on.client] {
        let found = client.get(&format!("{PATH}/{hidden}")).await.json(200);
        assert_eq!(found["query"], named);
    }
    for client in [&lab.inside, &lab.on.client] {
        assert_seen(client, &hidden, true, "inside").await;
    }
    for outsider in lab.outsiders.iter().filter(|it| it.cookie.is_none()) {
        assert_seen(&outsider.client, &hidden, false, outsider.name).await;
        let page = outsider.client.get(&format!("{PATH}?limit=1")).await;
        assert!(!page.text.contains(MARK), "{}", page.text);
    }
    // The pages of who sees less are full.
    let outside = &lab.outsiders[0].client;
    let open = made(&lab.on.client, "open", "select name from sample").await;
    made(&lab.on.client, "hush again", &named).await;
    let page = outside.get(&format!("{PATH}?limit=1")).await.json(200);
    assert_eq!(
        (page.as_array().unwrap().len(), &page[0]["id"]),
        (1, &json!(open))
    );
}

#[tokio::test]
async fn a_dataset_made_by_a_caller_is_not_one_of_a_table_hidden_from_the_caller() {
    let lab = Lab::start().await;
    let outside = &lab.outsiders[0].client;
    let own = made(
        outside,
        "own",
        &format!("select name as {HIDDEN} from sample"),
    )
    .await;
    assert_seen(outside, &own, true, "its maker").await;
}

#[tokio::test]
async fn datasets_follow_their_tables() {
    let lab = Lab::start().await;
    let admin = &lab.on.client;
    let outside = &lab.outsiders[0].client;
    let columns = json!([{"name": "value", "data_type": "float"}]);
    let mut table = json!({"semantic_category": "curated", "columns": columns});
    put(&lab, "/api/v1/tables/later", &table).await;
    let dataset = made(admin, "later", "select value from LATER").await;
    assert_seen(outside, &dataset, true, "open").await;
    table["access"] = json!({"read": ["few"], "write": ["few"]});
    put(&lab, "/api/v1/tables/later", &table).await;
    assert_seen(outside, &dataset, false, "closed").await;
    assert_seen(&lab.inside, &dataset, true, "closed").await;
    table["renamed_from"] = json!("later");
    put(&lab, "/api/v1/tables/earlier", &table).await;
    assert_seen(outside, &dataset, false, "renamed").await;
    table.as_object_mut().unwrap().remove("renamed_from");
    table["access"] = json!({});
    put(&lab, "/api/v1/tables/earlier", &table).await;
    assert_seen(outside, &dataset, true, "opened").await;
    table["access"] = json!({"read": ["few"]});
    put(&lab, "/api/v1/tables/earlier", &table).await;
    let dropped = admin.delete("/api/v1/tables/earlier?force=true").await;
    assert_eq!(dropped.status, 204);
    let record = format!("{PATH}/{dataset}");
    assert_seen(outside, &dataset, false, "in the trash").await;
    // SQL has the datasets of tables that exist.
    lab.inside.get(&record).await.json(200);
    let trash = admin.get("/api/v1/trash").await.json(200);
    let mut entries = trash.as_array().unwrap().iter();
    let entry = entries.find(|entry| entry["name"] == "earlier").unwrap();
    let entry = format!("/api/v1/trash/{}", entry["id"].as_str().unwrap());
    assert_eq!(admin.delete(&entry).await.status, 204);
    assert_seen(outside, &dataset, false, "purged").await;
    assert_eq!(lab.inside.get(&record).await.status, 404);
    admin.get(&record).await.json(200);
}

#[tokio::test]
async fn a_dataset_of_an_open_table_stays_when_that_is_purged() {
    let lab = Lab::start().await;
    let admin = &lab.on.client;
    let columns = json!([{"name": "value", "data_type": "float"}]);
    let table = json!({"semantic_category": "curated", "columns": columns});
    put(&lab, "/api/v1/tables/open", &table).await;
    let dataset = made(admin, "open", "select value from open").await;
    let dropped = admin.delete("/api/v1/tables/open").await;
    assert_eq!(dropped.status, 204);
    let record = format!("{PATH}/{dataset}");
    let outside = &lab.outsiders[0].client;
    outside.get(&record).await.json(200);
    let trash = admin.get("/api/v1/trash").await.json(200);
    let entry = format!("/api/v1/trash/{}", trash[0]["id"].as_str().unwrap());
    assert_eq!(admin.delete(&entry).await.status, 204);
    assert_seen(outside, &dataset, true, "purged").await;
}
