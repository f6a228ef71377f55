//! Validation of definitions.

use std::{collections::HashSet, sync::Arc};

use super::{
    Catalog, Column, Name, ORDER_COLUMN, Origin, PlatformTable, SemanticCategory, SystemColumn,
    Table,
    access::TableAccess,
    core_tables::core_tables,
    definition::{ColumnDefinition, TableDefinition, missing_target},
    generated_key::generated_key,
    name::sql_name,
    rename::{check_renames, check_table_rename},
    unit::is_ucum,
};
use crate::{
    data::{query::is_refused_anywhere, write::cell},
    scalar::DataType,
};

/// PostgreSQL's own column names, which no table can use.
const RESERVED_BY_POSTGRESQL: [&str; 6] = ["ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"];
/// Names that no column of a table can bear: those that the server and PostgreSQL give to columns of their own.
pub fn reserved_column_names() -> impl Iterator<Item = &'static str> {
    SystemColumn::names().chain(RESERVED_BY_POSTGRESQL)
}

/// Maximum length of a reference's name: leaves room for `_id` (contract §5).
const MAX_REFERENCE_LENGTH: usize = 60;
/// Maximum number of columns: PostgreSQL's limit of 1,600 less the room that tuples need.
const MAX_COLUMNS: usize = 500;
/// Maximum number of characters of a description.
const MAX_DESCRIPTION: usize = 10_000;
/// Maximum number of characters of a unit that a message repeats.
const MAX_QUOTED: usize = 100;
/// Maximum number of columns of a group: that of an index of PostgreSQL.
const MAX_UNIQUE_TOGETHER: usize = 32;
/// Maximum number of characters of a label.
const MAX_LABEL: usize = 200;

impl TableDefinition {
    /// Checks the definition against the organization's other tables and turns it into a table
    /// (ids not yet given).
    ///
    /// # Errors
    /// Every reason why it cannot be, as sentences.
    pub fn resolve(&self, catalog: &Catalog) -> Result<Table, Vec<String>> {
        let mut problems = Vec::new();
        // Nothing returns early, so that one request reports all mistakes of a definition.
        self.check_name(catalog, &mut problems);
        let mut columns: Vec<Column> = Vec::with_capacity(self.columns.len() + 1);
        for definition in &self.columns {
            self.check_column(definition, catalog, &mut problems);
            columns.push(Column {
                id: None,
                name: definition.name.clone(),
                description: definition.description.clone(),
                label: definition.label.clone(),
                unit: definition.unit.clone(),
                data_type: definition.data_type,
                is_primary_key: definition.is_primary_key,
                is_nullable: definition.is_nullable && !definition.is_primary_key,
                is_unique: definition.is_unique || definition.is_primary_key,
                default: definition.default.clone(),
                references: definition.references.clone(),
            });
        }
        self.check_key(&mut columns, &mut problems);
        self.check_together(&columns, &mut problems);
        check_renames(&self.columns, &mut problems);
        check_table_rename(self, &mut problems);
        let access = self.access.clone().unwrap_or_default();
        let access = access.found(|name| catalog.has_group(name)).normalized();
        check_access(&access, catalog, &mut problems);
        // Counted last: a generated key is a column, too.
        if columns.len() > MAX_COLUMNS {
            problems.push(format!("a table has at most {MAX_COLUMNS} columns"));
        }
        let table = Table {
            id: None,
            name: self.name.clone(),
            description: self.description.clone(),
            category: self.category,
            origin: Origin::Organization,
            columns: columns.into(),
            unique_together: self.unique_together.clone(),
            history: self.history,
            access,
        };
        check_sql_names(&table, &mut problems);
        if problems.is_empty() {
            Ok(table)
        } else {
            Err(problems)
        }
    }

    fn check_name(&self, catalog: &Catalog, problems: &mut Vec<String>) {
        if let Err(error) = Name::parse(&self.name) {
            problems.push(error.to_string());
        }
        // A table that was there before the core table of its name stays, and can be changed.
        let is_own = catalog
            .table(&self.name)
            .is_some_and(|table| table.origin == Origin::Organization);
        let core = !is_own && core_tables().iter().any(|table| table.name == self.name);
        if core || PlatformTable::from_name(&self.name).is_some() {
            problems.push(format!(
                "\"{}\" is the name of one of the platform's own tables; choose another",
                self.name
            ));
        }
        // One that was defined before stays, so that its other columns can be changed.
        if !is_own && is_refused_anywhere(&self.name) {
            problems.push(of_postgresql("table", &self.name));
        }
        let sql = sql_name(&self.name);
        let is_twin = |table: &&Arc<Table>| {
            table.name != self.name
                && Some(&table.name) != self.renamed_from.as_ref()
                && table.sql_name() == sql
        };
        if let Some(twin) = catalog.tables().iter().find(is_twin) {
            problems.push(format!(
                "\"{}\" is called \"{sql}\" in SQL, as table \"{}\" is; choose another name",
                self.name, twin.name
            ));
        }
        check_text(self.description.as_deref(), "the description", problems);
    }

