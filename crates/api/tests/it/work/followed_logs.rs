//! Logs of runs, read while the script writes.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use async_trait::async_trait;
use futures::future::join_all;
use labdata_application::work::sweep_logs::sweep_logs;
use labdata_domain::{
    ids::OrganizationId,
    people::scope::Scope,
    work::{LogAppend, LogRead, LogRetention, WorkId},
};
use labdata_memory::FixedClock;
use labdata_ports::{
    Clock, PortError,
    work::{WorkClaim, logs::WorkLogStore},
};
use reqwest::{Method, Response};
use serde_json::json;
use time::OffsetDateTime;

use super::run_lab::{EXECUTIONS, Lab, id_of, pause};
use crate::{
    people::Access,
    server::{Client, TestServer, in_memory},
};

#[tokio::test]
async fn a_log_is_followed_while_the_script_writes() {
    let lab = Lab::start().await;
    let id = lab.queue("print(\"begins\")\ntime.sleep(600)").await;
    let path = format!("{EXECUTIONS}/{id}/logs?follow=true");
    let mut followed = lab.client.request(Method::GET, &path).send().await.unwrap();
    let mut heard = String::new();
    let mut hear = async |until: &str, heard: &mut String| {
        while !heard.contains(until) {
            let part = followed.chunk().await.unwrap().expect("the log goes on");
            heard.push_str(std::str::from_utf8(&part).unwrap());
        }
    };
    hear("begins", &mut heard).await;
    let run = lab.specs(&id).remove(0).run;
    lab.runner.write(run, b"plate 1 of 2\n");
    hear("plate 1", &mut heard).await;
    lab.runner.write(run, b"plate 2 of 2\n");
    let end = labdata_ports::work::runner::ScriptEnd {
        reason: labdata_ports::work::runner::EndReason::Exited,
        exit: Some(labdata_ports::work::runner::RunExit::Code(0)),
        error_tail: String::new(),
    };
    lab.runner.finish(run, end);
    while let Some(part) = followed.chunk().await.unwrap() {
        heard.push_str(std::str::from_utf8(&part).unwrap());
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
    assert_eq!(reply.header("x-accel-buffering"), Some("no"));
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

#[tokio::test]
async fn the_log_of_an_old_run_says_that_it_was_deleted() {
    let lab = Lab::start().await;
    let id = lab.queue("print(\"output\")").await;
    lab.until(&id, "completed").await;
    let mut services = lab.server.services.clone();
    assert_eq!(sweep_logs(&services).await.unwrap(), 0);
    services.clock = Arc::new(FixedClock::at(
        services.clock.now() + time::Duration::days(91),
    ));
    services.log_retention = LogRetention::of_days(0);
    assert_eq!(sweep_logs(&services).await.unwrap(), 0, "for good");
    services.log_retention = LogRetention::of_days(90);
    assert_eq!(sweep_logs(&services).await.unwrap(), 1);
    let line = "[labdata: the log was deleted on 2026-04-02 (LABDATA_LOG_DAYS)]\n";
    assert_eq!(lab.logs(&id).await, line);
    assert_eq!(lab.execution(&id).await["status"], "completed");
}

/// A store of logs that counts how often it is read.
struct Counted {
    store: Arc<dyn WorkLogStore>,
    reads: AtomicUsize,
}

#[async_trait]
impl WorkLogStore for Counted {
    async fn append(&self, claim: WorkClaim, append: LogAppend<'_>) -> Result<bool, PortError> {
        self.store.append(claim, append).await
    }

    async fn read(
        &self,
        organization: OrganizationId,
        work: WorkId,
        offset: u64,
    ) -> Result<LogRead, PortError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.store.read(organization, work, offset).await
    }

    async fn delete_ended(
        &self,
        ended_before: OffsetDateTime,
        now: OffsetDateTime,
        limit: u32,
    ) -> Result<u64, PortError> {
        self.store.delete_ended(ended_before, now, limit).await
    }

    async fn deleted_at(
        &self,
        organization: OrganizationId,
        work: WorkId,
    ) -> Result<Option<OffsetDateTime>, PortError> {
        self.store.deleted_at(organization, work).await
    }
}

#[tokio::test]
async fn followers_of_a_silent_run_ask_the_database_for_nothing() {
    let clock = Arc::new(FixedClock::default());
    let displayed: Arc<dyn Clock> = clock.clone();
    let mut services = in_memory(displayed);
    let counted = Arc::new(Counted {
        store: Arc::clone(&services.work_logs),
        reads: AtomicUsize::new(0),
    });
    services.work_logs = counted.clone();
    let mut lab = Lab::on(TestServer::start_on(services, clock).await).await;
    lab.start_worker();
    let id = lab.queue("print(\"begins\")\ntime.sleep(600)").await;
    let path = format!("{EXECUTIONS}/{id}/logs?follow=true");
    let request = lab.client.request(Method::GET, &path);
    let request = request.header("accept", "text/event-stream");
    let mut followed = request.send().await.unwrap();
    let mut heard = String::new();
    let mut hear = async |until: &str| {
        while !heard.contains(until) {
            let part = followed.chunk().await.unwrap().unwrap();
            heard.push_str(std::str::from_utf8(&part).unwrap());
        }
        std::mem::take(&mut heard)
    };
    hear("begins").await;
    let before = counted.reads.load(Ordering::Relaxed);
    // It comes 5 s after the last piece.
    hear(": ping").await;
    let reads = counted.reads.load(Ordering::Relaxed) - before;
    assert!(reads <= 2, "{reads} reads of a log that did not grow");
}

async fn follow(client: &Client, id: &str, accept: &str) -> Response {
    let path = format!("{EXECUTIONS}/{id}/logs?follow=true");
    let request = client.request(Method::GET, &path).header("accept", accept);
    request.send().await.unwrap()
}

#[tokio::test]
async fn a_followed_log_ends_when_its_caller_loses_access() {
    for accept in ["text/plain", "text/event-stream"] {
        let lab = Lab::without_worker().await;
        let open = lab.client.post(EXECUTIONS, &json!({})).await.json(200);
        let id = id_of(&open);
        let ends = async |access: &Access| {
            let mut followed = follow(&access.client, &id, accept).await;
            assert_eq!(followed.status(), 200);
            access.end().await;
            while followed.chunk().await.unwrap().is_some() {}
        };
        ends(&Access::by_key(&lab.server).await).await;
        ends(&Access::by_user(&lab.server).await).await;
    }
}

#[tokio::test]
async fn a_flood_of_followers_leaves_room_to_others_and_frees_it_when_it_leaves() {
    for accept in ["text/plain", "text/event-stream"] {
        let lab = Lab::without_worker().await;
        let open = lab.client.post(EXECUTIONS, &json!({})).await.json(200);
        let id = id_of(&open);
        let followers = (0..40).map(|_| follow(&lab.client, &id, accept));
        let (followers, refused): (Vec<_>, Vec<_>) = join_all(followers)
            .await
            .into_iter()
            .partition(|reply| reply.status() == 200);
        // A user has half of what the organization has.
        assert_eq!((followers.len(), refused.len()), (16, 24), "{accept}");
        for reply in refused {
            assert_eq!(reply.status(), 503);
            assert_eq!(reply.headers()["retry-after"], "10");
        }
        // The log can be read, and others follow theirs.
        assert_eq!(lab.logs(&id).await, "");
        let stranger = lab.server.stranger().await;
        let theirs = stranger.post(EXECUTIONS, &json!({})).await.json(200);
        let theirs = follow(&stranger, &id_of(&theirs), accept).await;
        assert_eq!(theirs.status(), 200);
        drop((followers, theirs));
        let until = Instant::now() + Duration::from_secs(20);
        while follow(&lab.client, &id, accept).await.status() != 200 {
            assert!(Instant::now() < until, "{accept}: no place became free");
            pause().await;
        }
    }
}
