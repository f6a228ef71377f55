//! Random writes of several executions: read as they stood, and undone.

use std::collections::{BTreeMap, BTreeSet};

use labdata_domain::{
    data::{
        read::RowSelection,
        write::{Mode, SeriesWrite, TableWrite},
    },
    ids::ExecutionId,
};
use labdata_ports::data::{RevertError, WriteTarget};
use serde_json::{Value, json};
use time::OffsetDateTime;

use crate::{
    data::{
        as_of::{pages, reverting},
        lab::{DataHarness, Lab, insert, request, series, table_write},
        restore::{delete, restore, state, update},
    },
    fixtures::Executions,
    given::at,
};

/// Numbers that look random and are the same for the same seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        // Constants of Knuth's MMIX generator; the upper bits are the better ones.
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    /// One of a few keys, so that writes meet.
    fn key(&mut self) -> String {
        format!("k{}", self.below(6))
    }

    fn write(&mut self) -> (Vec<TableWrite>, Vec<SeriesWrite>) {
        let (key, other, value) = (self.key(), self.key(), self.below(100));
        let sample = json!([{"id": key, "name": other, "volume": value}]);
        let measurement = json!([{"id": key, "sample": other, "value": value}]);
        let table = match self.below(9) {
            0 => insert("sample", sample),
            1 => insert("measurement", measurement),
            2 => update("sample", sample),
            3 => update("measurement", measurement),
            4 => table_write(Mode::Upsert, "sample", sample),
            5 => TableWrite {
                key: Some(vec!["name".to_owned()]),
                ..table_write(
                    Mode::Upsert,
                    "sample",
                    json!([{"name": other, "volume": value}]),
                )
            },
            6 => delete("sample", json!([{"id": key}])),
            7 => delete("measurement", json!([{"id": key}])),
            _ => {
                let times: Vec<u64> = (0..self.below(4)).collect();
                let curve = series("curve", json!(key), json!({ "time": times }));
                return (Vec::new(), vec![curve]);
            }
        };
        (vec![table], Vec::new())
    }
}

/// Executions of random writes over three related tables are undone, redone and undone again: each time
/// everything is as it was, keys, points and the server's own columns included.
pub async fn random_executions_are_undone<H: DataHarness>(harness: &H, seed: u64) {
    let lab = Lab::named(harness, &format!("lab {seed}")).await;
    lab.define_tables().await;
    let mut numbers = Numbers(seed);
    let mut reached = Vec::new();
    for _ in 0..4 {
        let before = state(&lab).await;
        let execution = harness.execution(lab.organization, at(0), None).await.id;
        for _ in 0..=numbers.below(8) {
            let (tables, series) = numbers.write();
            // Some ask for what cannot be; they change nothing.
            let _ = lab.write_under(execution, request(tables, series)).await;
        }
        reached.push((execution, before, state(&lab).await));
    }
    for (execution, before, after) in reached.into_iter().rev() {
        let mut undone = execution;
        for expected in [&before, &after, &before] {
            let report = restore(&lab, undone).await;
            let report = report.unwrap_or_else(|error| panic!("seed {seed}: {error:?}"));
            assert_eq!(&state(&lab).await, expected, "seed {seed}");
            let Some(undo) = report.undo_execution else {
                break;
            };
            undone = undo;
        }
    }
}