    fn check_column(
        &self,
        column: &ColumnDefinition,
        catalog: &Catalog,
        problems: &mut Vec<String>,
    ) {
        let name = &column.name;
        if let Err(error) = Name::parse(name) {
            problems.push(error.to_string());
        }
        if SystemColumn::from_name(name).is_some() {
            problems.push(format!(
                "column \"{name}\" is maintained by the server in every table; choose another name"
            ));
        }
        let table = catalog.table(&self.name);
        let is_new = || table.is_none_or(|table| table.column(name).is_none());
        if RESERVED_BY_POSTGRESQL.contains(&name.as_str())
            || column.references.is_none() && is_refused_anywhere(name) && is_new()
        {
            problems.push(of_postgresql("column", name));
        }
        check_text(
            column.description.as_deref(),
            &format!("the description of column \"{name}\""),
            problems,
        );
        check_display(column, problems);
        if let Some(target) = &column.references {
            self.check_reference(column, target, catalog, problems);
        }
        if column.is_primary_key {
            if self.category == SemanticCategory::Raw {
                problems.push(format!(
                    "column \"{name}\": points of a raw table have no primary key of their own"
                ));
            } else if !column.data_type.can_be_key() || column.references.is_some() {
                problems.push(format!(
                    "column \"{name}\" cannot be the primary key: it must be a string, text, integer or uuid and no reference"
                ));
            }
        }
        if column.is_unique
            && (self.category == SemanticCategory::Raw || column.data_type == DataType::Json)
        {
            let why = if column.data_type == DataType::Json {
                "a json column"
            } else {
                "a column of a raw table"
            };
            problems.push(format!("column \"{name}\": {why} cannot be unique"));
        }
        if let Some(default) = &column.default {
            if column.references.is_some() {
                problems.push(format!(
                    "column \"{name}\": a reference cannot have a default"
                ));
            } else if default.is_null() && !column.is_nullable {
                problems.push(format!(
                    "column \"{name}\": the default is null, but the column is not nullable"
                ));
            } else if !default.is_null()
                && cell::scalar_of_json(default, column.data_type).is_none()
            {
                problems.push(format!(
                    "column \"{name}\": the default must be {}",
                    column.data_type.expectation()
                ));
            }
        }
    }

    fn check_reference(
        &self,
        column: &ColumnDefinition,
        target: &str,
        catalog: &Catalog,
        problems: &mut Vec<String>,
    ) {
        let name = &column.name;
        if name.len() > MAX_REFERENCE_LENGTH {
            problems.push(format!(
                "reference \"{name}\" is too long: SQL calls it \"{name}_id\", so {MAX_REFERENCE_LENGTH} characters at most"
            ));
        }
        // A table that references itself is not in the catalog yet.
        let key_type = if target == self.name {
            if self.category == SemanticCategory::Raw {
                problems.push(format!(
                    "reference \"{name}\": a raw table cannot be referenced"
                ));
                return;
            }
            self.columns
                .iter()
                .find(|candidate| candidate.is_primary_key)
                // The key that `check_key` generates otherwise is a string.
                .map_or(DataType::String, |key| key.data_type)
        } else {
            match catalog.table(target) {
                None => {
                    problems.push(missing_target(name, target));
                    return;
                }
                Some(table) => match table.primary_key() {
                    None => {
                        problems.push(format!("reference \"{name}\": \"{target}\" is a raw table, whose points cannot be referenced"));
                        return;
                    }
                    Some(key) => key.data_type,
                },
            }
        };
        if column.data_type != key_type {
            problems.push(format!(
                "reference \"{name}\": the primary key of \"{target}\" is of type {key_type}, so the reference must be too"
            ));
        }
    }

    fn check_key(&self, columns: &mut Vec<Column>, problems: &mut Vec<String>) {
        let keys = columns
            .iter()
            .filter(|column| column.is_primary_key)
            .count();
        match self.category {
            SemanticCategory::Raw => {
                if columns.iter().all(|column| column.references.is_none()) {
                    problems.push("a raw table needs at least one reference, to the row that owns a series".to_owned());
                }
                if columns.iter().all(|column| column.references.is_some() || column.name == ORDER_COLUMN) {
                    problems.push("a raw table needs at least one column of values".to_owned());
                }
                if !self.unique_together.is_empty() {
                    problems.push("a raw table cannot have unique_together".to_owned());
                }
            }
            SemanticCategory::Curated if keys > 1 => {
                problems.push("only one column can be the primary key; use unique_together for several".to_owned());
            }
            SemanticCategory::Curated if keys == 1 => {
                // The key is the first column, as a generated one is.
                let at = columns.iter().position(|column| column.is_primary_key).unwrap_or_default();
                let key = columns.remove(at);
                columns.insert(0, key);
            }
            SemanticCategory::Curated => match columns.iter().position(|column| column.name == "id") {
                None => columns.insert(0, generated_key()),
                // The generated key, spelled out.
                Some(at)
                    if columns.get(at).is_some_and(|column| {
                        matches!(column.data_type, DataType::String | DataType::Text) && column.references.is_none() && column.default.is_none()
                    }) =>
                {
                    let mut key = columns.remove(at);
                    key.is_primary_key = true;
                    key.is_nullable = false;
                    key.is_unique = true;
                    columns.insert(0, key);
                }
                Some(_) => problems.push(
                    "column \"id\" is the generated primary key, a string; set is_primary_key to use another type".to_owned(),
                ),
            },
        }
    }

