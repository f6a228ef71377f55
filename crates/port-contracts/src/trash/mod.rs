//! Contract of [`labdata_ports::trash::TrashStore`]: tables. [`access`], [`columns`] and [`files`] cover the rest.

pub mod access;
pub mod columns;
pub mod datasets;
pub mod files;
pub mod names;
pub mod undo;

use std::sync::Arc;

use labdata_domain::{
    catalog::{CatalogRefusal, Table, TableDefinition, Violation},
    data::write::Mode,
    ids::{OrganizationId, TrashId},
    page::{Page, PageRequest},
    scalar::DataType,
    trash::{Deletion, RestoreRefusal, TrashEntry, TrashKind},
};
use labdata_ports::{
    PortError,
    catalog::DefineError,
    people::groups::GroupRepository,
    trash::{RestoreError, TrashStore},
};
use serde_json::{Value, json};

use crate::{
    Itself, Subject,
    assertions::assert_not_found,
    catalog::{
        assert_refused,
        definitions::{column, curated, sample},
        with,
    },
    data::lab::{DataHarness, Lab, insert, request, series, table_write},
    given::{self, at},
};

/// A harness over a store with tables and a trash.
pub trait TrashHarness:
    DataHarness + Subject<dyn TrashStore> + Subject<dyn GroupRepository>
{
}

impl<H: DataHarness + Subject<dyn TrashStore> + Subject<dyn GroupRepository>> TrashHarness for H {}

/// An organization with tables and a trash.
pub struct TrashLab {
    lab: Lab,
    trash: Arc<dyn TrashStore>,
    groups: Arc<dyn GroupRepository>,
}

impl std::ops::Deref for TrashLab {
    type Target = Lab;

    fn deref(&self) -> &Lab {
        &self.lab
    }
}

impl TrashLab {
    async fn over<H: TrashHarness>(harness: &H) -> Self {
        Self {
            lab: Lab::with_tables(harness).await,
            trash: harness.subject(),
            groups: harness.subject(),
        }
    }

    /// A deletion at that second, retained for a minute.
    fn deletion(&self, second: i64) -> Deletion {
        Deletion {
            id: TrashId::new(given::uuid()),
            user: self.user,
            api_key: self.api_key,
            at: at(second),
            purge_at: at(second + 60),
        }
    }

    async fn try_drop(&self, table: &str, force: bool) -> Result<TrashId, DefineError> {
        let deletion = self.deletion(300);
        let dropped = self
            .trash
            .drop_table(self.organization, table, force, &deletion);
        dropped.await.map(|()| deletion.id)
    }

    async fn try_drop_column(&self, table: &str, column: &str) -> Result<TrashId, DefineError> {
        let deletion = self.deletion(300);
        let organization = self.organization;
        let dropped = self
            .trash
            .drop_column(organization, table, column, true, &deletion);
        dropped.await.map(|()| deletion.id)
    }

    async fn restore(&self, id: TrashId) -> Result<TrashEntry, RestoreError> {
        self.trash.restore(self.organization, id, at(310)).await
    }

    async fn entries(&self, organization: OrganizationId) -> Page<TrashEntry> {
        let page = PageRequest {
            limit: Some(100),
            after: None,
        };
        self.trash.list(organization, page).await.unwrap()
    }

    async fn names(&self) -> Vec<String> {
        let page = self.entries(self.organization).await;
        page.items.into_iter().map(|entry| entry.name).collect()
    }

    async fn table(&self, name: &str) -> Arc<Table> {
        Arc::clone(self.tables().await.table(name).unwrap())
    }

    /// Two samples, a measurement of the first one, and its curve.
    async fn fill(&self) {
        let samples = insert(
            "sample",
            json!([{"_ref": "a", "name": "a", "volume": 1.5}, {"name": "b"}]),
        );
        let measured = insert("measurement", json!([{"sample": "@a", "value": 0.1}]));
        let points = series(
            "curve",
            json!("@a"),
            json!({"time": [0, 1], "od": [0.5, null]}),
        );
        self.write(request([samples, measured], [points]))
            .await
            .unwrap();
    }

    /// Everything that reads show of a table.
    async fn rows(&self, table: &str) -> Vec<serde_json::Map<String, Value>> {
        self.find(table, json!({})).await
    }

    async fn update(&self, table: &str, rows: Value) {
        let write = request([table_write(Mode::Update, table, rows)], []);
        self.write(write).await.unwrap();
    }
}

/// Fails unless a restore was refused for that reason.
#[track_caller]
fn assert_kept(result: Result<TrashEntry, RestoreError>, expected: &RestoreRefusal) {
    match result {
        Err(RestoreError::Refused(refusal)) => assert_eq!(refusal, *expected),
        other => panic!("expected a refusal, got {other:?}"),
    }
}

fn taken(kind: TrashKind, name: &str) -> RestoreRefusal {
    RestoreRefusal::NameTaken {
        kind,
        name: name.to_owned(),
    }
}

