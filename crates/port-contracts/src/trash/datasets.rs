//! Contract of [`labdata_ports::models::DatasetRepository`] and [`labdata_ports::trash::TrashStore`]: the tables that
//! datasets were made of, also when they are dropped and purged.

use std::{collections::BTreeSet, sync::Arc};

use labdata_domain::{
    catalog::{TableAccess, TableDefinition, TableIdentity},
    models::Dataset,
    people::{rights::Rights, role::Role, visible_tables::VisibleTables},
    scalar::DataType,
    storage::StorageQuota,
};
use labdata_ports::models::DatasetRepository;
use serde_json::json;

use super::{TrashHarness, TrashLab};
use crate::{
    Itself, Subject,
    catalog::definitions::{column, curated},
    data::lab::Lab,
    given::{self, at},
    paging::{ALL, assert_pages},
};

/// A harness over a store with tables, a trash and datasets.
pub trait DatasetHarness: TrashHarness + Subject<dyn DatasetRepository> {}

impl<H: TrashHarness + Subject<dyn DatasetRepository>> DatasetHarness for H {}

/// An organization with an open table, one for readers of a group, and one that the group alone writes.
struct DatasetsLab {
    trash: TrashLab,
    datasets: Arc<dyn DatasetRepository>,
}

const TABLES: [&str; 3] = ["open", "closed", "readable"];

impl DatasetsLab {
    async fn over<H: DatasetHarness>(harness: &H) -> Self {
        let lab = Self {
            trash: TrashLab::over(harness).await,
            datasets: harness.subject(),
        };
        let own = &lab.trash;
        let group = given::group(own.organization, "few", &[own.user]);
        own.groups.add(&group).await.unwrap();
        let few = || vec!["few".to_owned()];
        for (name, read, write) in [
            ("open", vec![], vec![]),
            ("closed", few(), few()),
            ("readable", vec![], few()),
        ] {
            let table = TableDefinition {
                access: Some(TableAccess { read, write }),
                ..curated(name, vec![column("note", DataType::Text)])
            };
            own.define(&table).await.unwrap();
        }
        lab
    }

    async fn identity(&self, table: &str) -> TableIdentity {
        self.trash.table(table).await.identity()
    }

    /// A dataset of these tables, made at that second.
    async fn dataset(&self, tables: &[TableIdentity], second: i64) -> Dataset {
        let dataset = Dataset {
            tables: tables.iter().cloned().collect(),
            ..given::dataset("wines", self.trash.user, at(second))
        };
        let organization = self.trash.organization;
        let added = self
            .datasets
            .add(organization, &dataset, StorageQuota::UNLIMITED);
        added.await.unwrap();
        dataset
    }

    async fn stored(&self, dataset: &Dataset) -> Dataset {
        let organization = self.trash.organization;
        self.datasets.get(organization, dataset.id).await.unwrap()
    }
}

