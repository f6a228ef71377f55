//! Contract of [`labdata_ports::trash::TrashStore`], [`labdata_ports::catalog::CatalogStore`] and what knows tables by
//! their names: another table may bear the name of a dropped one, and others may see it.

use labdata_domain::{
    data::changes::RowChange,
    events::{EventPosition, LoggedEvent},
};
use labdata_ports::{data::ChangedRows, events::EventLog};
use serde_json::json;

use super::{TrashHarness, TrashLab, renamed};
use crate::{
    Itself, Subject,
    catalog::definitions::sample,
    data::{
        lab::{insert, request},
        restore::delete,
    },
    events::read as read_events,
    fixtures::Executions,
    given::at,
};

/// The events of tables: the name of each and whether it was dropped since.
async fn tables_of_events(
    harness: &impl Subject<dyn EventLog>,
    lab: &TrashLab,
    count: usize,
) -> Vec<(String, bool)> {
    let log = harness.subject();
    let start = EventPosition::START;
    let all = read_events(&*log, lab.organization, lab.user, start, count).await;
    let of_table = |event: &LoggedEvent| {
        let table = event.kind.table()?.to_owned();
        Some((table, event.is_of_dropped_table))
    };
    all.iter().filter_map(of_table).collect()
}

crate::suite!(
    use trash::names as trash_names;

    /// The changes of an execution to a dropped table are listed under its name until another table bears it, and again
    /// when it is restored.
    async fn changes_are_of_the_table_that_was_written(harness: &Itself<impl TrashHarness>) {
        let lab = TrashLab::over(&**harness).await;
        for name in ["measurement", "curve"] {
            lab.try_drop(name, true).await.unwrap();
        }
        lab.insert("sample", json!([{"id": "a", "name": "a"}]))
            .await;
        let execution = harness.execution(lab.organization, at(0), None).await.id;
        let inserted = insert("sample", json!([{"id": "b", "name": "b"}]));
        for table in [inserted, delete("sample", json!([{"id": "a"}]))] {
            lab.write_under(execution, request([table], []))
                .await
                .unwrap();
        }
        let before = lab.changes(execution).await;
        assert_eq!(before.tables["sample"].ids[&RowChange::Deleted], ["a"]);
        let dropped = lab.try_drop("sample", true).await.unwrap();
        assert_eq!(lab.changes(execution).await.tables["sample"].deleted, 1);
        lab.define(&sample()).await.unwrap();
        assert!(lab.changes(execution).await.tables.is_empty());
        for change in [RowChange::Created, RowChange::Deleted] {
            let rows = ChangedRows {
                execution,
                table: "sample".to_owned(),
                change,
                after: None,
                limit: 10,
            };
            let ids = lab.data.changed_ids(lab.organization, &rows).await;
            assert!(ids.unwrap().is_empty(), "{change:?}");
        }
        lab.define(&renamed(sample(), "other")).await.unwrap();
        lab.restore(dropped).await.unwrap();
        assert_eq!(lab.changes(execution).await, before);
    }

    /// Events follow their table through a rename, and say that it was dropped until it is restored.
    async fn events_are_of_their_table(
        harness: &Itself<impl TrashHarness + Subject<dyn EventLog>>,
    ) {
        let lab = TrashLab::over(&**harness).await;
        for name in ["measurement", "curve"] {
            lab.try_drop(name, true).await.unwrap();
        }
        lab.insert("sample", json!([{"id": "a", "name": "a"}]))
            .await;
        let count = tables_of_events(&**harness, &lab, 0).await.len();
        lab.define(&renamed(sample(), "renamed")).await.unwrap();
        // Its definition and the write; the rename has an event for either name.
        let found = tables_of_events(&**harness, &lab, count + 2).await;
        let of_renamed = found.iter().filter(|(name, _)| name == "renamed");
        assert_eq!(of_renamed.count(), 3);
        // A later table of the former name shows nothing of it.
        let of_former = |found: &[(String, bool)]| -> Vec<bool> {
            let former = found.iter().filter(|(name, _)| name == "sample");
            former.map(|(_, is_dropped)| *is_dropped).collect()
        };
        assert_eq!(of_former(&found), [true]);
        let dropped = lab.try_drop("renamed", true).await.unwrap();
        let found = tables_of_events(&**harness, &lab, count + 3).await;
        let mut of_renamed = found.iter().filter(|(name, _)| name == "renamed");
        assert!(of_renamed.all(|(_, is_dropped)| *is_dropped));
        lab.restore(dropped).await.unwrap();
        let found = tables_of_events(&**harness, &lab, count + 4).await;
        let mut of_renamed = found.iter().filter(|(name, _)| name == "renamed");
        assert!(of_renamed.all(|(_, is_dropped)| !is_dropped));
    }
);
