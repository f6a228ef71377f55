//! Many writers at the same rows: nothing is lost, nothing mixes, and the ledger knows it all.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::join_all;
use labdata_domain::{
    data::write::{Mode, OnMatch, TableWrite, WriteOutcome, WriteRequest},
    ids::ExecutionId,
    scalar::DataType,
};
use labdata_port_contracts::{
    Harness,
    catalog::definitions::{column, curated, raw, reference, required, unique},
    data::lab::{Lab, insert, request, series, table_write},
};
use labdata_ports::{
    PortError,
    data::{RevertError, WriteError},
};
use serde_json::{Map, Value, json};
use tokio_postgres::Client;

use crate::{contracts::Postgres, look_behind, random::Random, texts};

const WRITERS: usize = 8;
const REQUESTS: usize = 200;
/// Rows that all writers change, and none deletes.
const ITEMS: usize = 100;
/// Rows that come and go.
const GUESTS: usize = 12;

/// Results reported to a writer, compared with the stored rows.
#[derive(Default)]
struct Reported {
    writes: usize,
    busy: usize,
    refused: usize,
    /// The value that this writer last gave each item in its own column.
    values: BTreeMap<usize, i64>,
    /// Rows reported as created and updated, less those deleted and reverted, by table.
    created: i64,
    updated: i64,
    deleted: i64,
    /// Items whose empty column this writer filled.
    filled: i64,
    points: i64,
    /// Its tags that it has not deleted, with the executions that made them.
    tags: Vec<(ExecutionId, Vec<String>)>,
}

fn count(number: u64) -> i64 {
    i64::try_from(number).expect("a small number")
}

fn keyed(mode: Mode, table: &str, rows: Vec<Value>) -> TableWrite {
    TableWrite {
        key: Some(vec!["name".to_owned()]),
        ..table_write(mode, table, Value::from(rows))
    }
}

/// Some items, each once, in any order.
fn some_items(random: &mut Random) -> Vec<usize> {
    let mut items: Vec<usize> = Vec::new();
    for _ in 0..=random.below(8) {
        let item = random.below(ITEMS);
        if !items.contains(&item) {
            items.push(item);
        }
    }
    items
}

struct Writer<'l> {
    lab: &'l Lab,
    number: usize,
    random: Random,
    reported: Reported,
}

