//! `PATCH /api/v1/jobs/{id}`: names, scripts and their versions

use serde_json::{Value, json};

use super::given::{PATH, created, path_of};
use crate::server::TestServer;

#[tokio::test]
async fn only_what_is_passed_changes() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let body = json!({"name": "parse", "code": "a = 1\n", "description": "x"});
    let job = client.post(PATH, &body).await.json(200);
    let path = path_of(&job);
    let nothing = json!({"name": null, "description": null, "code": null, "edits": null,
        "archived": null, "unknown": 1});
    assert_eq!(client.patch(&path, &nothing).await.json(200), job);
    let cleared = client.patch(&path, &json!({"description": ""})).await;
    let cleared = cleared.json(200);
    assert_eq!(cleared["description"], Value::Null);
    assert_eq!(cleared["name"], "parse");
    let archived = client.patch(&path, &json!({"archived": true})).await;
    assert_eq!(archived.json(200)["archived"], true);
    assert_eq!(client.get(PATH).await.json(200), json!([]));
    let restored = client.patch(&path, &json!({"archived": false})).await;
    assert_eq!(restored.json(200)["archived"], false);
    assert_eq!(client.get(&path).await.json(200)["version_number"], 1);
}

#[tokio::test]
async fn new_code_is_a_new_version_and_old_ones_stay() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let job = created(&client, "parse", "a = 1\n").await;
    let path = path_of(&job);
    client
        .patch(&path, &json!({"code": "a = 2\n"}))
        .await
        .json(200);
    let versions = client.get(&format!("{path}/versions")).await.json(200);
    let seen: Vec<_> = versions
        .as_array()
        .unwrap()
        .iter()
        .map(|version| {
            (
                version["version_number"].clone(),
                version["is_current"].clone(),
            )
        })
        .collect();
    assert_eq!(seen, [(json!(2), json!(true)), (json!(1), json!(false))]);
    assert_eq!(versions[0]["created_by"], server.user.to_string());
    assert!(versions[0]["created_at"].as_str().unwrap().ends_with('Z'));
    assert_eq!(versions[0].get("code"), None);
    let old = client.get(&format!("{path}/versions/1")).await.json(200);
    assert_eq!(old["code"], "a = 1\n");
    assert_eq!(old["is_current"], false);
    for unknown in ["0", "3", "-1", "99999999999"] {
        client
            .get(&format!("{path}/versions/{unknown}"))
            .await
            .json(404);
    }
    let problems = client.get(&format!("{path}/versions/x")).await.problems();
    assert_eq!(
        problems,
        [("int_parsing".to_owned(), "path.version_number".to_owned())]
    );
    let first = client.get(&format!("{path}/versions?limit=1")).await;
    let next = first.next().unwrap();
    let second = client.get(&next).await.json(200);
    assert_eq!(second[0]["version_number"], 1);
}

#[tokio::test]
async fn edits_are_all_made_or_none() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let job = created(&client, "parse", "a = 1\nb = 1\n").await;
    let path = path_of(&job);
    let edits = json!({"edits": [
        {"old_string": "a = 1", "new_string": "a = 2"},
        {"old_string": "a = 2\nb", "new_string": "c"},
    ]});
    client.patch(&path, &edits).await.json(200);
    let read = client.get(&path).await.json(200);
    assert_eq!(read["code"], "c = 1\n");
    assert_eq!(read["version_number"], 2);
    for (old, word) in [("absent", "not in the script"), (" ", "more than once")] {
        let edits = json!({"name": "renamed", "edits": [
            {"old_string": "c", "new_string": "d"},
            {"old_string": old, "new_string": "x"},
        ]});
        let refused = client.patch(&path, &edits).await.json(400);
        let detail = refused["detail"].as_str().unwrap();
        assert!(
            detail.contains("edits[1]") && detail.contains(word),
            "{detail}"
        );
        assert_eq!(client.get(&path).await.json(200), read);
    }
    let both = json!({"code": "", "edits": []});
    assert_eq!(
        client.patch(&path, &both).await.problems(),
        [("value_error".to_owned(), "body.edits".to_owned())]
    );
    let broken = json!({"edits": [{"old_string": 1}]});
    assert_eq!(
        client.patch(&path, &broken).await.problems(),
        [
            (
                "string_type".to_owned(),
                "body.edits.0.old_string".to_owned()
            ),
            ("missing".to_owned(), "body.edits.0.new_string".to_owned()),
        ]
    );
}