    fn check_together(&self, columns: &[Column], problems: &mut Vec<String>) {
        let mut seen = HashSet::new();
        for group in &self.unique_together {
            let listed = group.join(", ");
            let distinct: HashSet<&String> = group.iter().collect();
            if group.len() < 2 || distinct.len() != group.len() {
                problems.push(format!(
                    "unique_together ({listed}) must name two or more different columns"
                ));
            }
            if group.len() > MAX_UNIQUE_TOGETHER {
                problems.push(format!(
                    "unique_together ({listed}) must name at most {MAX_UNIQUE_TOGETHER} columns"
                ));
            }
            // The same columns in another order are the same constraint.
            let mut sorted = group.clone();
            sorted.sort();
            if !seen.insert(sorted) {
                problems.push(format!("unique_together ({listed}) is given twice"));
            }
            for name in group {
                match columns.iter().find(|column| &column.name == name) {
                    None => problems.push(format!(
                        "unique_together ({listed}): there is no column \"{name}\""
                    )),
                    Some(column) if column.data_type == DataType::Json => {
                        problems.push(format!("unique_together ({listed}): \"{name}\" is json, which cannot be compared"));
                    }
                    Some(_) => {}
                }
            }
        }
    }
}

/// Reports groups that the organization does not have.
fn check_access(access: &TableAccess, catalog: &Catalog, problems: &mut Vec<String>) {
    let groups = access.groups();
    let mut unknown: Vec<&str> = groups.filter(|name| !catalog.has_group(name)).collect();
    unknown.sort_unstable();
    unknown.dedup();
    let unknown = unknown.into_iter();
    problems.extend(unknown.map(|name| format!("access: there is no group \"{name}\"")));
}

fn check_text(text: Option<&str>, what: &str, problems: &mut Vec<String>) {
    if text.is_some_and(|text| text.contains('\0') || text.chars().count() > MAX_DESCRIPTION) {
        problems.push(format!(
            "{what} has at most {MAX_DESCRIPTION} characters and no NUL character"
        ));
    }
}

/// Checks what people see of a column beside its name.
fn check_display(column: &ColumnDefinition, problems: &mut Vec<String>) {
    let name = &column.name;
    let is_label = |label: &str| {
        let length = label.chars().count();
        (1..=MAX_LABEL).contains(&length) && !label.chars().any(char::is_control)
    };
    if column
        .label
        .as_deref()
        .is_some_and(|label| !is_label(label))
    {
        problems.push(format!(
            "column \"{name}\": a label has 1 to {MAX_LABEL} characters on one line"
        ));
    }
    if let Some(unit) = column.unit.as_deref().filter(|unit| !is_ucum(unit)) {
        problems.push(format!(
            "column \"{name}\": the unit \"{}\" is no UCUM code, such as ug/mL, Cel, 10*6/mL or {{cells}}/mL",
            unit.chars().take(MAX_QUOTED).collect::<String>()
        ));
    }
}

/// The problem of a name of PostgreSQL's own, which it gives to its columns, or which queries may not hold.
fn of_postgresql(what: &str, name: &str) -> String {
    format!("{what} \"{name}\" bears a name of PostgreSQL's own; choose another name")
}

/// Checks that all columns of a table, system columns included, differ in their SQL names.
fn check_sql_names(table: &Table, problems: &mut Vec<String>) {
    let system_columns = table.system_columns().iter();
    let mut names: HashSet<String> = system_columns
        .map(|system| system.name.to_owned())
        .collect();
    let mut read_names = HashSet::new();
    for column in &table.columns {
        let sql_name = column.sql_name().into_owned();
        if !read_names.insert(column.name.clone()) {
            problems.push(format!("column \"{}\" is defined twice", column.name));
        } else if SystemColumn::from_name(&column.name).is_none() && !names.insert(sql_name.clone())
        {
            problems.push(format!(
                "column \"{}\" is called \"{sql_name}\" in SQL, which another column is called too",
                column.name
            ));
        } else {
            // The name of a system column has been refused by `check_column`.
            names.insert(sql_name);
        }
    }
}
