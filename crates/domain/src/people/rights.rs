//! Rights: what a caller may do to which table. Use cases, queries in SQL and what shows rights to people
//! all ask [`Rights`].

use std::collections::BTreeSet;

use sha2::{Digest, Sha256};

use super::{
    role::Role,
    scope::{Scope, Scopes},
};
use crate::{
    catalog::{Table, TableAccess, TableIdentity},
    refusal::{ErrorCode, RefusalKind, Refuse},
};

/// Rights of a caller to a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TableRight {
    /// None: the table does not exist for the caller.
    None,
    /// Read it, if the scopes allow that.
    Read,
    /// Read and write it, if the scopes allow that.
    Write,
}

/// Facts that decide about a caller's rights: the user's role and groups, and the tables to which the key is
/// narrowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rights {
    role: Role,
    groups: BTreeSet<String>,
    /// The only tables of the key; `None` for all.
    tables: Option<BTreeSet<TableIdentity>>,
}

impl Rights {
    /// Rights of a user with that role, in these groups.
    #[must_use]
    pub fn of(role: Role, groups: impl IntoIterator<Item = String>) -> Self {
        Self {
            role,
            groups: groups.into_iter().collect(),
            tables: None,
        }
    }

    /// Rights of an administrator.
    #[must_use]
    pub fn admin() -> Self {
        Self::of(Role::Admin, [])
    }

    /// The same, narrowed to these tables; to none if `None`.
    #[must_use]
    pub fn narrowed_to(mut self, tables: Option<&[TableIdentity]>) -> Self {
        if let Some(tables) = tables {
            let narrowed = tables.iter().filter(|table| self.includes(table));
            self.tables = Some(narrowed.cloned().collect());
        }
        self
    }

    /// The user's role.
    #[must_use]
    pub const fn role(&self) -> Role {
        self.role
    }

    /// SHA-256 of all that decides what the caller may see: role, groups and narrowing.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(format!("{self:?}")).into()
    }

    /// Refuses a key that is narrowed to tables, for what starts scripts: their keys are not narrowed.
    ///
    /// # Errors
    /// [`NarrowedKey::Scripts`].
    pub const fn require_all_tables(&self) -> Result<(), NarrowedKey> {
        self.require_all_tables_for(NarrowedKey::Scripts)
    }

    /// The same for what else a narrowed key does not have.
    ///
    /// # Errors
    /// The refusal.
    pub const fn require_all_tables_for(&self, refused: NarrowedKey) -> Result<(), NarrowedKey> {
        match self.tables {
            None => Ok(()),
            Some(_) => Err(refused),
        }
    }

    /// The tables to which the key is narrowed.
    #[must_use]
    pub fn tables(&self) -> Option<Vec<TableIdentity>> {
        let tables = self.tables.as_ref()?;
        Some(tables.iter().cloned().collect())
    }

    /// Returns the scopes that a key with these scopes has in effect.
    #[must_use]
    pub fn effective(&self, scopes: Scopes) -> Scopes {
        scopes.intersection(self.role.scopes())
    }

    /// Returns true if no table is hidden.
    #[must_use]
    pub fn see_everything(&self) -> bool {
        self.role == Role::Admin && self.tables.is_none()
    }

    /// Returns what may be done to a table.
    #[must_use]
    pub fn on(&self, table: &Table) -> TableRight {
        self.on_identified(&table.identity(), &table.access)
    }

    /// The same of a table of that identity and access, which may be in the trash.
    #[must_use]
    pub fn on_identified(&self, table: &TableIdentity, access: &TableAccess) -> TableRight {
        if !self.includes(table) {
            return TableRight::None;
        }
        let TableAccess { read, write } = access;
        let is_member = |groups: &[String]| groups.iter().any(|group| self.groups.contains(group));
        let is_admin = self.role == Role::Admin;
        let may_read = is_admin || access.is_read_by_all() || is_member(read) || is_member(write);
        let may_write = is_admin || write.is_empty() || is_member(write);
        match (may_read, may_write) {
            // An open `write` opens the table only to those who may read it.
            (false, _) => TableRight::None,
            (true, false) => TableRight::Read,
            (true, true) => TableRight::Write,
        }
    }

    /// Returns what a key with these scopes may do to a table in effect.
    #[must_use]
    pub fn with_scopes_on(&self, scopes: Scopes, table: &Table) -> TableRight {
        let scopes = self.effective(scopes);
        let right = self.on(table);
        if scopes.contains(Scope::Write) {
            right
        } else if scopes.contains(Scope::Read) {
            right.min(TableRight::Read)
        } else {
            TableRight::None
        }
    }

    /// Returns whether a key may concern a table at all.
    fn includes(&self, table: &TableIdentity) -> bool {
        let tables = self.tables.as_ref();
        tables.is_none_or(|tables| tables.contains(table))
    }
}

/// Error: what the caller would start or read has more tables than the caller's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NarrowedKey {
    /// A script.
    #[error(
        "this API key is narrowed to some tables, and scripts have all tables of its user: use another key"
    )]
    Scripts,
    /// Inbox, preferences, chats and SQL logins, which belong to the user.
    #[error(
        "this API key is narrowed to some tables, and the inbox, the preferences, the chats and the SQL logins of its \
         user may show others: use another key"
    )]
    PersonalRecords,
    /// Users, groups and invitations, which give people rights to others.
    #[error(
        "this API key is narrowed to some tables, and users, groups and invitations give rights to others: use another \
         key"
    )]
    People,
    /// The audit log, which names others.
    #[error(
        "this API key is narrowed to some tables, and the audit log names others: use another key"
    )]
    AuditLog,
    /// Webhooks, which name tables in their filters and are sent events of others.
    #[error(
        "this API key is narrowed to some tables, and webhooks are sent events of all tables: use another key"
    )]
    Webhooks,
}

