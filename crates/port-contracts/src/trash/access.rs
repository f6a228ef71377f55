//! Contract of [`labdata_ports::trash::TrashStore`]: access to entries and to what comes back.

use labdata_domain::{
    catalog::{TableAccess, TableDefinition},
    people::{
        group::GroupChange,
        rights::{Rights, TableRight},
        role::Role,
    },
    scalar::DataType,
};
use labdata_ports::{PortError, trash::RestoreError};

use super::{TrashHarness, TrashLab};
use crate::{
    Itself,
    assertions::assert_not_found,
    catalog::definitions::{column, curated},
    data::lab::Lab,
    given::{self, at},
};

crate::suite!(
    use trash::access as trash_access;

    /// Other organizations neither see nor restore nor purge an entry.
    async fn the_trash_is_the_organizations_own(harness: &Itself<impl TrashHarness>) {
        let lab = TrashLab::over(&**harness).await;
        let theirs = Lab::named(&**harness, "theirs").await.organization;
        let id = lab.try_drop("curve", true).await.unwrap();
        assert_eq!(lab.entries(theirs).await.items, []);
        assert_not_found(lab.trash.get(theirs, id).await);
        assert_not_found(lab.trash.purge(theirs, id).await);
        match lab.trash.restore(theirs, id, at(310)).await {
            Err(RestoreError::Port(PortError::NotFound(_))) => {}
            other => panic!("{other:?}"),
        }
        lab.restore(id).await.unwrap();
    }

    /// A table comes back although groups that it names were deleted, and no one gains access by it.
    async fn a_table_of_deleted_groups_comes_back(harness: &Itself<impl TrashHarness>) {
        let lab = TrashLab::over(&**harness).await;
        let names = ["analysts", "operators", "visitors"];
        for name in names {
            let group = given::group(lab.organization, name, &[lab.user]);
            lab.groups.add(&group).await.unwrap();
        }
        let of = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let cases = [
            (
                "plate",
                ["analysts", "visitors"].as_slice(),
                ["operators"].as_slice(),
            ),
            ("rack", &["operators"], &[]),
            ("tray", &[], &["operators"]),
        ];
        let mut dropped = Vec::new();
        for (name, read, write) in cases {
            let access = Some(TableAccess {
                read: of(read),
                write: of(write),
            });
            let table = TableDefinition {
                access,
                ..curated(name, vec![column("note", DataType::Text)])
            };
            lab.define(&table).await.unwrap();
            dropped.push((name, lab.try_drop(name, true).await.unwrap()));
        }
        for group in lab.groups.list(lab.organization).await.unwrap() {
            if group.name == "visitors" {
                let change = GroupChange {
                    name: Some("guests".to_owned()),
                    members: None,
                };
                let renamed = lab.groups.update(lab.organization, group.id, &change);
                renamed.await.unwrap();
            } else {
                let removed = lab.groups.remove(lab.organization, group.id);
                removed.await.unwrap();
            }
        }
        for (name, id) in dropped {
            lab.restore(id).await.unwrap();
            let table = lab.table(name).await;
            let access = &table.access;
            // A member of each group that has members.
            let groups = lab.groups.list(lab.organization).await.unwrap();
            assert!(
                access
                    .groups()
                    .all(|named| groups.iter().any(|it| it.name == named))
            );
            let own = groups.into_iter().filter(|group| !group.members.is_empty());
            let own: Vec<String> = own.map(|group| group.name).collect();
            assert_eq!(own, ["guests"]);
            let rights = Rights::of(Role::Member, own).on(&table);
            let expected = match name {
                "plate" | "tray" => TableRight::Read,
                _ => TableRight::None,
            };
            assert_eq!(rights, expected, "{name}: {access:?}");
            if name == "plate" {
                assert_eq!(access.read, ["guests"]);
            }
        }
    }

    /// An entry of a table or a column has the access of its table, wherever that is.
    async fn an_entry_has_the_access_of_its_table(harness: &Itself<impl TrashHarness>) {
        let lab = TrashLab::over(&**harness).await;
        let group = given::group(lab.organization, "qc", &[lab.user]);
        lab.groups.add(&group).await.unwrap();
        let access = TableAccess {
            read: vec!["qc".to_owned()],
            write: Vec::new(),
        };
        let restricted = TableDefinition {
            access: Some(access.clone()),
            ..curated(
                "plate",
                vec![
                    column("note", DataType::Text),
                    column("size", DataType::Integer),
                ],
            )
        };
        lab.define(&restricted).await.unwrap();
        lab.try_drop_column("plate", "note").await.unwrap();
        lab.try_drop_column("sample", "volume").await.unwrap();
        let accesses = async || {
            let entries = lab.entries(lab.organization).await.items;
            let mut accesses: Vec<_> = entries.into_iter().map(|it| (it.name, it.access)).collect();
            accesses.sort_by(|a, b| a.0.cmp(&b.0));
            accesses
        };
        let note = ("plate.note".to_owned(), access.clone());
        let volume = ("sample.volume".to_owned(), TableAccess::default());
        assert_eq!(accesses().await, [note.clone(), volume.clone()]);
        lab.try_drop("plate", true).await.unwrap();
        let plate = ("plate".to_owned(), access);
        assert_eq!(accesses().await, [plate, note, volume]);
    }
);