/// Rows by table and key, and series by parent, each with all that a client can read of it.
type Objects = BTreeMap<(&'static str, String), Value>;

async fn objects(lab: &Lab, as_of: Option<OffsetDateTime>) -> Objects {
    let mut objects = Objects::new();
    let selection = |columns: Option<&[&str]>| RowSelection {
        columns: columns.map(|names| names.iter().map(|&name| name.to_owned()).collect()),
        limit: 1000,
        as_of,
        ..RowSelection::default()
    };
    for table in ["sample", "measurement"] {
        for row in pages(lab, table, selection(None)).await {
            let id = row["id"].as_str().unwrap().to_owned();
            objects.insert((table, id), Value::Object(row));
        }
    }
    let columns = ["sample", "order", "time", "created_by_execution_id"];
    for point in pages(lab, "curve", selection(Some(&columns))).await {
        let id = point["sample"].as_str().unwrap().to_owned();
        let series = objects.entry(("curve", id)).or_insert_with(|| json!([]));
        series.as_array_mut().unwrap().push(Value::Object(point));
    }
    objects
}

/// The objects that differ.
fn touched(before: &Objects, after: &Objects) -> BTreeSet<(&'static str, String)> {
    let all = before.keys().chain(after.keys());
    all.filter(|key| before.get(*key) != after.get(*key))
        .cloned()
        .collect()
}

/// A write of a random history that succeeded.
struct Done {
    /// Index of its execution; that of the reverted one is 0.
    by: usize,
    at: OffsetDateTime,
    request: (Vec<TableWrite>, Vec<SeriesWrite>),
    touched: BTreeSet<(&'static str, String)>,
    after: Objects,
}

/// A lab with three executions, the text of whose ids is replaced by their numbers.
struct Player {
    lab: Lab,
    executions: Vec<ExecutionId>,
}

impl Player {
    async fn new<H: DataHarness>(harness: &H, name: &str) -> Self {
        let lab = Lab::named(harness, name).await;
        lab.define_tables().await;
        let mut executions = Vec::new();
        for _ in 0..3 {
            executions.push(harness.execution(lab.organization, at(0), None).await.id);
        }
        Self { lab, executions }
    }

    async fn objects(&self, as_of: Option<OffsetDateTime>) -> Objects {
        let objects = objects(&self.lab, as_of).await.into_iter();
        let plain = objects.map(|(key, value)| {
            let mut text = value.to_string();
            for (index, id) in self.executions.iter().enumerate() {
                text = text.replace(&id.to_string(), &index.to_string());
            }
            (key, serde_json::from_str(&text).unwrap())
        });
        plain.collect()
    }

    /// Writes; returns false if the write is refused, which changes nothing.
    async fn write(
        &self,
        by: usize,
        now: OffsetDateTime,
        (tables, series): (Vec<TableWrite>, Vec<SeriesWrite>),
    ) -> bool {
        let Ok(plan) = self.lab.plan(request(tables, series)).await else {
            return false;
        };
        let target = WriteTarget::Existing(self.executions[by]);
        self.lab.apply(&plan, target, now).await.is_ok()
    }
}

/// A random history of three executions, one of which is reverted with restore.
///
/// - Every moment of it is read as it stood, before the revert and after.
/// - The rules of a revert, stated again without the planner: everything is as if the execution had never run.
///   So the writes of other executions are played in another lab. Where each of them changes the same objects there, and none
///   that the execution had changed before, the revert succeeds and both labs are equal. A revert that is refused
///   changes nothing, and one that is reverted in turn leaves everything as it was.
///
/// Returns true if others wrote after the execution's first write, and nothing stood in the way of the revert.
pub async fn random_histories_are_read_and_undone<H: DataHarness>(harness: &H, seed: u64) -> bool {
    let player = Player::new(harness, &format!("lab {seed}")).await;
    let mut numbers = Numbers(seed);
    let mut done: Vec<Done> = Vec::new();
    let mut before = Objects::new();
    // Of some histories the other writes are done before the execution begins, so that nothing stands in its way.
    let alone = numbers.below(2) == 0;
    for step in 0..24 {
        let by = match numbers.below(4) {
            _ if alone => usize::from(step < 12),
            0 => 1,
            1 => 2,
            _ => 0,
        };
        let (request, now) = (numbers.write(), at(100 + step));
        if !player.write(by, now, request.clone()).await {
            continue;
        }
        let after = player.objects(None).await;
        done.push(Done {
            by,
            at: now,
            request,
            touched: touched(&before, &after),
            after: after.clone(),
        });
        before = after;
    }
    let replayed = Player::new(harness, &format!("replay {seed}")).await;
    let mut is_clean = true;
    let (mut own, mut expected) = (BTreeSet::new(), Objects::new());
    for write in &done {
        if write.by == 0 {
            own.extend(write.touched.iter().cloned());
            continue;
        }
        let is_done = replayed
            .write(write.by, write.at, write.request.clone())
            .await;
        let after = replayed.objects(None).await;
        is_clean &= is_done
            && touched(&expected, &after) == write.touched
            && own.is_disjoint(&write.touched);
        expected = after;
    }
    let request = reverting(&player.lab, player.executions[0], at(200));
    let reverted = player.lab.data.revert(player.lab.organization, &request);
    match reverted.await {
        Ok(report) => {
            let after = player.objects(None).await;
            if is_clean {
                assert_eq!(after, expected, "seed {seed}");
            }
            if let Some(undo) = report.undo_execution {
                let request = reverting(&player.lab, undo, at(210));
                let redone = player.lab.data.revert(player.lab.organization, &request);
                redone
                    .await
                    .unwrap_or_else(|error| panic!("seed {seed}: {error:?}"));
                assert_eq!(player.objects(None).await, before, "seed {seed}");
                assert_eq!(player.objects(Some(at(205))).await, after, "seed {seed}");
            }
        }
        Err(RevertError::Conflicts(conflicts)) => {
            assert!(!is_clean, "seed {seed}: {conflicts:?}");
            assert_eq!(player.objects(None).await, before, "seed {seed}");
        }
        Err(error) => panic!("seed {seed}: {error:?}"),
    }
    for write in &done {
        let stood = player.objects(Some(write.at)).await;
        assert_eq!(stood, write.after, "seed {seed}, as of {}", write.at);
    }
    let first = done.iter().position(|write| write.by == 0);
    let later = done.iter().skip(first.unwrap_or(done.len()));
    is_clean && later.filter(|write| write.by != 0).count() > 0
}
