//! The trash: deleted files, tables and columns that can be restored for a time.

mod kind;
mod references;
mod refusal;

use time::{Duration, OffsetDateTime};

pub use kind::TrashKind;
pub use references::{ReferenceTargets, is_reference_to, reference_targets};
pub use refusal::RestoreRefusal;

use self::references::resolved;
use crate::{
    audit::{AuditTarget, AuditTargetKind},
    catalog::{Catalog, Column, Table, TableAccess, TableIdentity},
    ids::{ApiKeyId, FileId, TrashId, UserId},
    page::Cursor,
    people::{
        author::Author,
        rights::{Rights, TableRight},
    },
};

/// A deletion that can be undone until `purge_at`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deletion {
    /// Id of the entry in the trash.
    pub id: TrashId,
    /// The user who deletes.
    pub user: UserId,
    /// The key that was presented.
    pub api_key: ApiKeyId,
    /// When.
    pub at: OffsetDateTime,
    /// When it is purged.
    pub purge_at: OffsetDateTime,
}

/// The time at which what is deleted now is purged; `None` if nothing is retained, with zero days.
#[must_use]
pub fn purge_at(now: OffsetDateTime, days: u32) -> Option<OffsetDateTime> {
    (days > 0).then(|| {
        // A time past the last one that can be written is as good as never.
        now.checked_add(Duration::days(days.into()))
            .unwrap_or(now + Duration::days(3_650))
    })
}

/// A table in the trash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrashedTable {
    /// The table.
    pub table: TableIdentity,
    /// Access to it. A group that was deleted since is its id, which no group has as its name.
    pub access: TableAccess,
}

/// An entry of the trash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrashEntry {
    /// Its id.
    pub id: TrashId,
    /// Kind of what was deleted.
    pub kind: TrashKind,
    /// Its name: a file's path, a table's name, of a column `table.column`.
    pub name: String,
    /// When it was deleted.
    pub deleted_at: OffsetDateTime,
    /// Author of the deletion.
    pub deleted_by: Author,
    /// When it is purged.
    pub purge_at: OffsetDateTime,
    /// Bytes that it takes.
    pub size: u64,
    /// The file that it was; `None` for tables and columns.
    pub file: Option<FileId>,
    /// The table that it was, or is a column of; `None` for files.
    pub table: Option<TableIdentity>,
    /// Access to the table that it was, or is a column of. Files are open.
    pub access: TableAccess,
}

impl TrashEntry {
    /// Its place in the list.
    #[must_use]
    pub const fn place(&self) -> Cursor {
        Cursor {
            at: self.deleted_at,
            id: self.id.as_uuid(),
        }
    }

    /// Returns whether a caller may see it: a table and its columns by those who may read the table.
    #[must_use]
    pub fn is_visible_to(&self, rights: &Rights) -> bool {
        let table = self.table.as_ref();
        table.is_none_or(|table| rights.on_identified(table, &self.access) > TableRight::None)
    }

    /// Target of its entries in the audit log.
    #[must_use]
    pub fn target(&self) -> AuditTarget {
        match (self.kind, self.file, &self.table) {
            (TrashKind::File, Some(file), _) => {
                AuditTarget::new(AuditTargetKind::File, file, &self.name)
            }
            (TrashKind::File, None, _) => AuditTarget::named(AuditTargetKind::File, &self.name),
            (TrashKind::Table, _, Some(table)) => {
                AuditTarget::new(AuditTargetKind::Table, table, &self.name)
            }
            (TrashKind::Table, _, None) => AuditTarget::named(AuditTargetKind::Table, &self.name),
            (TrashKind::Column, ..) => AuditTarget::named(AuditTargetKind::Column, &self.name),
        }
    }
}

/// The name of a column's entry.
#[must_use]
pub fn column_name(table: &str, column: &str) -> String {
    format!("{table}.{column}")
}

/// The name of a group that comes back without members ([`TableAccess::retained`]), as the last one that a table names.
#[must_use]
pub fn deleted_group_name(group: &str) -> String {
    format!("deleted group {group}")
}