crate::suite!(
    use trash::datasets as tables_of_datasets;

    /// Lists have the datasets of visible tables only, in full pages; a core table is one too.
    async fn datasets_of_other_tables_are_left_out(harness: &Itself<impl DatasetHarness>) {
        let lab = DatasetsLab::over(&**harness).await;
        let organization = lab.trash.organization;
        let open = lab.identity("open").await;
        let closed = lab.identity("closed").await;
        let core = TableIdentity::Core("experiment".to_owned());
        let mut of_open = Vec::new();
        let mut all = Vec::new();
        for second in 0..4 {
            let seen = lab.dataset(std::slice::from_ref(&open), second * 10).await;
            let bare = lab.dataset(&[], second * 10 + 1).await;
            let both = [open.clone(), closed.clone()];
            let hidden = lab.dataset(&both, second * 10 + 2).await;
            let of_core = lab
                .dataset(std::slice::from_ref(&core), second * 10 + 3)
                .await;
            of_open.splice(0..0, [bare.clone(), seen.clone()]);
            all.splice(0..0, [of_core, hidden, bare, seen]);
        }
        let only = |tables: &[&TableIdentity]| {
            VisibleTables::Only(tables.iter().map(|&table| table.clone()).collect())
        };
        for (visible, expected) in [
            (only(&[&open]), &of_open),
            (only(&[&open, &closed, &core]), &all),
            (VisibleTables::All, &all),
        ] {
            let listed = lab
                .datasets
                .list(organization, &visible, ALL)
                .await
                .unwrap();
            assert_eq!(listed.items, *expected);
            let read = async |page| lab.datasets.list(organization, &visible, page).await;
            assert_pages([1, 3, 8], expected, read).await;
            let mut plan = lab.trash.read_plan("dataset", json!({}), 1000).await;
            plan.visible_tables = visible;
            let rows = lab.trash.read(&plan).await.rows.len();
            assert_eq!(rows, expected.len());
        }
        let nothing = VisibleTables::default();
        let bare = lab
            .datasets
            .list(organization, &nothing, ALL)
            .await
            .unwrap();
        assert_eq!(bare.items.len(), 4);
    }

    /// Dropped tables stay those of datasets, with their access. A purged one does too, unless everyone could read it.
    async fn purged_tables_stay_tables_of_datasets_if_they_were_hidden(
        harness: &Itself<impl DatasetHarness>,
    ) {
        let lab = DatasetsLab::over(&**harness).await;
        let own = &lab.trash;
        let mut tables = Vec::new();
        for name in TABLES {
            tables.push(lab.identity(name).await);
        }
        let dataset = lab.dataset(&tables, 0).await;
        assert_eq!(own.trash.tables(own.organization).await.unwrap(), []);
        let mut dropped = Vec::new();
        for name in TABLES {
            dropped.push(own.try_drop(name, true).await.unwrap());
        }
        assert_eq!(lab.stored(&dataset).await, dataset);
        let trash = own.trash.tables(own.organization).await.unwrap();
        let seen_by = |groups: &[&str]| {
            let rights = Rights::of(Role::Member, groups.iter().map(|&name| name.to_owned()));
            tables
                .iter()
                .map(|table| {
                    let mut trash = trash.iter();
                    let held = trash.find(|held| held.table == *table).unwrap();
                    rights.on_identified(table, &held.access)
                        != labdata_domain::people::rights::TableRight::None
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(seen_by(&[]), [true, false, true]);
        assert_eq!(seen_by(&["few"]), [true, true, true]);
        for id in dropped {
            own.trash.purge(own.organization, id).await.unwrap();
        }
        let left = BTreeSet::from([tables[1].clone()]);
        assert_eq!(lab.stored(&dataset).await.tables, left);
        assert_eq!(own.trash.tables(own.organization).await.unwrap(), []);
    }

    /// The same of tables that are dropped for good at once, in their organization alone.
    async fn tables_dropped_for_good_are_as_purged_ones(harness: &Itself<impl DatasetHarness>) {
        let lab = DatasetsLab::over(&**harness).await;
        let own = &lab.trash;
        let theirs = Lab::named(&**harness, "theirs").await;
        let mut tables = Vec::new();
        for name in TABLES {
            tables.push(lab.identity(name).await);
        }
        let dataset = lab.dataset(&tables, 0).await;
        let foreign = Dataset {
            tables: tables.iter().cloned().collect(),
            ..given::dataset("wines", theirs.user, at(0))
        };
        let added = lab
            .datasets
            .add(theirs.organization, &foreign, StorageQuota::UNLIMITED);
        added.await.unwrap();
        for name in TABLES {
            let dropped = own.catalog.drop_table(own.organization, name, true, at(50));
            dropped.await.unwrap();
        }
        let left = BTreeSet::from([tables[1].clone()]);
        assert_eq!(lab.stored(&dataset).await.tables, left);
        let foreign_now = lab.datasets.get(theirs.organization, foreign.id).await;
        assert_eq!(foreign_now.unwrap(), foreign);
    }
);
