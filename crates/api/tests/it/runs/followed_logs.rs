//! Logs of runs, read while the script writes.

use labdata_domain::keys::scope::Scope;
use reqwest::Method;
use serde_json::json;

use super::run_lab::{EXECUTIONS, Lab, id_of};

#[tokio::test]
async fn a_log_is_followed_while_the_script_writes() {
    let lab = Lab::start().await;
    let id = lab.queue("print(\"begins\")\ntime.sleep(600)").await;
    let path = format!("{EXECUTIONS}/{id}/logs?follow=true");
    let mut followed = lab.client.request(Method::GET, &path).send().await.unwrap();
    let mut heard = String::new();
    let mut hear = async |until: &str, heard: &mut String| {
        while !heard.contains(until) {
            let piece = followed.chunk().await.unwrap().expect("the log goes on");
            heard.push_str(std::str::from_utf8(&piece).unwrap());
        }
    };
    hear("begins", &mut heard).await;
    let run = lab.specs(&id).remove(0).run;
    lab.runner.write(run, b"plate 1 of 2\n");
    hear("plate 1", &mut heard).await;
    lab.runner.write(run, b"plate 2 of 2\n");
    let end = labdata_ports::runs::runner::ScriptEnd {
        reason: labdata_ports::runs::runner::EndReason::Exited,
        exit: Some(labdata_ports::runs::runner::RunExit::Code(0)),
        error_tail: String::new(),
    };
    lab.runner.finish(run, end);
    while let Some(piece) = followed.chunk().await.unwrap() {
        heard.push_str(std::str::from_utf8(&piece).unwrap());
    }
    assert_eq!(heard, "begins\nplate 1 of 2\nplate 2 of 2\n");
    assert_eq!(lab.execution(&id).await["status"], "completed");
    assert_eq!(lab.logs(&id).await, heard);
}

#[tokio::test]
async fn a_log_is_followed_as_events() {
    let lab = Lab::start().await;
    let id = lab.queue("print(\"12 µl\")\nsys.exit(1)").await;
    let path = format!("{EXECUTIONS}/{id}/logs?follow=true");
    let request = lab.client.request(Method::GET, &path);
    let reply = crate::server::send(request.header("accept", "text/event-stream")).await;
    assert_eq!(reply.header("content-type"), Some("text/event-stream"));
    let expected = "event: log\nid: 7\ndata: {\"text\":\"12 µl\\n\"}\n\n\
                    event: end\ndata: {\"status\":\"failed\"}\n\n";
    assert_eq!(reply.text, expected);
}

#[tokio::test]
async fn logs_are_their_organizations_alone() {
    let lab = Lab::start().await;
    let id = lab.queue("print(\"secret\")").await;
    lab.until(&id, "completed").await;
    let path = format!("{EXECUTIONS}/{id}/logs");
    let stranger = lab.server.stranger().await;
    assert_eq!(stranger.get(&path).await.status, 404);
    let writer = lab.server.client(&[Scope::Write]).await;
    assert_eq!(writer.get(&path).await.status, 403);
    let elsewhere = lab.client.post(EXECUTIONS, &json!({})).await.json(200);
    assert_eq!(lab.logs(&id_of(&elsewhere)).await, "");
}
