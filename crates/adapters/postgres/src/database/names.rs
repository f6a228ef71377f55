//! SQL names of tables and columns, and arrays that a statement unnests. A statement takes its names
//! from these values, which are made of handles, so that no name is looked up or left out.

use std::{borrow::Cow, ops::Range};

use diesel::sql_types::{Array, Bool, Timestamptz, Uuid as SqlUuid};
use labdata_domain::{
    catalog::{Column, KeyedTable, Owner},
    scalar::{DataType, KeyValue, Values},
};
use time::OffsetDateTime;
use uuid::Uuid;

use super::{
    row_ranges::row_ranges,
    sql::{Schemas, Statement, bind_rows, ident, key_from_text, key_values, sql_type},
};

/// A column's quoted name in SQL.
pub(crate) fn column_name(column: &Column) -> String {
    ident(&column.sql_name())
}

/// A table whose rows have a key.
pub(crate) struct TableNames<'t> {
    pub(crate) table: &'t KeyedTable,
    /// Qualified and quoted.
    pub(crate) name: String,
    /// Quoted name of the primary key.
    pub(crate) key: String,
    /// SQL type of the primary key.
    pub(crate) key_type: &'static str,
}

impl TableNames<'_> {
    fn data_type(&self) -> DataType {
        self.table.key().data_type
    }

    /// A primary key that PostgreSQL wrote as text.
    pub(crate) fn read_key(&self, text: String) -> KeyValue {
        key_from_text(text, self.data_type())
    }

    /// Primary keys as a column of values.
    pub(crate) fn key_values<'k>(&self, keys: impl IntoIterator<Item = &'k KeyValue>) -> Values {
        key_values(keys.into_iter().cloned(), self.data_type())
    }
}

/// The chunks behind a raw table, and the rows that own them.
pub(crate) struct ChunkNames<'o> {
    /// Qualified and quoted name of the table of chunks.
    pub(crate) name: String,
    /// Quoted name of the reference to the owner.
    pub(crate) owner: String,
    /// SQL type of the reference to the owner.
    pub(crate) owner_type: &'static str,
    /// The table of the owners.
    pub(crate) parents: TableNames<'o>,
}

impl Schemas {
    /// The names of a table whose rows have a key.
    pub(crate) fn names<'t>(&self, table: &'t KeyedTable) -> TableNames<'t> {
        TableNames {
            table,
            name: self.table(&table.name),
            key: column_name(table.key()),
            key_type: sql_type(table.key().data_type),
        }
    }

    /// The names of a raw table whose points belong to rows.
    pub(crate) fn chunk_names<'o>(&self, owner: &'o Owner) -> ChunkNames<'o> {
        ChunkNames {
            name: self.chunk_table(&owner.table.name),
            owner: column_name(&owner.column),
            owner_type: sql_type(owner.column.data_type),
            parents: self.names(&owner.parent),
        }
    }
}

/// An array parameter.
pub(crate) enum ArrayParameter<'v> {
    Values(Cow<'v, Values>),
    Flags(Vec<bool>),
    Ids(&'v [Uuid]),
    Times(&'v [OffsetDateTime]),
}

/// Array parameters that a statement unnests into rows, with a column `c1`, `c2`, … per array.
#[derive(Default)]
pub(crate) struct Unnested<'v> {
    /// Number of parameters before the arrays.
    before: usize,
    arrays: Vec<(&'static str, ArrayParameter<'v>)>,
}

impl<'v> Unnested<'v> {
    /// Arrays that follow `before` other parameters.
    pub(crate) const fn after(before: usize) -> Self {
        let arrays = Vec::new();
        Self { before, arrays }
    }

    /// Adds an array; returns its column.
    pub(crate) fn add(&mut self, sql_type: &'static str, array: ArrayParameter<'v>) -> String {
        self.arrays.push((sql_type, array));
        format!("c{}", self.arrays.len())
    }

    /// Adds the values of a column; returns its column here.
    pub(crate) fn add_values(&mut self, column: &Column, values: Cow<'v, Values>) -> String {
        self.add(sql_type(column.data_type), ArrayParameter::Values(values))
    }

    /// The number of the parameter after the arrays.
    pub(crate) const fn next_parameter(&self) -> usize {
        self.before + self.arrays.len() + 1
    }

    /// The call of `unnest`.
    pub(crate) fn call(&self) -> String {
        let numbers = self.before + 1..;
        let arrays = numbers.zip(&self.arrays);
        let arrays = arrays.map(|(number, (sql_type, _))| format!("${number}::{sql_type}[]"));
        format!("unnest({})", arrays.collect::<Vec<_>>().join(", "))
    }

    /// The columns.
    pub(crate) fn columns(&self) -> String {
        let columns = (1..=self.arrays.len()).map(|number| format!("c{number}"));
        columns.collect::<Vec<_>>().join(", ")
    }

    /// Rows of one statement each.
    pub(crate) fn row_ranges(&self) -> Vec<Range<usize>> {
        let values = self.arrays.iter().filter_map(|(_, array)| match array {
            ArrayParameter::Values(values) => Some(&**values),
            _ => None,
        });
        let len = values.clone().map(Values::len).max().unwrap_or(0);
        row_ranges(values, 0..len)
    }

    /// Binds the arrays after the parameters before them.
    pub(crate) fn bind<'f>(&'f self, statement: Statement<'f>) -> Statement<'f> {
        self.bind_rows(statement, 0..usize::MAX)
    }

    /// Binds these rows of the arrays.
    pub(crate) fn bind_rows<'f>(
        &'f self,
        statement: Statement<'f>,
        rows: Range<usize>,
    ) -> Statement<'f> {
        fn part<T>(all: &[T], rows: Range<usize>) -> &[T] {
            let end = rows.end.min(all.len());
            all.get(rows.start..end).unwrap_or_default()
        }
        let arrays = self.arrays.iter().map(|(_, array)| array);
        arrays.fold(statement, |statement, array| match array {
            ArrayParameter::Values(values) => {
                let end = rows.end.min(values.len());
                bind_rows(statement, values, rows.start..end)
            }
            ArrayParameter::Flags(flags) => {
                statement.bind::<Array<Bool>, _>(part(flags, rows.clone()))
            }
            ArrayParameter::Ids(ids) => {
                statement.bind::<Array<SqlUuid>, _>(part(ids, rows.clone()))
            }
            ArrayParameter::Times(times) => {
                statement.bind::<Array<Timestamptz>, _>(part(times, rows.clone()))
            }
        })
    }
}
