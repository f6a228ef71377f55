//! `/api/v1/jobs`: lists and creation

mod changes;
mod given;
mod parameters;
mod publishing;
mod triggers;
mod writing_jobs;

use serde_json::{Value, json};

use self::given::{PATH, created, path_of, with_jobs};
use crate::server::TestServer;

#[tokio::test]
async fn all_jobs_are_listed_newest_first_unless_a_limit_is_given() {
    let names: Vec<String> = (0..60).map(|number| format!("job {number}")).collect();
    let server = with_jobs(&names.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let client = server.admin().await;
    let all = client.get(PATH).await;
    assert_eq!(all.next(), None);
    let all = all.json(200);
    assert_eq!(all.as_array().unwrap().len(), 60);
    assert_eq!(all[0]["name"], "job 59");
    assert_eq!(all[0]["archived"], false);

    let first = client.get(&format!("{PATH}?limit=25&archived=yes")).await;
    let next = first.next().unwrap();
    assert!(next.contains("limit=25&archived=yes&cursor="), "{next}");
    assert!(
        next.starts_with(&format!("http://{}", server.address)),
        "{next}"
    );
    let second = client.get(&next).await;
    assert_eq!(second.json(200)[0]["name"], "job 34");
}

#[tokio::test]
async fn a_name_finds_that_one_job() {
    let server = with_jobs(&["a", "b%", "A"]).await;
    let client = server.admin().await;
    let found = client.get(&format!("{PATH}?name=b%25")).await.json(200);
    assert_eq!(found.as_array().unwrap().len(), 1);
    assert_eq!(found[0]["name"], "b%");
    assert_eq!(
        client.get(&format!("{PATH}?name=none")).await.json(200),
        json!([])
    );
    assert_eq!(
        client
            .get(&format!("{PATH}?name=a"))
            .await
            .json(200)
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let problems = client.get(&format!("{PATH}?name=a%00")).await.problems();
    assert_eq!(
        problems,
        [("value_error".to_owned(), "query.name".to_owned())]
    );
}

#[tokio::test]
async fn booleans_read_as_pydantic_reads_them() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    for truth in ["true", "True", "1", "yes", "on", "false", "0", "no", "off"] {
        client
            .get(&format!("{PATH}?archived={truth}"))
            .await
            .json(200);
    }
    let problems = client
        .get(&format!("{PATH}?archived=maybe"))
        .await
        .problems();
    assert_eq!(
        problems,
        [("bool_parsing".to_owned(), "query.archived".to_owned())]
    );
}

#[tokio::test]
async fn jobs_of_other_organizations_do_not_exist() {
    let server = with_jobs(&["a"]).await;
    assert_eq!(server.stranger().await.get(PATH).await.json(200), json!([]));
}

#[tokio::test]
async fn a_created_job_is_answered_listed_and_read_with_its_code() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let body = json!({"name": "parse", "code": "print(1)\n", "description": "Reads plates"});
    let job = client.post(PATH, &body).await.json(200);
    assert_eq!(job["name"], "parse");
    assert_eq!(job["archived"], false);
    assert_eq!(job["description"], "Reads plates");
    let listed = client.get(&format!("{PATH}?name=parse")).await.json(200);
    assert_eq!(listed, json!([job]));
    let read = client.get(&path_of(&job)).await.json(200);
    assert_eq!(read["code"], "print(1)\n");
    assert_eq!(read["version_number"], 1);
    assert_eq!(read["name"], "parse");
}

#[tokio::test]
async fn a_job_created_by_name_only_has_no_version() {
    let server = with_jobs(&["elsewhere"]).await;
    let client = server.admin().await;
    let listed = client.get(PATH).await.json(200);
    let path = path_of(&listed[0]);
    let read = client.get(&path).await.json(200);
    assert_eq!(read["code"], Value::Null);
    assert_eq!(read["version_number"], Value::Null);
    let versions = client.get(&format!("{path}/versions")).await;
    assert_eq!(versions.json(200), json!([]));
    let edits = json!({"edits": [{"old_string": "a", "new_string": "b"}]});
    client.patch(&path, &edits).await.json(400);
    client
        .patch(&path, &json!({"code": "print(1)\n"}))
        .await
        .json(200);
    assert_eq!(client.get(&path).await.json(200)["version_number"], 1);
}

#[tokio::test]
async fn every_problem_of_a_job_is_reported() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let body = json!({"name": "", "description": 5});
    let problems = client.post(PATH, &body).await.problems();
    for (kind, place) in [
        ("string_too_short", "body.name"),
        ("missing", "body.code"),
        ("string_type", "body.description"),
    ] {
        assert!(
            problems.contains(&(kind.to_owned(), place.to_owned())),
            "{problems:?}"
        );
    }
    let blank = json!({"name": " ", "code": ""});
    client.post(PATH, &blank).await.json(400);
}

#[tokio::test]
async fn a_name_is_taken_once_also_by_archived_jobs_and_in_updates() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let first = created(&client, "first", "").await;
    let second = created(&client, "second", "").await;
    let archive = json!({"archived": true});
    client.patch(&path_of(&first), &archive).await.json(200);
    let again = json!({"name": "first", "code": ""});
    let refused = client.post(PATH, &again).await.json(409);
    assert!(refused["detail"].as_str().unwrap().contains("first"));
    let rename = json!({"name": "first", "code": "print(2)\n"});
    client.patch(&path_of(&second), &rename).await.json(409);
    let read = client.get(&path_of(&second)).await.json(200);
    assert_eq!(read["name"], "second");
    assert_eq!(read["version_number"], 1);
    let same = json!({"name": "second"});
    client.patch(&path_of(&second), &same).await.json(200);
}