/// Checks that a dropped table fits among the tables of now, and returns it with the names that the targets of its
/// references have now. Whether the rows that its rows reference still exist is for the store to find out.
///
/// # Errors
/// [`RestoreRefusal::NameTaken`] and [`RestoreRefusal::ReferenceGone`].
pub fn check_table(
    catalog: &Catalog,
    table: &Table,
    targets: &ReferenceTargets,
) -> Result<Table, RestoreRefusal> {
    // A raw table's chunks and its view bear one name, so that comparing the names in SQL suffices.
    let mut others = catalog.tables().iter();
    if others.any(|other| other.sql_name() == table.sql_name()) {
        return Err(RestoreRefusal::NameTaken {
            kind: TrashKind::Table,
            name: table.name.clone(),
        });
    }
    let columns = table.columns.iter();
    let columns =
        columns.map(|column| resolved(catalog, Some(table), &table.name, column, targets));
    let columns: Vec<Column> = columns.collect::<Result<_, _>>()?;
    let mut foreign = columns
        .iter()
        .filter(|column| column.references.as_deref() != Some(table.name.as_str()));
    foreign.try_for_each(|column| check_reference(catalog, &table.name, column))?;
    Ok(Table {
        columns: columns.into(),
        ..table.clone()
    })
}

/// Checks that a dropped column fits into its table as that is now, which was `table` when the column was
/// dropped; returns the table, and the column with the name that the target of its reference has now.
///
/// # Errors
/// [`RestoreRefusal`].
pub fn check_column<'c>(
    catalog: &'c Catalog,
    table: i64,
    entry: &str,
    column: &Column,
    targets: &ReferenceTargets,
) -> Result<(&'c Table, Column), RestoreRefusal> {
    let mut tables = catalog.tables().iter();
    let found = tables.find(|known| known.id == Some(table));
    let found = found.ok_or_else(|| RestoreRefusal::TableGone(entry.to_owned()))?;
    let name = column.sql_name();
    let mut columns = found.columns.iter();
    // A reference `sample` and a column `sample_id` are one column in SQL.
    if columns.any(|known| known.name == column.name || known.sql_name() == name) {
        return Err(RestoreRefusal::NameTaken {
            kind: TrashKind::Column,
            name: entry.to_owned(),
        });
    }
    let column = resolved(catalog, None, entry, column, targets)?;
    check_reference(catalog, entry, &column)?;
    Ok((&**found, column))
}