impl Refuse for NarrowedKey {
    fn code(&self) -> ErrorCode {
        ErrorCode::KeyNarrowed
    }

    fn kind(&self) -> RefusalKind {
        RefusalKind::Forbidden
    }
}

/// Error: the caller may read the table, but not write it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("you may read table \"{0}\", but not write it; an administrator sets who may")]
pub struct TableReadOnly(pub String);

impl Refuse for TableReadOnly {
    fn code(&self) -> ErrorCode {
        ErrorCode::TableReadOnly
    }

    fn kind(&self) -> RefusalKind {
        RefusalKind::Forbidden
    }
}

/// Error: the change concerns a table that the caller may not write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableNotYours {
    /// A definition.
    #[error("a table of this name cannot be defined with these rights; choose another name")]
    Defined,
    /// A revert.
    #[error(
        "this execution wrote tables that you may not write; ask an administrator to revert it"
    )]
    Reverted,
}

impl Refuse for TableNotYours {
    fn code(&self) -> ErrorCode {
        ErrorCode::TableReadOnly
    }

    fn kind(&self) -> RefusalKind {
        RefusalKind::Forbidden
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{KeyedTable, Table};

    fn table(read: &[&str], write: &[&str]) -> Table {
        let groups = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let access = TableAccess {
            read: groups(read),
            write: groups(write),
        };
        let table = Table::clone(KeyedTable::named("sample").table());
        Table { access, ..table }
    }

    fn member(groups: &[&str]) -> Rights {
        Rights::of(Role::Member, groups.iter().map(|name| (*name).to_owned()))
    }

    #[test]
    fn groups_decide_about_tables() {
        use TableRight::{None, Read, Write};
        // Access, and the right of someone outside, of a reader, of a writer.
        for (read, write, rights) in [
            (&[][..], &[][..], [Write, Write, Write]),
            (&["r"], &["w"], [None, Read, Write]),
            (&["r"], &[], [None, Write, None]),
            (&[], &["w"], [Read, Read, Write]),
        ] {
            let table = table(read, write);
            for (groups, right) in [&["x"][..], &["r"], &["w"]].into_iter().zip(rights) {
                assert_eq!(
                    member(groups).on(&table),
                    right,
                    "{read:?} {write:?} {groups:?}"
                );
            }
            assert_eq!(Rights::admin().on(&table), Write);
        }
    }

    #[test]
    fn a_role_is_a_ceiling_of_scopes() {
        let open = table(&[], &[]);
        for role in Role::ALL {
            let rights = Rights::of(role, []);
            assert_eq!(rights.effective(Scopes::all()), role.scopes());
            let read: Scopes = [Scope::Read].into_iter().collect();
            assert_eq!(rights.with_scopes_on(read, &open), TableRight::Read);
            assert_eq!(
                rights.with_scopes_on(Scopes::default(), &open),
                TableRight::None
            );
        }
        let viewer = Rights::of(Role::Viewer, ["w".to_owned()]);
        let written = table(&[], &["w"]);
        assert_eq!(
            viewer.with_scopes_on(Scopes::all(), &written),
            TableRight::Read
        );
    }

    #[test]
    fn a_narrowed_key_has_no_other_table() {
        let open = table(&[], &[]);
        let narrowed = |names: &[&str]| {
            let names = names.iter().map(|name| TableIdentity::parse(name));
            Rights::admin().narrowed_to(Some(&names.collect::<Vec<_>>()))
        };
        assert_eq!(narrowed(&["sample"]).on(&open), TableRight::Write);
        assert_eq!(narrowed(&["plate"]).on(&open), TableRight::None);
        assert!(Rights::admin().narrowed_to(None).see_everything());
        assert_eq!(Rights::admin().require_all_tables(), Ok(()));
        assert_eq!(
            narrowed(&["sample"]).require_all_tables(),
            Err(NarrowedKey::Scripts)
        );
        assert!(!narrowed(&["sample"]).see_everything());
        // Narrowed again, a key gains nothing.
        let again = narrowed(&["sample"]).narrowed_to(Some(&[TableIdentity::parse("plate")]));
        assert_eq!(again.tables(), Some(Vec::new()));
    }

    #[test]
    fn a_narrowed_key_follows_its_table_and_no_other_of_its_name() {
        let of = |id, name: &str| Table {
            id: Some(id),
            name: name.to_owned(),
            ..table(&[], &[])
        };
        let key = Rights::admin().narrowed_to(Some(&[of(1, "kt").identity()]));
        assert_eq!(key.on(&of(1, "ku")), TableRight::Write);
        assert_eq!(key.on(&of(2, "kt")), TableRight::None);
    }

    #[test]
    fn other_rights_have_another_digest() {
        let all = [
            Rights::admin(),
            member(&[]),
            member(&["few"]),
            member(&["many"]),
            member(&[]).narrowed_to(Some(&[])),
        ];
        let digests: BTreeSet<[u8; 32]> = all.iter().map(Rights::digest).collect();
        assert_eq!(digests.len(), all.len());
        assert_eq!(member(&["few"]).digest(), member(&["few"]).digest());
    }

    #[test]
    fn access_names_each_group_once() {
        let twice = TableAccess {
            read: vec!["b".to_owned(), "a".to_owned(), "b".to_owned()],
            write: Vec::new(),
        };
        let once = twice.normalized();
        assert_eq!(once.groups().collect::<Vec<_>>(), ["a", "b"]);
        assert!(!once.is_open() && TableAccess::default().is_open());
    }
}