/// The definition of a table that was named otherwise.
fn renamed(definition: TableDefinition, to: &str) -> TableDefinition {
    TableDefinition {
        renamed_from: Some(definition.name),
        name: to.to_owned(),
        ..definition
    }
}

crate::suite!(
    use trash;

    /// A dropped table comes back with its definition, ids, rows and their history; until then it does not
    /// exist, and its entry says who dropped it.
    async fn a_dropped_table_comes_back_as_it_was(harness: &Itself<impl TrashHarness>) {
        let lab = TrashLab::over(&**harness).await;
        lab.fill().await;
        for (table, key) in [("measurement", true), ("curve", false)] {
            if key {
                let id = lab.rows(table).await[0]["id"].clone();
                lab.update(table, json!([{"id": id, "value": 0.2}])).await;
            }
            let (before, rows) = (lab.table(table).await, lab.rows(table).await);
            assert!(!rows.is_empty());
            assert_refused(
                lab.try_drop(table, false).await,
                &CatalogRefusal::NotEmpty(table.to_owned()),
            );
            assert_eq!(lab.names().await, Vec::<String>::new());
            let id = lab.try_drop(table, true).await.unwrap();
            assert!(lab.tables().await.table(table).is_none());
            let entry = lab.trash.get(lab.organization, id).await.unwrap();
            assert_eq!((entry.kind, entry.name.as_str()), (TrashKind::Table, table));
            assert_eq!((entry.deleted_at, entry.purge_at), (at(300), at(360)));
            assert_eq!(entry.deleted_by.user.id, lab.user);
            assert_eq!(entry.deleted_by.api_key.as_ref().unwrap().id, lab.api_key);
            assert!(entry.size > 0);
            assert_eq!(
                lab.entries(lab.organization).await.items,
                std::slice::from_ref(&entry)
            );
            assert_eq!(lab.restore(id).await.unwrap(), entry);
            assert_eq!(lab.table(table).await, before);
            assert_eq!(lab.rows(table).await, rows);
            assert_eq!(lab.names().await, Vec::<String>::new());
            assert_not_found(lab.trash.get(lab.organization, id).await);
        }
        let table = lab.tables().await.keyed_table("measurement").unwrap();
        let id = lab.rows("measurement").await[0]["id"].clone();
        let key = labdata_domain::scalar::KeyValue::Text(id.as_str().unwrap().to_owned());
        let history = lab.data.history(lab.organization, &table, &key);
        assert_eq!(history.await.unwrap().changes.len(), 1);
        // It refers to its parent again.
        let sample = lab.sample("a").await;
        let gone = request(
            [table_write(Mode::Delete, "sample", json!([{"id": sample}]))],
            [],
        );
        assert!(lab.write(gone).await.is_err());
    }

    /// A table in the trash holds up neither the deletion of rows that it references nor the drop of their
    /// table; then it cannot come back.
    async fn a_dropped_table_holds_nothing_up(harness: &Itself<impl TrashHarness>) {
        let lab = TrashLab::over(&**harness).await;
        lab.fill().await;
        let measurement = lab.try_drop("measurement", true).await.unwrap();
        let curve = lab.try_drop("curve", true).await.unwrap();
        let sample = lab.sample("a").await;
        let gone = table_write(Mode::Delete, "sample", json!([{"id": sample}]));
        lab.write(request([gone], [])).await.unwrap();
        for id in [measurement, curve] {
            let refused = lab.restore(id).await;
            let Err(RestoreError::Refused(RestoreRefusal::Catalog(refusal))) = refused else {
                panic!("{refused:?}");
            };
            let CatalogRefusal::Violation(Violation::Dangling(key)) = refusal else {
                panic!("{refusal:?}");
            };
            assert_eq!((key.columns.as_str(), &key.values), ("sample_id", &sample));
        }
        let parent = lab.try_drop("sample", true).await.unwrap();
        let reference_gone = RestoreRefusal::ReferenceGone {
            name: "measurement".to_owned(),
            target: "sample".to_owned(),
        };
        assert_kept(lab.restore(measurement).await, &reference_gone);
        assert_eq!(lab.names().await.len(), 3);
        lab.restore(parent).await.unwrap();
    }

    /// Names are free: a table of the name can be defined, and several of one name be dropped. While there is
    /// one, none comes back.
    async fn a_name_in_the_trash_is_free(harness: &Itself<impl TrashHarness>) {
        let lab = TrashLab::over(&**harness).await;
        for name in ["measurement", "curve"] {
            lab.try_drop(name, true).await.unwrap();
        }
        let first = lab.try_drop("sample", true).await.unwrap();
        lab.define(&sample()).await.unwrap();
        lab.insert("sample", json!([{"name": "second"}])).await;
        assert_kept(lab.restore(first).await, &taken(TrashKind::Table, "sample"));
        let second = lab.try_drop("sample", true).await.unwrap();
        assert_ne!(first, second);
        lab.restore(second).await.unwrap();
        assert_eq!(lab.column("sample", "name").await, ["second"]);
        assert_kept(lab.restore(first).await, &taken(TrashKind::Table, "sample"));
        lab.define(&renamed(sample(), "other")).await.unwrap();
        lab.restore(first).await.unwrap();
        assert_eq!(lab.count("sample").await, 0);
        assert_eq!(lab.column("other", "name").await, ["second"]);
    }

    /// A table that another one references, and a core table, stay.
    async fn what_cannot_be_dropped_does_not_move(harness: &Itself<impl TrashHarness>) {
        let lab = TrashLab::over(&**harness).await;
        let by = vec!["measurement".to_owned(), "curve".to_owned()];
        let table = "sample".to_owned();
        assert_refused(
            lab.try_drop("sample", true).await,
            &CatalogRefusal::Referenced { table, by },
        );
        assert_refused(
            lab.try_drop("operation", true).await,
            &CatalogRefusal::CoreTable("operation".to_owned()),
        );
        match lab.try_drop("nothing", true).await {
            Err(DefineError::Port(PortError::NotFound(_))) => {}
            other => panic!("{other:?}"),
        }
        assert_eq!(lab.names().await, Vec::<String>::new());
    }

    /// Tables in the trash follow the new names of tables that they reference.
    async fn references_in_the_trash_follow_renames(harness: &Itself<impl TrashHarness>) {
        let lab = TrashLab::over(&**harness).await;
        lab.fill().await;
        let dropped = lab.try_drop("measurement", true).await.unwrap();
        lab.define(&renamed(sample(), "specimen")).await.unwrap();
        lab.restore(dropped).await.unwrap();
        let table = lab.table("measurement").await;
        let references = table.column("sample").unwrap().references.clone();
        assert_eq!(references.as_deref(), Some("specimen"));
        assert_eq!(lab.count("measurement").await, 1);
    }

    /// A purged entry is gone; a table goes with its columns in the trash.
    async fn a_purged_table_is_gone_with_its_columns(harness: &Itself<impl TrashHarness>) {
        let lab = TrashLab::over(&**harness).await;
        lab.fill().await;
        let columns = with(
            curated("note", Vec::new()),
            vec![
                column("text", DataType::Text),
                column("more", DataType::Text),
            ],
        );
        lab.define(&columns).await.unwrap();
        lab.try_drop_column("note", "text").await.unwrap();
        let other = lab.try_drop_column("sample", "note").await.unwrap();
        let table = lab.try_drop("note", true).await.unwrap();
        assert_eq!(lab.names().await.len(), 3);
        let purged = lab.trash.purge(lab.organization, table).await.unwrap();
        assert_eq!(
            (purged.entry.name.as_str(), purged.objects),
            ("note", vec![])
        );
        assert_eq!(lab.names().await, ["sample.note"]);
        assert_not_found(lab.trash.purge(lab.organization, table).await);
        lab.trash.purge(lab.organization, other).await.unwrap();
        assert_eq!(lab.names().await, Vec::<String>::new());
        // Dropped at once, it takes its columns too.
        lab.try_drop_column("sample", "volume").await.unwrap();
        for name in ["measurement", "curve", "sample"] {
            let dropped = lab
                .catalog
                .drop_table(lab.organization, name, true, at(400));
            dropped.await.unwrap();
        }
        assert_eq!(lab.names().await, Vec::<String>::new());
    }

    /// Entries are found when their time has come, the oldest first, and listed by pages, newest first.
    async fn entries_are_due_and_listed_in_order(harness: &Itself<impl TrashHarness>) {
        let lab = TrashLab::over(&**harness).await;
        let mut deletions = Vec::new();
        for (second, name) in [(10, "curve"), (30, "measurement"), (20, "sample")] {
            let deletion = lab.deletion(second);
            let dropped = lab
                .trash
                .drop_table(lab.organization, name, true, &deletion);
            dropped.await.unwrap();
            deletions.push((lab.organization, deletion.id));
        }
        assert_eq!(lab.names().await, ["measurement", "sample", "curve"]);
        let first = PageRequest {
            limit: Some(2),
            after: None,
        };
        let page = lab.trash.list(lab.organization, first).await.unwrap();
        let rest = PageRequest {
            after: page.next,
            ..first
        };
        let rest = lab.trash.list(lab.organization, rest).await.unwrap();
        let rest: Vec<TrashId> = rest.items.iter().map(|entry| entry.id).collect();
        assert_eq!(rest, [deletions[0].1]);
        assert_eq!(lab.trash.due(at(69), 10).await.unwrap(), []);
        let due = lab.trash.due(at(80), 10).await.unwrap();
        assert_eq!(due, [deletions[0], deletions[2]]);
        assert_eq!(lab.trash.due(at(80), 1).await.unwrap(), [deletions[0]]);
    }
);
