//! Data writes.

use bytes::Bytes;
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    client::{Outcome, Payload, Request, Response, text_of},
    ledger::{Certainty, Kind, State},
    load::{Connection, OwnedRow},
    statistics::WRITE,
};

/// Plates that all connections write.
const SHARED_PLATES: u64 = 8;

/// Rows of an imported file.
const IMPORTED: u64 = 20;

/// One of this number of inserted rows is sent again although it was acknowledged.
const REPEATED: u64 = 16;

/// Inserts one row, the smallest write.
pub(super) async fn insert(connection: &mut Connection) {
    let name = connection.tag();
    let row = json!({"run": connection.load.run, "name": name, "counter": 0});
    let body = json!({"tables": [{"table": "load_sample", "rows": [row]}]});
    let request = connection.write(&name, body);
    let Some(response) = written(
        connection,
        &request,
        vec![(Kind::Sample, name.clone(), state(0))],
    )
    .await
    else {
        return;
    };
    if connection.random.below(REPEATED) == 0 {
        repeat(connection, &request, &response).await;
    }
    connection.own_row(OwnedRow {
        id: first_id(&response),
        name,
        counter: 0,
        has_curve: false,
    });
}

/// Sends an acknowledged request again, which must return the first response.
async fn repeat(connection: &Connection, request: &Request, first: &Response) {
    let Some(second) = connection.load.client.expect(request).await else {
        return;
    };
    let is_replay = second.headers.contains_key("idempotent-replayed");
    if !is_replay || second.body != first.body {
        let client = &connection.load.client;
        client.wrong(request, &second, "differs from the first answer");
    }
}

/// Writes a sample with two readings and a curve in one transaction.
pub(super) async fn transaction(connection: &mut Connection) {
    let (name, run) = (connection.tag(), connection.load.run.clone());
    let points = 20 + connection.random.below(200);
    let reading = |number: u64| json!({"run": run, "name": format!("{name}/{number}"), "counter": number, "sample": "@s"});
    let body = json!({
        "tables": [
            {"table": "load_sample", "rows": [{"_ref": "s", "run": run, "name": name, "counter": 0}]},
            {"table": "load_reading", "rows": [reading(1), reading(2)]},
        ],
        "series": [{"table": "load_curve", "parent": "@s", "columns": {"value": values(points, 0)}}],
    });
    let mut group: Vec<_> = (1..=2)
        .map(|number| (Kind::Reading, format!("{name}/{number}"), state(number)))
        .collect();
    group.push((Kind::Sample, name.clone(), state(0)));
    group.push((Kind::Curve, name.clone(), curve(points, 0)));
    let request = connection.write(&name, body);
    written(connection, &request, group).await;
}

/// Increments the counter of a row that no other connection changes.
pub(super) async fn update(connection: &mut Connection) {
    let Some(mut row) = connection.take_row() else {
        return insert(connection).await;
    };
    row.counter += 1;
    let changed = json!({"id": row.id, "counter": row.counter});
    let body = json!({"tables": [{"table": "load_sample", "mode": "update", "rows": [changed]}]});
    let tag = connection.tag();
    let request = connection.write(&tag, body);
    let states = vec![(Kind::Sample, row.name.clone(), state(row.counter))];
    if written(connection, &request, states).await.is_some() {
        connection.own_row(row);
    }
}

/// Creates or updates a plate that all connections write, and one that only this connection writes.
pub(super) async fn upsert(connection: &mut Connection) {
    let tag = connection.tag();
    let run = connection.load.run.clone();
    let shared = format!("{run}-shared-{}", connection.random.below(SHARED_PLATES));
    let row = |name: &str| json!({"run": run, "name": name, "counter": 1});
    let body = json!({"tables": [{
        "table": "load_plate", "mode": "upsert", "key": ["name"], "rows": [row(&shared), row(&tag)],
    }]});
    let request = connection.write(&tag, body);
    let states = [shared, tag].map(|name| (Kind::Plate, name, state(1)));
    written(connection, &request, states.into()).await;
}