#[tokio::test]
async fn racing_edits_all_arrive() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let lines: Vec<String> = (0..16)
        .map(|line| format!("line_{line:02} = 0\n"))
        .collect();
    let lines = lines.concat();
    let job = created(&client, "parse", &lines).await;
    let path = path_of(&job);
    let edits = (0..16).map(|line| {
        let (client, path) = (&client, &path);
        async move {
            let edits = json!({"edits": [{
                "old_string": format!("line_{line:02} = 0"),
                "new_string": format!("line_{line:02} = 1"),
            }]});
            client.patch(path, &edits).await.json(200)
        }
    });
    futures::future::join_all(edits).await;
    let read = client.get(&path).await.json(200);
    assert_eq!(read["version_number"], 17);
    assert_eq!(read["code"], lines.replace("= 0", "= 1"));
}

#[tokio::test]
async fn other_organizations_cannot_touch_a_job() {
    let server = TestServer::start().await;
    let job = created(&server.admin().await, "parse", "").await;
    let (path, stranger) = (path_of(&job), server.stranger().await);
    stranger.get(&path).await.json(404);
    stranger.get(&format!("{path}/versions")).await.json(404);
    stranger.get(&format!("{path}/versions/1")).await.json(404);
    let rename = json!({"name": "theirs"});
    stranger.patch(&path, &rename).await.json(404);
    stranger
        .patch(&format!("{PATH}/nonsense"), &rename)
        .await
        .json(404);
}

#[tokio::test]
async fn a_script_is_stored_with_line_feeds_and_without_byte_order_mark() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let job = created(&client, "parse", "\u{feff}a = 1\r\nb = 2\rc = 3\n").await;
    let path = path_of(&job);
    let stored = client.get(&path).await.json(200);
    assert_eq!(stored["code"], "a = 1\nb = 2\nc = 3\n");

    let edit = json!({"edits": [{"old_string": "a = 1\r\nb", "new_string": "a = 1\r\nd"}]});
    client.patch(&path, &edit).await.json(200);
    let stored = client.get(&path).await.json(200);
    assert_eq!(stored["code"], "a = 1\nd = 2\nc = 3\n");
    let replaced = json!({"code": "\u{feff}e = 5\r\n"});
    client.patch(&path, &replaced).await.json(200);
    let stored = client.get(&path).await.json(200);
    assert_eq!(stored["code"], "e = 5\n");
}

#[tokio::test]
async fn code_that_is_not_python_is_refused_at_its_line_and_column() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let body = json!({"name": "broken", "code": "a = 1\nb = = 2\n"});
    let refused = client.post(PATH, &body).await.json(400);
    let detail = refused["detail"].as_str().unwrap();
    assert!(detail.contains("line 2, column 5"), "{detail}");
    assert_eq!(client.get(PATH).await.json(200), json!([]));

    let job = created(&client, "parse", "a = 1\n").await;
    let path = path_of(&job);
    let broken = "# /// script\n# dependencies = [\n# ///\n";
    let unusable = "import os\r# /// script\r# dependencies = 5\r# ///\r";
    let changes = [
        (json!({"code": broken}), "line 2"),
        (json!({"code": unusable}), "line 3"),
        (
            json!({"code": "# /// script\n# dependencies = []\n"}),
            "line 1",
        ),
        (json!({"code": "\n# coding: latin-1\n"}), "line 2"),
        (
            json!({"edits": [{"old_string": "1", "new_string": "= 2"}]}),
            "line 1",
        ),
    ];
    for (change, place) in changes {
        let refused = client.patch(&path, &change).await.json(400);
        let detail = refused["detail"].as_str().unwrap();
        assert!(detail.contains(place), "{detail}");
    }
    assert_eq!(client.get(&path).await.json(200)["version_number"], 1);
}