/// Checks that the table that a column references has a key of its type.
fn check_reference(catalog: &Catalog, name: &str, column: &Column) -> Result<(), RestoreRefusal> {
    let Some(target) = &column.references else {
        return Ok(());
    };
    let found = catalog.keyed_table(target);
    if found.is_some_and(|table| table.key().data_type == column.data_type) {
        return Ok(());
    }
    Err(RestoreRefusal::ReferenceGone {
        name: name.to_owned(),
        target: target.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        catalog::{CatalogVersion, Origin, SemanticCategory},
        people::{author::NamedUser, role::Role},
        scalar::DataType,
    };

    fn column(name: &str, data_type: DataType, references: Option<&str>) -> Column {
        Column {
            id: None,
            name: name.to_owned(),
            description: None,
            label: None,
            unit: None,
            data_type,
            is_primary_key: name == "id",
            is_nullable: true,
            is_unique: false,
            default: None,
            references: references.map(str::to_owned),
        }
    }

    fn table(id: i64, name: &str, columns: Vec<Column>) -> Table {
        let columns = std::iter::once(column("id", DataType::String, None)).chain(columns);
        Table {
            id: Some(id),
            name: name.to_owned(),
            description: None,
            category: SemanticCategory::Curated,
            origin: Origin::Organization,
            columns: columns.collect(),
            unique_together: Vec::new(),
            history: true,
            access: crate::catalog::TableAccess::default(),
        }
    }

    fn catalog() -> Catalog {
        let sample = table(
            1,
            "sample",
            vec![column("volume_id", DataType::Float, None)],
        );
        Catalog::new(CatalogVersion(1), vec![sample])
    }

    #[test]
    fn a_table_comes_back_under_a_free_name_with_its_references() {
        let references = |data_type, target| {
            vec![
                column("parent", data_type, Some(target)),
                column("self", DataType::String, Some("aliquot")),
            ]
        };
        let none = ReferenceTargets::new();
        let check = |table: &Table| {
            let checked = check_table(&catalog(), table, &none);
            checked.map(|_| ()).map_err(|it| it.to_string())
        };
        let fits = table(2, "aliquot", references(DataType::String, "sample"));
        assert_eq!(check(&fits), Ok(()));
        let gone =
            "\"aliquot\" references \"batch\", which is deleted or has a key of another type"
                .to_owned();
        let lost = table(2, "aliquot", references(DataType::String, "batch"));
        assert_eq!(check(&lost), Err(gone.clone()));
        let retyped = table(2, "aliquot", references(DataType::Integer, "sample"));
        assert_eq!(check(&retyped), Err(gone.replace("batch", "sample")));
        let taken = check_table(&catalog(), &table(2, "sample", Vec::new()), &none);
        let name = "sample".to_owned();
        let kind = TrashKind::Table;
        assert_eq!(taken, Err(RestoreRefusal::NameTaken { kind, name }));
        let core = check_table(&catalog(), &table(2, "operation", Vec::new()), &none);
        assert!(matches!(core, Err(RestoreRefusal::NameTaken { .. })));
    }

    #[test]
    fn references_come_back_to_the_tables_that_they_had_and_to_no_other_of_the_name() {
        let retype = |id| {
            let columns = ["self", "parent", "run"].map(|name| {
                let target = match name {
                    "self" => "aliquot",
                    "parent" => "sample",
                    _ => "operation",
                };
                column(name, DataType::String, Some(target))
            });
            let targets = ReferenceTargets::from([
                ("self".to_owned(), TableIdentity::Organization(2)),
                ("parent".to_owned(), TableIdentity::Organization(id)),
                (
                    "run".to_owned(),
                    TableIdentity::Core("operation".to_owned()),
                ),
            ]);
            (table(2, "aliquot", columns.to_vec()), targets)
        };
        let (aliquot, targets) = retype(1);
        let gone = RestoreRefusal::ReferenceGone {
            name: "aliquot".to_owned(),
            target: "sample".to_owned(),
        };
        let named =
            |name: &str, id| Catalog::new(CatalogVersion(1), vec![table(id, name, Vec::new())]);
        // The key of the core table `operation` decides what comes back with it.
        let key = named("x", 1)
            .keyed_table("operation")
            .unwrap()
            .key()
            .data_type;
        let mut aliquot = aliquot;
        aliquot.columns.update(|column| {
            if column.name == "run" {
                column.data_type = key;
            }
        });
        let references = |catalog: &Catalog| -> Result<Vec<String>, RestoreRefusal> {
            let checked = check_table(catalog, &aliquot, &targets)?;
            let references = checked.columns.iter().skip(1);
            Ok(references
                .map(|it| it.references.clone().unwrap())
                .collect::<Vec<_>>())
        };
        assert_eq!(
            references(&named("specimen", 1)),
            Ok(vec![
                "aliquot".to_owned(),
                "specimen".to_owned(),
                "operation".to_owned(),
            ])
        );
        // Another table has the name by now.
        assert_eq!(references(&named("sample", 7)), Err(gone));
        assert!(is_reference_to(
            aliquot.column("parent").unwrap(),
            &targets,
            &table(1, "specimen", Vec::new())
        ));
        assert!(!is_reference_to(
            aliquot.column("parent").unwrap(),
            &targets,
            &table(7, "sample", Vec::new())
        ));
        let found = reference_targets(&named("sample", 1), aliquot.columns.iter().map(|it| &**it));
        assert_eq!(found.get("parent"), targets.get("parent"));
        assert_eq!(found.get("run"), targets.get("run"));
    }

    #[test]
    fn a_column_comes_back_into_its_table_by_id_unless_its_name_is_taken() {
        let catalog = catalog();
        let check = |id, column: &Column| {
            let entry = column_name("sample", &column.name);
            let checked = check_column(&catalog, id, &entry, column, &ReferenceTargets::new());
            checked.map(|(table, _)| table.name.as_str())
        };
        let plain = column("note", DataType::Text, None);
        assert_eq!(check(1, &plain), Ok("sample"));
        assert_eq!(
            check(7, &plain),
            Err(RestoreRefusal::TableGone("sample.note".to_owned()))
        );
        // In SQL the reference is `volume_id`.
        let reference = column("volume", DataType::String, Some("sample"));
        let kind = TrashKind::Column;
        let name = "sample.volume".to_owned();
        assert_eq!(
            check(1, &reference),
            Err(RestoreRefusal::NameTaken { kind, name })
        );
    }

    #[test]
    fn who_may_read_a_table_sees_it_and_its_columns_in_the_trash() {
        let groups = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let entry = |kind, name: &str, read: &[&str]| TrashEntry {
            id: TrashId::new(uuid::Uuid::nil()),
            kind,
            name: name.to_owned(),
            deleted_at: OffsetDateTime::UNIX_EPOCH,
            deleted_by: author(),
            purge_at: OffsetDateTime::UNIX_EPOCH,
            size: 0,
            file: (kind == TrashKind::File).then(|| FileId::new(uuid::Uuid::nil())),
            table: match kind {
                TrashKind::File => None,
                TrashKind::Table | TrashKind::Column => {
                    Some(TableIdentity::parse(name.split('.').next().unwrap()))
                }
            },
            access: TableAccess {
                read: groups(read),
                write: Vec::new(),
            },
        };
        let member = Rights::of(Role::Member, ["qc".to_owned()]);
        let narrowed = member
            .clone()
            .narrowed_to(Some(&[TableIdentity::parse("sample")]));
        let target = |kind, name: &str| entry(kind, name, &[]).target().id;
        assert_eq!(
            target(TrashKind::File, "a.csv"),
            Some(uuid::Uuid::nil().to_string())
        );
        assert_eq!(target(TrashKind::Table, "7"), Some("7".to_owned()));
        assert_eq!(target(TrashKind::Column, "sample.note"), None);
        let column = entry(TrashKind::Column, "sample.note", &[]);
        assert!(column.is_visible_to(&narrowed));
        assert!(entry(TrashKind::File, "a.csv", &[]).is_visible_to(&narrowed));
        assert!(!entry(TrashKind::Table, "plate", &[]).is_visible_to(&narrowed));
        for (read, expected) in [("qc", true), ("assays", false)] {
            for (kind, name) in [
                (TrashKind::Table, "plate"),
                (TrashKind::Column, "plate.note"),
            ] {
                assert_eq!(entry(kind, name, &[read]).is_visible_to(&member), expected);
            }
        }
    }

    fn author() -> Author {
        Author {
            user: NamedUser {
                id: UserId::new(uuid::Uuid::nil()),
                email: "ada@example.org".to_owned(),
                name: "Ada".to_owned(),
            },
            api_key: None,
        }
    }

    #[test]
    fn nothing_is_retained_with_zero_days() {
        let now = OffsetDateTime::UNIX_EPOCH;
        assert_eq!(purge_at(now, 0), None);
        assert_eq!(purge_at(now, 30), Some(now + Duration::days(30)));
        assert!(purge_at(now, u32::MAX) > Some(now));
    }

    #[test]
    fn kinds_have_names_that_read_back() {
        for kind in TrashKind::ALL {
            assert_eq!(TrashKind::from_name(kind.as_str()), Some(kind));
        }
        assert_eq!(TrashKind::from_name("row"), None);
    }
}
