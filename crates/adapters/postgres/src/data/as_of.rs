//! Tables as they stood at an earlier moment, as parts of statements.
//!
//! The first recorded change after the moment has the row as it was before, and a row without one is as it was. So
//! a row that still exists costs one look at an index, and only rows that are deleted are looked for by time.

use std::borrow::Cow;

use labdata_domain::{
    catalog::{KeyedTable, Table},
    scalar::{DataType, Scalar},
};
use time::OffsetDateTime;

use super::{
    chunk_images::FormerChunks,
    conditions::{Bound, Query},
};
use crate::database::{
    names::TableNames,
    sql::{Schemas, ident, key_type, literal, sql_type},
};

/// Values that a statement yields of earlier versions of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PastValues {
    /// The values of columns.
    Columns,
    /// The stored JSON, and of columns only those that are asked for: PostgreSQL takes longer to make all columns of
    /// JSON than to find it.
    Json,
}

/// A moment, as parameters of a statement.
pub(super) struct AsOf {
    organization: String,
    at: String,
}

/// Rows of a table, as they stood.
pub(super) struct PastRows<'t> {
    /// The FROM clause.
    pub(super) from: String,
    /// The condition that the row existed.
    pub(super) existed: String,
    /// The expression of the key.
    pub(super) key: String,
    /// The expression of the row's JSON, which is null for a row that has not changed since.
    pub(super) json: Option<&'static str>,
    /// Quoted name of the key.
    key_name: String,
    table: &'t KeyedTable,
    /// Qualified and quoted name of the table.
    table_name: String,
    /// True if a column is that of the table unless a change was found.
    is_current: bool,
}

impl PastRows<'_> {
    /// The expression of a column to select. Beside [`Self::json`] it is null where that is not.
    pub(super) fn column(&self, sql_name: &str) -> String {
        let name = ident(sql_name);
        if name == self.key_name {
            return self.key.clone();
        }
        match (self.is_current, self.json) {
            (true, None) => format!("CASE WHEN h.found THEN o.{name} ELSE t.{name} END"),
            (true, Some(_)) => format!("CASE WHEN h.found THEN NULL ELSE t.{name} END"),
            (false, None) => format!("t.{name}"),
            (false, Some(_)) => format!("(NULL::{}).{name}", self.table_name),
        }
    }

    /// The expression of a column to compare or order by, of rows with [`Self::json`].
    pub(super) fn value(&self, sql_name: &str) -> String {
        let name = ident(sql_name);
        if name == self.key_name {
            return self.key.clone();
        }
        let stored = self.stored(sql_name);
        if self.is_current {
            format!("CASE WHEN h.found THEN {stored} ELSE t.{name} END")
        } else {
            stored
        }
    }

    /// A column's value in the stored JSON, as `json_populate_record` makes it: by its type's input function.
    fn stored(&self, sql_name: &str) -> String {
        let field = literal(sql_name);
        let own = self.table.columns.iter();
        let mut own = own.filter(|column| column.sql_name() == sql_name);
        let system = self.table.system_columns().iter();
        let mut system = system.filter(|column| column.name == sql_name);
        let (data_type, is_reference) = match (own.next(), system.next()) {
            (Some(column), _) => (column.data_type, column.references.is_some()),
            (None, Some(column)) => (column.data_type, false),
            // No plan has another one.
            (None, None) => (DataType::Text, false),
        };
        match data_type {
            DataType::Json => format!("(NULLIF((h.before -> {field})::text, 'null')::jsonb)"),
            // The collation of a reference decides how it compares.
            _ if is_reference => format!("((h.before ->> {field})::{})", key_type(data_type)),
            _ => format!("((h.before ->> {field})::{})", sql_type(data_type)),
        }
    }
}

/// When a recorded row began to exist. Changes that an earlier version recorded have it only in the row.
const EXISTED_SINCE: &str =
    "coalesce(c.existed_since, (c.before ->> 'created_at')::timestamptz) AS existed_since";

impl AsOf {
    /// Adds the moment to the parameters of a statement.
    pub(super) fn bind(query: &mut Query, at: OffsetDateTime) -> Self {
        Self {
            organization: query.parameter(Bound::Organization),
            at: query.parameter(Bound::Scalar(Scalar::Datetime(at))),
        }
    }

    /// The condition that a recorded change is one of the table's after the moment.
    fn is_later(&self, change: &str, table: &str) -> String {
        format!(
            "{change}.organization_id = {} AND {change}.table_name = {} AND {change}.at > {}",
            self.organization,
            literal(table),
            self.at,
        )
    }