/// Deletes a row, with its curve.
pub(super) async fn delete(connection: &mut Connection) {
    let Some(row) = connection.take_row() else {
        return insert(connection).await;
    };
    let body = json!({"tables": [
        {"table": "load_sample", "mode": "delete", "rows": [{"id": row.id}]},
    ]});
    let tag = connection.tag();
    let request = connection.write(&tag, body);
    let outcome = connection.load.client.send(&request).await;
    let Some(certainty) = certainty(connection, &request, &outcome) else {
        return;
    };
    let ledger = &connection.load.ledger;
    ledger.enter(Kind::Sample, &row.name, None, certainty);
    if row.has_curve {
        ledger.enter(Kind::Curve, &row.name, None, certainty);
    }
}

/// Writes or replaces the curve of a row.
pub(super) async fn series(connection: &mut Connection) {
    let Some(mut row) = connection.take_row() else {
        return insert(connection).await;
    };
    let tag = connection.tag();
    let (points, value) = (
        1 + connection.random.below(500),
        connection.random.below(1000),
    );
    let columns = json!({"value": values(points, value)});
    let body = json!({"series": [{"table": "load_curve", "parent": row.id, "columns": columns}]});
    let request = connection.write(&tag, body);
    let states = vec![(Kind::Curve, row.name.clone(), curve(points, value))];
    if written(connection, &request, states).await.is_some() {
        row.has_curve = true;
        connection.own_row(row);
    }
}

/// Imports a CSV file.
pub(super) async fn import(connection: &mut Connection) {
    let tag = connection.tag();
    let run = connection.load.run.clone();
    let names: Vec<String> = (0..IMPORTED).map(|line| format!("{tag}/{line}")).collect();
    let lines = names.iter().map(|name| format!("{run},{name},7\n"));
    let csv = format!("run,name,counter\n{}", lines.collect::<String>());
    let payload = Payload::Form {
        fields: vec![("mode", "insert".to_owned())],
        file_name: "samples.csv".to_owned(),
        bytes: Bytes::from(csv),
    };
    let path = "/api/v1/tables/load_sample/import";
    let request =
        Request::new("POST /tables/{name}/import", Method::POST, path, payload).idempotent(tag);
    let outcome = connection.load.client.send(&request).await;
    if let Some(certainty) = certainty(connection, &request, &outcome) {
        let rows = names.into_iter().map(|name| (Kind::Sample, name, state(7)));
        connection
            .load
            .ledger
            .enter_group(rows.collect(), certainty);
    }
}

/// Sends a write that creates its execution, and enters what it changes.
async fn written(
    connection: &Connection,
    request: &Request,
    states: Vec<(Kind, String, State)>,
) -> Option<Response> {
    let outcome = connection.load.client.send(request).await;
    let certainty = certainty(connection, request, &outcome)?;
    connection.load.ledger.enter_group(states, certainty);
    match outcome {
        Outcome::Done(response) => Some(response),
        _ => None,
    }
}

/// Enters the execution of a write. Returns the certainty of its effect; `None` if it was refused.
fn certainty(connection: &Connection, request: &Request, outcome: &Outcome) -> Option<Certainty> {
    let load = &connection.load;
    let is_write = request.endpoint == WRITE;
    let (execution, certainty) = match outcome {
        Outcome::Done(response) => (
            Some(response.text("job_execution_id")),
            Certainty::Acknowledged,
        ),
        Outcome::Unknown => (None, Certainty::Unknown),
        Outcome::Refused(response) => {
            load.client.wrong(request, response, "was not expected");
            return None;
        }
    };
    if is_write {
        let job = load.writes_job();
        load.ledger.enter_execution(&job, execution, "completed");
    }
    Some(certainty)
}

fn values(points: u64, value: u64) -> Vec<u64> {
    (0..points).map(|_| value).collect()
}

fn curve(points: u64, value: u64) -> State {
    format!("{points} of {value}")
}

fn state(counter: u64) -> State {
    counter.to_string()
}

/// The id of the first row that was written.
fn first_id(response: &Response) -> String {
    let body = response.json();
    let id = body.pointer("/tables/0/ids/0").and_then(Value::as_str);
    id.map_or_else(|| text_of(&body, "id"), str::to_owned)
}