impl Writer<'_> {
    async fn write(&mut self, request: WriteRequest) -> Option<WriteOutcome> {
        match self.lab.write(request).await {
            Ok(outcome) => {
                self.reported.writes += 1;
                for table in &outcome.tables {
                    self.reported.created += count(table.created);
                    self.reported.updated += count(table.updated);
                    self.reported.deleted += count(table.deleted);
                    for (name, rows) in table.cascade_deleted.iter().flatten() {
                        if name == "trace" {
                            self.reported.points -= count(*rows);
                        } else {
                            self.reported.deleted += count(*rows);
                        }
                    }
                }
                for series in &outcome.series {
                    self.reported.points += count(series.points_written);
                    self.reported.points -= count(series.points_replaced);
                }
                Some(outcome)
            }
            Err(WriteError::Problems(_)) => {
                self.reported.refused += 1;
                None
            }
            Err(WriteError::Port(PortError::Busy(_))) => {
                self.reported.busy += 1;
                None
            }
            Err(other) => panic!("{other:?}"),
        }
    }

    /// Sets this writer's column of some items.
    async fn set_own(&mut self, mode: Mode, value: i64) {
        let own = format!("w{}", self.number);
        let items = some_items(&mut self.random);
        let row = |item: &usize| {
            let mut row = Map::new();
            row.insert("name".to_owned(), json!(format!("item {item}")));
            row.insert(own.clone(), json!(value));
            Value::Object(row)
        };
        let write = keyed(mode, "item", items.iter().map(row).collect());
        let outcome = self.write(request([write], [])).await;
        if let Some(outcome) = outcome {
            let updated: u64 = outcome.tables.iter().map(|table| table.updated).sum();
            assert_eq!(usize::try_from(updated), Ok(items.len()));
            let values = items.into_iter().map(|item| (item, value));
            self.reported.values.extend(values);
        }
    }

    async fn fill(&mut self) {
        let items = some_items(&mut self.random);
        let row = |item: &usize| json!({ "name": format!("item {item}"), "first": self.number });
        let mut write = keyed(Mode::Update, "item", items.iter().map(row).collect());
        write.on_match = OnMatch::FillMissing;
        if let Some(outcome) = self.write(request([write], [])).await {
            let filled: u64 = outcome.tables.iter().map(|table| table.updated).sum();
            self.reported.filled += count(filled);
        }
    }

    /// Writes tags of an item and of a guest, who may have left.
    async fn tag(&mut self) {
        let item = json!({ "name": format!("item {}", self.random.below(ITEMS)) });
        let mut rows = vec![json!({ "item": item }), json!({ "item": item })];
        if self.random.below(2) == 0 {
            let guest = format!("guest {}", self.random.below(GUESTS));
            rows.push(json!({ "item": { "name": guest } }));
        }
        let tags = rows.len();
        let outcome = self
            .write(request([insert("tag", Value::from(rows))], []))
            .await;
        if let Some(mut outcome) = outcome.filter(|_| tags == 2) {
            let execution = outcome.execution.expect("an execution");
            let ids = outcome.tables.remove(0).ids;
            let ids = ids.iter().map(ToString::to_string).collect();
            self.reported.tags.push((execution, ids));
        }
    }

    /// Deletes or reverts tags that no other writer touches, which succeeds.
    async fn remove_tags(&mut self) {
        let Some((execution, ids)) = self.reported.tags.pop() else {
            return;
        };
        if self.random.below(2) == 0 {
            let rows: Vec<Value> = ids.iter().map(|id| json!({ "id": id })).collect();
            let delete = table_write(Mode::Delete, "tag", Value::from(rows));
            let busy = self.reported.busy;
            let deleted = self.write(request([delete], [])).await;
            assert!(deleted.is_some() || self.reported.busy > busy);
            return;
        }
        match self.lab.revert(execution).await {
            Ok(report) => {
                assert_eq!((report.deleted_count, report.skipped_count), (2, 0));
                self.reported.deleted += 2;
            }
            Err(RevertError::Port(PortError::Busy(_))) => self.reported.busy += 1,
            Err(other) => panic!("{other:?}"),
        }
    }

    async fn guests(&mut self) {
        let guest = |random: &mut Random| {
            let name = format!("guest {}", random.below(GUESTS));
            json!({ "name": name })
        };
        let first = guest(&mut self.random);
        let write = if self.random.below(2) == 0 {
            let mut rows = vec![first];
            let other = guest(&mut self.random);
            if !rows.contains(&other) {
                rows.push(other);
            }
            keyed(Mode::Upsert, "item", rows)
        } else {
            TableWrite {
                cascade: true,
                ..keyed(Mode::Delete, "item", vec![first])
            }
        };
        self.write(request([write], [])).await;
    }

    async fn trace(&mut self, value: i64) {
        let items = some_items(&mut self.random);
        let all: Vec<_> = items
            .iter()
            .map(|item| {
                let parent = json!({ "name": format!("item {item}") });
                let points = 1 + self.random.below(20);
                series("trace", parent, json!({ "value": vec![value; points] }))
            })
            .collect();
        self.write(request([], all)).await;
    }

    async fn run(mut self) -> Reported {
        for turn in 0..REQUESTS {
            let value = i64::try_from(self.number * REQUESTS + turn).expect("a small number");
            match self.random.below(10) {
                0..=1 => self.set_own(Mode::Update, value).await,
                2..=3 => self.set_own(Mode::Upsert, value).await,
                4 => self.fill().await,
                5 => self.tag().await,
                6 => self.remove_tags().await,
                7..=8 => self.guests().await,
                _ => self.trace(value).await,
            }
        }
        self.reported
    }
}

async fn lab(harness: &Postgres) -> Lab {
    let lab = Lab::empty(harness).await;
    let mut columns = vec![
        unique("name", DataType::String),
        column("first", DataType::Integer),
    ];
    columns.extend((0..WRITERS).map(|writer| column(&format!("w{writer}"), DataType::Integer)));
    for definition in [
        curated("item", columns),
        curated("tag", vec![reference("item")]),
        raw(
            "trace",
            vec![reference("item"), required("value", DataType::Integer)],
        ),
    ] {
        lab.define(&definition).await.expect("a table");
    }
    let rows: Vec<Value> = (0..ITEMS)
        .map(|item| json!({ "name": format!("item {item}") }))
        .collect();
    lab.insert("item", Value::from(rows)).await;
    lab
}

