//! Tables that a query may read, by the names in its text.

use std::collections::BTreeSet;

use super::{
    QueryText,
    lexer::{TokenKind, tokenize},
    screen::name,
};
use crate::catalog::{Catalog, PlatformTable, Table, TableIdentity};

/// Number of bytes of a name that PostgreSQL reads; it ignores the rest.
const NAME_LENGTH: usize = 63;

impl QueryText {
    /// Returns the tables of a catalog that the query may read: those whose name is one of its identifiers, in any
    /// case. A column or an alias of a table's name counts, so that there may be a table too many, never one too few.
    /// The platform's own tables of tables and datasets hold names of all tables, so that a query that names one of
    /// them may read every table.
    #[must_use]
    pub fn tables_named(&self, catalog: &Catalog) -> BTreeSet<TableIdentity> {
        let all = || catalog.tables().iter().map(|table| table.identity());
        // The text was read before, when it was checked.
        let Ok(tokens) = tokenize(&self.text) else {
            return all().collect();
        };
        let mut names = BTreeSet::new();
        for token in &tokens {
            if !matches!(token.kind, TokenKind::Word | TokenKind::Quoted) {
                continue;
            }
            let mut lowercase = name(&self.text, token).to_lowercase();
            if lowercase == PlatformTable::Dataset.as_str()
                // Without quotes it is the keyword.
                || (token.kind == TokenKind::Quoted && lowercase == PlatformTable::Table.as_str())
            {
                return all().collect();
            }
            // Names of tables are ASCII: one that is cut within a character is none.
            if lowercase.is_char_boundary(NAME_LENGTH) {
                lowercase.truncate(NAME_LENGTH);
            }
            names.insert(lowercase);
        }
        let are_named = |table: &&std::sync::Arc<Table>| {
            names.contains(&table.name) || names.contains(table.sql_name().as_ref())
        };
        let matching = catalog.tables().iter().filter(are_named);
        matching.map(|table| table.identity()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{CatalogVersion, KeyedTable};

    fn catalog() -> Catalog {
        let long = "l".repeat(NAME_LENGTH);
        let names = ["hidden", "plate", "user", long.as_str()];
        let tables = names.iter().zip(1..).map(|(name, id)| Table {
            id: Some(id),
            name: (*name).to_owned(),
            ..Table::clone(KeyedTable::named("sample").table())
        });
        Catalog::new(CatalogVersion(1), tables.collect())
    }

    fn named(sql: &str) -> Vec<String> {
        let tables = QueryText::parse(sql).unwrap().tables_named(&catalog());
        tables.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_table_is_named_by_every_identifier_of_its_name() {
        for sql in [
            "select * from hidden",
            "select * from HIDDEN h",
            "select * from \"hidden\"",
            "select * from \"Hidden\"",
            "select * from only/**/hidden",
            "table hidden",
            "with t as (select * from hidden) select * from t",
            "select hidden.v from (select 1 as v) hidden",
            "select hidden from t",
        ] {
            assert_eq!(named(sql), ["1"], "{sql}");
        }
        assert_eq!(named("select * from plate, hidden"), ["1", "2"]);
        assert_eq!(named("select * from user_"), ["3"]);
        assert_eq!(named("select * from experiment"), ["experiment"]);
        // PostgreSQL cuts names.
        let long = |letter: &str| format!("select * from {}", letter.repeat(NAME_LENGTH + 2));
        assert_eq!(named(&long("l")), ["4"]);
        assert_eq!(named(&long("ö")), Vec::<String>::new());
    }

    #[test]
    fn texts_comments_and_longer_names_name_no_table() {
        for sql in [
            "select 'hidden' from hidden_2 -- hidden",
            "select 1 /* hidden */, $$hidden$$, unhidden",
            "select * from job",
        ] {
            assert_eq!(named(sql), Vec::<String>::new(), "{sql}");
        }
    }

    #[test]
    fn lists_of_tables_and_datasets_tell_of_every_table() {
        let all = catalog().tables().len();
        for sql in [
            "select name from \"table\"",
            "select name from dataset",
            "select d.name from \"dataset\" d",
        ] {
            assert_eq!(named(sql).len(), all, "{sql}");
        }
    }
}
