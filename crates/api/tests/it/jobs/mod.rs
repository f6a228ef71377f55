//! `/api/v1/jobs`

mod writing_jobs;

use serde_json::{Value, json};

use crate::server::{Client, TestServer};

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

/// The answer to the creation of a job.
async fn created(client: &Client, name: &str, code: &str) -> Value {
    let body = json!({"name": name, "code": code});
    client.post(PATH, &body).await.json(200)
}

fn path_of(job: &Value) -> String {
    format!("{PATH}/{}", job["id"].as_str().unwrap())
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
    let changes = [
        (json!({"code": broken}), "line 2"),
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

#[tokio::test]
async fn parameters_read_back_as_they_are_defined() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let definitions = json!([
        {"widget_type": "slider", "parameter_name": "threshold", "label": "OD", "min": 0,
         "max": 1.5, "step": 0.1, "required": true, "default": 0.5},
        {"widget_type": "combobox", "parameter_name": "strain", "model_source": "sample"},
        {"widget_type": "region", "parameter_name": "well", "file_id_parameter": "image"},
        {"widget_type": "text", "parameter_name": "image", "file_id": "x"},
        {"widget_type": "date", "parameter_name": "day", "default": "2026-03-01"},
    ]);
    let body = json!({"name": "parse", "code": "", "parameter_definitions": definitions});
    let job = client.post(PATH, &body).await.json(200);
    for (stored, sent) in job["parameter_definitions"]
        .as_array()
        .unwrap()
        .iter()
        .zip(definitions.as_array().unwrap())
    {
        for (name, value) in sent.as_object().unwrap() {
            assert_eq!(stored[name], *value, "{name}");
        }
        assert_eq!(stored.as_object().unwrap().len(), 11);
    }
    let path = path_of(&job);
    let read = client.get(&path).await.json(200);
    assert_eq!(read["parameter_definitions"], job["parameter_definitions"]);
    let kept = client.patch(&path, &json!({"archived": false})).await;
    assert_eq!(
        kept.json(200)["parameter_definitions"],
        job["parameter_definitions"]
    );
    let none = json!({"parameter_definitions": []});
    let changed = client.patch(&path, &none).await.json(200);
    assert_eq!(changed["parameter_definitions"], json!([]));
}

#[tokio::test]
async fn parameters_that_make_no_sense_are_refused() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let body =
        |definitions| json!({"name": "parse", "code": "", "parameter_definitions": definitions});
    let shapeless = body(json!([{"widget_type": "knob", "min": "0"}]));
    assert_eq!(
        client.post(PATH, &shapeless).await.problems(),
        [
            (
                "enum".to_owned(),
                "body.parameter_definitions.0.widget_type".to_owned()
            ),
            (
                "missing".to_owned(),
                "body.parameter_definitions.0.parameter_name".to_owned()
            ),
            (
                "float_type".to_owned(),
                "body.parameter_definitions.0.min".to_owned()
            ),
        ]
    );
    let twice = json!({"widget_type": "text", "parameter_name": "a"});
    let refused = client.post(PATH, &body(json!([twice, twice]))).await;
    let detail = refused.json(400)["detail"].to_string();
    assert!(detail.contains("parameter_definitions[1]"), "{detail}");
}

fn triggered(category: &str, conditions: &Value) -> Value {
    json!({"trigger_enabled": true, "trigger_category": category,
        "trigger_conditions": conditions})
}

#[tokio::test]
async fn a_trigger_is_set_changed_and_removed() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let reader = client
        .post("/api/v1/instruments", &json!({"name": "reader"}))
        .await;
    let reader = reader.json(200)["id"].clone();
    let job = created(&client, "parse", "").await;
    assert_eq!(job["trigger"], Value::Null);
    let path = path_of(&job);
    let mut change = triggered("file_uploaded", &json!({"file_extensions": ["csv"]}));
    change["trigger_instrument_id"] = reader.clone();
    let set = client.patch(&path, &change).await.json(200)["trigger"].clone();
    assert_eq!(set["category"], "file_uploaded");
    assert_eq!(set["instrument_id"], reader);
    assert_eq!(set["conditions"], json!({"file_extensions": ["csv"]}));
    assert_eq!(client.get(&path).await.json(200)["trigger"], set);
    assert_eq!(client.get(PATH).await.json(200)[0]["trigger"], set);

    // What is left out stays; what is passed alone changes alone.
    let kept = client.patch(&path, &json!({"name": "parser"})).await;
    assert_eq!(kept.json(200)["trigger"], set);
    let conditions = json!({"trigger_conditions": {"min_size_kb": 1}});
    let changed = client.patch(&path, &conditions).await.json(200)["trigger"].clone();
    assert_eq!(changed["id"], set["id"]);
    assert_eq!(changed["instrument_id"], reader);
    assert_eq!(changed["conditions"], json!({"min_size_kb": 1}));

    let schedule = triggered(
        "schedule",
        &json!({"cron": "30 6 * * *", "timezone": "Europe/Berlin"}),
    );
    let set = client.patch(&path, &schedule).await.json(200)["trigger"].clone();
    assert_eq!(set["instrument_id"], Value::Null);
    assert_eq!(set["conditions"], schedule["trigger_conditions"]);
    let removed = client
        .patch(&path, &json!({"trigger_enabled": false}))
        .await;
    assert_eq!(removed.json(200)["trigger"], Value::Null);
    client.patch(&path, &conditions).await.json(400);
}

