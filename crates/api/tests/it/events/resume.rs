//! Streams that resume after an event.

use labdata_postgres::DatabaseSettings;
use serde_json::{Value, json};

use super::{PATH, Stream};
use crate::{
    on_postgres::OnPostgres,
    server::{TestServer, send},
};

/// The ids of the next events.
async fn ids(stream: &mut Stream, count: usize) -> Vec<Value> {
    let mut ids = Vec::new();
    for _ in 0..count {
        ids.push(stream.next().await.expect("an event")["id"].take());
    }
    ids
}

fn row(number: usize) -> Value {
    json!([{ "name": format!("row {number}") }])
}

#[tokio::test]
async fn a_stream_resumes_after_each_event_without_gap_or_repetition() {
    let lab = OnPostgres::with_tables(DatabaseSettings::default()).await;
    let mut stream = Stream::open(&lab.client).await;
    for number in 0..4 {
        lab.insert("sample", row(number)).await;
    }
    let mut all = ids(&mut stream, 4).await;
    drop(stream);
    lab.insert("sample", row(4)).await;
    let replica = lab.server.replica().await;
    let reader = replica.admin().await;
    let mut resumed = Stream::resume(&reader, all[3].as_str().unwrap()).await;
    all.extend(ids(&mut resumed, 1).await);
    for (index, id) in all.iter().enumerate().take(4) {
        let mut resumed = Stream::resume(&reader, id.as_str().unwrap()).await;
        assert_eq!(ids(&mut resumed, 4 - index).await, all[index + 1..]);
    }
}

#[tokio::test]
async fn an_unknown_event_resumes_at_the_oldest_one_that_is_stored() {
    let lab = OnPostgres::with_tables(DatabaseSettings::default()).await;
    let mut stream = Stream::open(&lab.client).await;
    lab.insert("sample", row(0)).await;
    let old = ids(&mut stream, 1).await.remove(0);
    lab.server.clock.advance(time::Duration::hours(1));
    lab.insert("sample", row(1)).await;
    let new = ids(&mut stream, 1).await.remove(0);

    // Definitions of tables and the first row are an hour old.
    lab.server.clock.advance(time::Duration::seconds(1));
    let swept = labdata_application::events::sweep_events::sweep_events(&lab.server.services).await;
    assert_eq!(swept.unwrap(), 4);
    for unknown in [old.as_str().unwrap(), "0-0", "ffffffffff-1"] {
        let mut resumed = Stream::resume(&lab.client, unknown).await;
        assert_eq!(ids(&mut resumed, 1).await.remove(0), new, "{unknown}");
    }
}

#[tokio::test]
async fn an_open_transaction_delays_events_and_loses_none() {
    let lab = OnPostgres::with_tables(DatabaseSettings::default()).await;
    let mut stream = Stream::open(&lab.client).await;
    let open = lab.behind().await;
    let insert = format!(
        "BEGIN; INSERT INTO labdata.event_log (organization_id, type, at, table_name) \
         VALUES ('{}', 'table.changed', now(), 'of the open transaction')",
        lab.server.organization
    );
    open.batch_execute(&insert).await.unwrap();
    let written = lab.insert("sample", row(0)).await;
    let mut late = Stream::open(&lab.client).await;
    open.batch_execute("COMMIT").await.unwrap();
    let changed = (
        json!("table.changed"),
        json!({ "table": "of the open transaction" }),
    );
    let inserted = (
        json!("data.written"),
        json!({ "job_execution_id": written["job_execution_id"], "table": "sample" }),
    );
    let expected = [changed, inserted];
    assert_eq!(stream.take(2).await, expected);
    assert_eq!(late.take(2).await, expected);
}

#[tokio::test]
async fn a_text_that_is_no_id_is_refused() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    for malformed in ["7", "1-2-3", "x-1", "1-8000000000000000"] {
        let request = client.request(reqwest::Method::GET, PATH);
        let reply = send(request.header("Last-Event-ID", malformed)).await;
        let expected = ("value_error".to_owned(), "header.Last-Event-ID".to_owned());
        assert_eq!(reply.problems(), [expected], "{malformed}");
    }
}
