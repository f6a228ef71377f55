//! Reads of tables as they stood at an earlier moment (contract §16).

use time::OffsetDateTime;

use super::read::{Condition, ReadTarget};
use crate::{
    catalog::Table,
    refusal::{ErrorCode, Refuse},
    timestamp,
};

/// Reason why a table cannot be read as it stood at a moment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AsOfRefusal {
    /// The moment is yet to come.
    #[error("as_of must not be in the future; here it is {}", timestamp::render(*.0))]
    Future(OffsetDateTime),
    /// Earlier states of the table are not stored.
    #[error("\"{0}\" stores no earlier versions: read it without as_of")]
    NoHistory(String),
    /// The table is known from a later moment on: it was defined then, or its earlier history was deleted.
    #[error("the history of \"{table}\" begins at {}: as_of must not be earlier", timestamp::render(*.since))]
    Earlier {
        /// The table.
        table: String,
        /// The first moment that is known.
        since: OffsetDateTime,
    },
}

impl Refuse for AsOfRefusal {
    fn code(&self) -> ErrorCode {
        match self {
            Self::Future(_) => ErrorCode::InvalidValue,
            Self::NoHistory(_) | Self::Earlier { .. } => ErrorCode::NoHistory,
        }
    }
}

/// The tables that a read at an earlier moment depends on, each once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastTables {
    at: OffsetDateTime,
    names: Vec<String>,
}

impl PastTables {
    /// The tables of a read; those that its conditions reach by references are among them.
    ///
    /// # Errors
    /// [`AsOfRefusal::Future`], or [`AsOfRefusal::NoHistory`] for the first table without history.
    pub fn of_read(
        target: &ReadTarget,
        conditions: &[Condition],
        at: OffsetDateTime,
        now: OffsetDateTime,
    ) -> Result<Self, AsOfRefusal> {
        match target {
            ReadTarget::Table(table) => Self::of(&[table], conditions, at, now),
            ReadTarget::Platform(table) => Err(AsOfRefusal::NoHistory(table.as_str().to_owned())),
        }
    }

    /// Those tables, and those that the conditions reach by references.
    ///
    /// # Errors
    /// As [`Self::of_read`].
    pub fn of(
        tables: &[&Table],
        conditions: &[Condition],
        at: OffsetDateTime,
        now: OffsetDateTime,
    ) -> Result<Self, AsOfRefusal> {
        if at > now {
            return Err(AsOfRefusal::Future(now));
        }
        let hops = conditions.iter().flat_map(|condition| &condition.hops);
        let reached = hops.map(|hop| &**hop.table.table());
        let mut names: Vec<String> = Vec::new();
        for table in tables.iter().copied().chain(reached) {
            if !table.history {
                return Err(AsOfRefusal::NoHistory(table.name.clone()));
            }
            if !names.contains(&table.name) {
                names.push(table.name.clone());
            }
        }
        Ok(Self { at, names })
    }

    /// Their names.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Checks that a table is known as it stood then, given the first moment that is known.
    ///
    /// # Errors
    /// [`AsOfRefusal::Earlier`].
    pub fn check(&self, table: &str, since: OffsetDateTime) -> Result<(), AsOfRefusal> {
        if self.at < since {
            return Err(AsOfRefusal::Earlier {
                table: table.to_owned(),
                since,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use time::{Duration, macros::datetime};

    use super::*;
    use crate::catalog::{Catalog, CatalogVersion};

    const NOW: OffsetDateTime = datetime!(2026-11-26 08:00:00 UTC);

    fn past(
        change: impl FnOnce(&mut Table),
        at: OffsetDateTime,
    ) -> Result<PastTables, AsOfRefusal> {
        let catalog = Catalog::new(CatalogVersion(1), Vec::new());
        let mut table = Table::clone(catalog.table("operation").unwrap());
        change(&mut table);
        PastTables::of(&[&table, &table], &[], at, NOW)
    }

    #[test]
    fn the_future_is_refused_and_now_is_not() {
        let later = past(|_| (), NOW + Duration::microseconds(1)).unwrap_err();
        assert_eq!(later.code(), ErrorCode::InvalidValue);
        assert_eq!(past(|_| (), NOW).unwrap().names(), ["operation"]);
    }

    #[test]
    fn a_table_without_history_is_refused() {
        let refused = past(|table| table.history = false, NOW).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::NoHistory);
        assert!(
            refused
                .to_string()
                .starts_with("\"operation\" stores no earlier versions")
        );
    }

    #[test]
    fn what_is_not_known_any_more_is_refused_with_the_moment_since_which_it_is() {
        let past = past(|_| (), NOW).unwrap();
        assert_eq!(past.check("operation", NOW), Ok(()));
        let since = NOW + Duration::seconds(1);
        let refused = past.check("operation", since).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "the history of \"operation\" begins at 2026-11-26T08:00:01Z: as_of must not be earlier"
        );
    }

    #[test]
    fn tables_of_the_platform_have_no_history() {
        let target = ReadTarget::Platform(crate::catalog::PlatformTable::Job);
        let refused = PastTables::of_read(&target, &[], NOW, NOW).unwrap_err();
        assert_eq!(refused, AsOfRefusal::NoHistory("job".to_owned()));
    }
}