#[tokio::test]
async fn a_job_is_created_with_its_trigger() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let source = created(&client, "source", "").await["id"].clone();
    let mut body = triggered("job_completed", &json!({"source_job_id": source}));
    body["name"] = json!("next");
    body["code"] = json!("");
    let job = client.post(PATH, &body).await.json(200);
    assert_eq!(
        job["trigger"]["conditions"],
        json!({"source_job_id": source})
    );
}

#[tokio::test]
async fn a_trigger_without_category_is_a_problem_at_that_field() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let job = created(&client, "parse", "").await;
    for body in [
        json!({"name": "a", "code": "", "trigger_enabled": true}),
        json!({"name": "a", "code": "", "trigger_enabled": true, "trigger_category": null}),
    ] {
        let expected = [("missing".to_owned(), "body.trigger_category".to_owned())];
        assert_eq!(client.post(PATH, &body).await.problems(), expected);
        assert_eq!(
            client.patch(&path_of(&job), &body).await.problems(),
            expected
        );
    }
    let unknown = json!({"trigger_enabled": true, "trigger_category": "moon"});
    assert_eq!(
        client.patch(&path_of(&job), &unknown).await.problems(),
        [("enum".to_owned(), "body.trigger_category".to_owned())]
    );
}

#[tokio::test]
async fn bad_conditions_are_refused_and_change_nothing() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let job = created(&client, "parse", "").await;
    let strange = server.stranger().await;
    let theirs = created(&strange, "theirs", "").await["id"].clone();
    let path = path_of(&job);
    let schedule =
        |cron: &str, zone: &str| triggered("schedule", &json!({"cron": cron, "timezone": zone}));
    for change in [
        triggered("file_uploaded", &json!({"pattern": "*"})),
        triggered("file_uploaded", &json!({"min_size_kb": "1"})),
        schedule("* * * *", "UTC"),
        schedule("61 * * * *", "UTC"),
        schedule("* * * * *", "Mars/Olympus"),
        triggered("schedule", &json!({})),
        triggered("job_completed", &json!({})),
        triggered("job_completed", &json!({"source_job_id": "nonsense"})),
        triggered("job_completed", &json!({"source_job_id": theirs})),
        triggered("job_completed", &json!({"source_job_id": job["id"]})),
        triggered(
            "job_completed",
            &json!({"source_job_id": "0191d5a4-0000-7000-8000-000000000000"}),
        ),
    ] {
        let refused = client.patch(&path, &change).await.json(400);
        assert!(
            refused["detail"]
                .as_str()
                .unwrap()
                .starts_with("trigger_conditions: ")
        );
    }
    let mut elsewhere = triggered("file_uploaded", &json!({}));
    for unknown in ["nonsense", "0191d5a4-0000-7000-8000-000000000000"] {
        elsewhere["trigger_instrument_id"] = json!(unknown);
        client.patch(&path, &elsewhere).await.json(404);
    }
    assert_eq!(client.get(&path).await.json(200)["trigger"], Value::Null);
}

#[tokio::test]
async fn a_name_for_off_platform_scripts_can_have_no_trigger() {
    let server = with_jobs(&["elsewhere"]).await;
    let client = server.admin().await;
    let path = path_of(&client.get(PATH).await.json(200)[0]);
    let mut change = triggered("file_uploaded", &json!({}));
    client.patch(&path, &change).await.json(400);
    change["code"] = json!("print(1)\n");
    client.patch(&path, &change).await.json(200);
}
