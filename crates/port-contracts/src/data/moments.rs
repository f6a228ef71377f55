//! Contract of [`labdata_ports::data::DataStore`]: the moment of a write, which is one for all its rows and series.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use labdata_domain::{
    catalog::KeyedTable,
    data::{
        history::RecordedChange,
        read::{ManySeriesPlan, RowSelection, SeriesSelection, TablePart},
        write::{Mode, TableWrite},
    },
    ids::ExecutionId,
    scalar::KeyValue,
};
use labdata_ports::data::{RowHistory, parts::PartSink, query::SinkClosed};
use serde_json::{Value, json};
use time::{Duration, OffsetDateTime};

use crate::{
    Itself,
    data::{
        as_of::{pages, reverting, write_at},
        lab::{DataHarness, Lab, insert, series, table_write},
        restore::{delete, update},
    },
    given::at,
};

type Write = fn(&str, Value) -> TableWrite;

/// Counts points.
struct Points(Arc<Mutex<usize>>);

#[async_trait]
impl PartSink for Points {
    async fn part(&mut self, part: TablePart) -> Result<(), SinkClosed> {
        *self.0.lock().unwrap() += part.rows;
        Ok(())
    }

    async fn end(&mut self) -> Result<(), SinkClosed> {
        Ok(())
    }
}

/// The volume of the one sample and the number of its points, as they stood.
async fn stood(lab: &Lab, moment: OffsetDateTime) -> (Option<f64>, usize) {
    let selection = RowSelection {
        limit: 10,
        as_of: Some(moment),
        ..RowSelection::default()
    };
    let mut rows = pages(lab, "sample", selection).await;
    let volume = rows.pop().and_then(|row| row.get("volume")?.as_f64());
    let selection = SeriesSelection {
        table: "curve".to_owned(),
        as_of: Some(moment),
        ..SeriesSelection::default()
    };
    let catalog = lab.tables().await;
    let plan = ManySeriesPlan::new(&catalog, selection).unwrap();
    let points = Arc::<Mutex<usize>>::default();
    let sink = Box::new(Points(Arc::clone(&points)));
    let sent = lab.data.stream_series(lab.organization, &plan, sink).await;
    sent.unwrap();
    let points = *points.lock().unwrap();
    (volume, points)
}

async fn history(lab: &Lab) -> RowHistory {
    let catalog = lab.tables().await;
    let table = KeyedTable::of(catalog.table("sample").unwrap()).unwrap();
    let key = KeyValue::Text("a".to_owned());
    let history = lab.data.history(lab.organization, &table, &key).await;
    history.unwrap()
}

/// The moments of the recorded changes of the sample, which ascend.
async fn moments(lab: &Lab) -> Vec<OffsetDateTime> {
    let changes = history(lab).await.changes;
    let moments: Vec<_> = changes.iter().map(|it: &RecordedChange| it.at).collect();
    assert!(moments.is_sorted_by(|a, b| a < b), "{moments:?}");
    moments
}

/// Writes the sample's volume, and as many points, at a time.
async fn write_both(lab: &Lab, seconds: i64, write: Write, volume: usize) -> ExecutionId {
    let row = write(
        "sample",
        json!([{"id": "a", "name": "a", "volume": volume}]),
    );
    let points = series("curve", json!("a"), json!({"time": vec![volume; volume]}));
    write_at(lab, seconds, [row], [points]).await
}

fn upsert(table: &str, rows: Value) -> TableWrite {
    table_write(Mode::Upsert, table, rows)
}

/// Asserts that row and series had these volumes and numbers of points at each change of the row, and just before.
async fn assert_agree(lab: &Lab, expected: &[usize]) {
    let moments = moments(lab).await;
    assert_eq!(moments.len() + 1, expected.len(), "{moments:?}");
    for ((moment, before), after) in moments.iter().zip(expected).zip(expected.iter().skip(1)) {
        for (moment, volume) in [(*moment - Duration::MICROSECOND, before), (*moment, after)] {
            let (found, points) = stood(lab, moment).await;
            let volume = *volume;
            let expected = f64::from(u8::try_from(volume).unwrap());
            assert_eq!((found, points), (Some(expected), volume));
        }
    }
}

crate::suite!(
    use data::moments as data_moments;

    /// Of two writes of one row and its series, the one that is applied last is later, though it began first.
    async fn the_write_that_is_applied_last_is_the_latest(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        write_both(&lab, 110, insert, 1).await;
        for (seconds, volume) in [(130, 2), (120, 3), (125, 4), (140, 5), (139, 6)] {
            write_both(&lab, seconds, update, volume).await;
        }
        assert_agree(&lab, &[1, 2, 3, 4, 5, 6]).await;
    }

    /// A row and its series have one moment where the series alone was written later before.
    async fn rows_and_series_of_a_write_have_one_moment(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        write_both(&lab, 110, insert, 1).await;
        let alone = series("curve", json!("a"), json!({"time": [1, 1]}));
        write_at(&lab, 130, [], [alone]).await;
        assert_eq!(stood(&lab, at(130)).await, (Some(1.0), 2));
        write_both(&lab, 120, update, 3).await;
        let [moment] = moments(&lab).await[..] else {
            panic!("one change of the row");
        };
        assert!(moment > at(130), "{moment}");
        let before = moment - Duration::MICROSECOND;
        assert_eq!(stood(&lab, before).await, (Some(1.0), 2));
        assert_eq!(stood(&lab, moment).await, (Some(3.0), 3));
    }

    /// New points of a row are not earlier than the row.
    async fn points_are_not_earlier_than_their_row(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        write_at(
            &lab,
            130,
            [insert("sample", json!([{"id": "a", "name": "a"}]))],
            [],
        )
        .await;
        let points = series("curve", json!("a"), json!({"time": [1]}));
        write_at(&lab, 110, [], [points]).await;
        assert_eq!(stood(&lab, at(129)).await.1, 0);
        assert_eq!(stood(&lab, at(130)).await.1, 1);
    }

    /// A row that is deleted and created again is created after its deletion.
    async fn a_row_is_created_again_after_its_deletion(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let writes: [(i64, i64, Write); 3] =
            [(130, 120, insert), (150, 140, upsert), (170, 160, insert)];
        for (deleted, created, write) in writes {
            write_both(&lab, created - 15, write, 1).await;
            write_at(&lab, deleted, [delete("sample", json!([{"id": "a"}]))], []).await;
            let row = json!([{"id": "a", "name": "a", "volume": 2}]);
            write_at(&lab, created, [write("sample", row)], []).await;
            let rows = lab.find("sample", json!({})).await;
            let created_at = rows[0]["created_at"].as_str().unwrap();
            let expected = at(deleted) + Duration::MICROSECOND;
            assert_eq!(created_at, labdata_domain::timestamp::render(expected));
            write_at(
                &lab,
                deleted + 1,
                [delete("sample", json!([{"id": "a"}]))],
                [],
            )
            .await;
        }
        moments(&lab).await;
    }

    /// A revert is later than what it undoes, on a server whose clock is behind as well.
    async fn reverts_are_later_than_what_they_undo(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        write_both(&lab, 110, insert, 1).await;
        let execution = write_both(&lab, 130, update, 2).await;
        let request = reverting(&lab, execution, at(120));
        lab.data.revert(lab.organization, &request).await.unwrap();
        assert_agree(&lab, &[1, 2, 1]).await;
    }
);