async fn number(client: &Client, query: &str) -> i64 {
    client.query_one(query, &[]).await.expect(query).get(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(
    clippy::too_many_lines,
    reason = "one story, and what must be true at its end"
)]
async fn eight_writers_lose_nothing_and_the_ledger_agrees_with_the_tables() {
    let harness = Postgres::fresh().await;
    let lab = lab(&harness).await;
    let writers = (0..WRITERS).map(|number| {
        let writer = Writer {
            lab: &lab,
            number,
            random: Random::new(u64::try_from(number).expect("a small number")),
            reported: Reported::default(),
        };
        writer.run()
    });
    let reported = join_all(writers).await;

    // No update is lost: every writer finds its last values.
    let items = lab.find("item", json!({})).await;
    for (writer, reported) in reported.iter().enumerate() {
        for item in 0..ITEMS {
            let name = format!("item {item}");
            let row = items
                .iter()
                .find(|row| row.get("name") == Some(&json!(name)));
            let stored = row.expect("an item").get(&format!("w{writer}"));
            let stored = stored.and_then(Value::as_i64);
            assert_eq!(
                stored,
                reported.values.get(&item).copied(),
                "{name} w{writer}"
            );
        }
    }
    let filled = items
        .iter()
        .filter(|row| row.get("first") != Some(&Value::Null));
    let sum = |of: fn(&Reported) -> i64| reported.iter().map(of).sum::<i64>();
    assert_eq!(
        i64::try_from(filled.count()),
        Ok(sum(|reported| reported.filled))
    );

    // Of each series, one writer's points stand, all of them and no others.
    let mut points = 0;
    let mut values: BTreeMap<String, BTreeSet<i64>> = BTreeMap::new();
    for item in 0..ITEMS {
        let name = format!("item {item}");
        for point in lab.find("trace", json!({ "item__name": name })).await {
            points += 1;
            let value = point.get("value").and_then(Value::as_i64);
            let known = values.entry(name.clone()).or_default();
            known.insert(value.expect("a value"));
        }
    }
    assert!(
        values.values().all(|values| values.len() == 1),
        "{values:?}"
    );
    assert_eq!(points, sum(|reported| reported.points));

    // The ledger agrees with the answers, and with the tables.
    let client = look_behind(harness.url()).await;
    let schema = texts(
        &client,
        "SELECT schemaname::text FROM pg_tables WHERE tablename = 'tag'",
    )
    .await
    .remove(0);
    let stored = number(
        &client,
        &format!("SELECT (SELECT count(*) FROM \"{schema}\".item) + (SELECT count(*) FROM \"{schema}\".tag)"),
    )
    .await;
    let given = i64::try_from(ITEMS).expect("a small number");
    assert_eq!(
        stored,
        given + sum(|reported| reported.created) - sum(|reported| reported.deleted)
    );
    let ledger = |action: &str| {
        format!(
            "SELECT coalesce(sum(row_count), 0)::bigint FROM labdata.write_ledger WHERE action = '{action}'"
        )
    };
    let created = number(&client, &ledger("created")).await;
    assert_eq!(created, given + sum(|reported| reported.created));
    let updated = number(&client, &ledger("updated")).await;
    assert_eq!(updated, sum(|reported| reported.updated));
    let deleted = number(&client, &ledger("deleted")).await;
    let reverted = number(
        &client,
        &format!("{} AND reverted_at IS NOT NULL", ledger("created")),
    )
    .await;
    assert_eq!(deleted + reverted, sum(|reported| reported.deleted));
    for table in ["item", "tag"] {
        let more_than_the_ledger_says = number(
            &client,
            &format!(
                "SELECT count(*) FROM (SELECT created_by_execution_id AS id, count(*) AS rows FROM \"{schema}\".\"{table}\" GROUP BY 1) stored \
                 LEFT JOIN labdata.write_ledger l ON l.execution_id = stored.id AND l.action = 'created' AND l.table_name = '{table}' \
                 WHERE stored.rows > coalesce(l.row_count, 0) OR l.reverted_at IS NOT NULL"
            ),
        )
        .await;
        assert_eq!(more_than_the_ledger_says, 0, "{table}");
        let difference = number(
            &client,
            &format!(
                "SELECT (SELECT count(*) FROM \"{schema}\".\"{table}\") - coalesce(sum(CASE WHEN action = 'created' AND reverted_at IS NULL THEN row_count \
                 WHEN action = 'deleted' THEN -row_count ELSE 0 END), 0)::bigint FROM labdata.write_ledger WHERE table_name = '{table}'"
            ),
        )
        .await;
        assert_eq!(difference, 0, "{table}");
    }

    // Every write that was answered has its execution, and no other has one.
    let executions = number(&client, "SELECT count(*) FROM labdata.job_execution").await;
    let answered: usize = reported.iter().map(|reported| reported.writes).sum();
    assert_eq!(usize::try_from(executions), Ok(answered + 1));
    let busy: usize = reported.iter().map(|reported| reported.busy).sum();
    let refused: usize = reported.iter().map(|reported| reported.refused).sum();
    assert!(
        busy * 20 < WRITERS * REQUESTS && answered * 2 > WRITERS * REQUESTS,
        "{answered} writes, {refused} refused, {busy} busy"
    );
}
