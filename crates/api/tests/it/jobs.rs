//! `/api/v1/jobs`

use serde_json::json;

use crate::server::TestServer;

const PATH: &str = "/api/v1/jobs";

async fn with_jobs(names: &[&str]) -> TestServer {
    let server = TestServer::start().await;
    let client = server.admin().await;
    for name in names {
        server.clock.advance(time::Duration::seconds(1));
        client
            .post("/api/v1/job-executions", &json!({"job_name": name}))
            .await
            .json(200);
    }
    server
}

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