    /// The rows of a table that exist now.
    pub(super) fn current<'t>(&self, names: &TableNames<'t>, values: PastValues) -> PastRows<'t> {
        let TableNames {
            table, name, key, ..
        } = names;
        let mut from = format!(
            "{name} t LEFT JOIN LATERAL (SELECT true AS found, c.before, {EXISTED_SINCE} FROM labdata.row_change c \
             WHERE {later} AND c.row_id = t.{key}::text COLLATE \"C\" ORDER BY c.at, c.id LIMIT 1) h ON true",
            later = self.is_later("c", &table.name),
        );
        if values == PastValues::Columns {
            from.push_str(" LEFT JOIN LATERAL json_populate_record(NULL::");
            from.push_str(name);
            from.push_str(", h.before) o ON h.found");
        }
        PastRows {
            from,
            existed: format!(
                "CASE WHEN h.found THEN h.existed_since ELSE t.created_at END <= {}",
                self.at
            ),
            // A key never changes, and its index serves.
            key: format!("t.{key}"),
            json: (values == PastValues::Json).then_some("h.before"),
            key_name: key.clone(),
            table: names.table,
            table_name: name.clone(),
            is_current: true,
        }
    }

    /// The rows of a table that do not exist now.
    pub(super) fn deleted<'t>(&self, names: &TableNames<'t>, values: PastValues) -> PastRows<'t> {
        let TableNames {
            table, name, key, ..
        } = names;
        let key_of = |row: &str| match table.key().data_type {
            DataType::String | DataType::Text => format!("{row}.row_id"),
            _ => format!("CAST({row}.row_id AS {})", names.key_type),
        };
        // A key whose row was created again is left out: that row is one of `current`. Of the changes after the
        // moment, the first one has the row as it was.
        let mut from = format!(
            "(SELECT DISTINCT ON (c.row_id) c.row_id, c.before, {EXISTED_SINCE} \
             FROM (SELECT DISTINCT d.row_id FROM labdata.row_change d WHERE {deleted} AND d.action = 'deleted') g \
             JOIN labdata.row_change c ON {later} AND c.row_id = g.row_id \
             WHERE NOT EXISTS (SELECT FROM {name} x WHERE x.{key} = {row_key}) \
             ORDER BY c.row_id, c.at, c.id) h",
            deleted = self.is_later("d", &table.name),
            later = self.is_later("c", &table.name),
            row_key = key_of("g"),
        );
        if values == PastValues::Columns {
            from.push_str(" CROSS JOIN LATERAL json_populate_record(NULL::");
            from.push_str(name);
            from.push_str(", h.before) t");
        }
        PastRows {
            from,
            existed: format!("h.existed_since <= {}", self.at),
            key: key_of("h"),
            json: (values == PastValues::Json).then_some("h.before"),
            key_name: key.clone(),
            table: names.table,
            table_name: name.clone(),
            is_current: false,
        }
    }

    /// All rows of a table with its columns, as an item of FROM.
    pub(super) fn rows(&self, names: &TableNames<'_>) -> String {
        let table = names.table;
        let values = PastValues::Columns;
        let parts = [self.current(names, values), self.deleted(names, values)].map(|rows| {
            let own = table.columns.iter().map(|column| column.sql_name());
            let system = table.system_columns().iter();
            let names_of = own
                .map(Cow::into_owned)
                .chain(system.map(|column| column.name.to_owned()));
            let columns: Vec<String> = names_of
                .map(|name| format!("{} AS {}", rows.column(&name), ident(&name)))
                .collect();
            format!(
                "SELECT {} FROM {} WHERE {}",
                columns.join(", "),
                rows.from,
                rows.existed
            )
        });
        format!("({})", parts.join(" UNION ALL "))
    }

    /// The chunks of a raw table with their columns, as an item of FROM.
    pub(super) fn chunks(&self, schemas: &Schemas, table: &Table) -> String {
        let chunks = schemas.chunk_table(&table.name);
        let FormerChunks {
            from,
            names,
            values,
        } = FormerChunks::of(table, &chunks, "h");
        format!(
            "(SELECT {names} FROM {chunks} s WHERE {existed} AND NOT EXISTS (SELECT FROM labdata.row_change l \
             WHERE {later} AND l.row_id = s._chunk::text COLLATE \"C\") \
             UNION ALL SELECT {values} FROM (SELECT DISTINCT ON (l.row_id) l.before, l.arrays FROM labdata.row_change l \
             WHERE {later} ORDER BY l.row_id, l.at, l.id) h {from} \
             WHERE h.before IS NOT NULL AND {existed})",
            // Chunks without a time were written before all that is known.
            existed = format_args!("coalesce(s._written_at, '-infinity') <= {}", self.at),
            later = self.is_later("l", &table.name),
        )
    }
}

/// The source of a table's rows, as they stood if a moment is given.
pub(super) fn rows_of(as_of: Option<&AsOf>, schemas: &Schemas, table: &KeyedTable) -> String {
    let names = schemas.names(table);
    as_of.map_or_else(|| names.name.clone(), |as_of| as_of.rows(&names))
}
