//! Validates batches of data writes without a server, such as in the continuous integration of a lab's
//! scripts: reads table definitions and writes as JSON and prints every problem with its path.
//!
//! ```sh
//! cargo run -p labdata-domain --example validate_writes -- TABLES.json WRITE.json…
//! ```
//!
//! `TABLES.json` is a list of tables as `PUT /tables/{name}` takes them, each with its `name`; a
//! `WRITE.json` is a body of `POST /data/write`. Rows that a write references are assumed to exist. The exit
//! status is 1 if there is a problem.
#![expect(clippy::print_stdout, reason = "prints problems")]

use std::{env, error::Error, fs, process::ExitCode};

use labdata_domain::{
    catalog::{Catalog, ColumnDefinition, SemanticCategory, TableDefinition},
    data::write::{Mode, Problem, SeriesWrite, TableWrite, WriteRequest, cell::Cell, check},
    scalar::DataType,
};
use serde::Deserialize;
use serde_json::{Map, Value};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut paths = env::args().skip(1);
    let tables = paths
        .next()
        .ok_or("usage: validate_writes TABLES.json WRITE.json…")?;
    let catalog = read_catalog(&fs::read_to_string(tables)?)?;
    let mut status = ExitCode::SUCCESS;
    for path in paths {
        for problem in validate(&fs::read_to_string(&path)?, &catalog)? {
            let place = problem.path.unwrap_or_default();
            println!("{path}: {place}: {}", problem.message);
            status = ExitCode::FAILURE;
        }
    }
    Ok(status)
}

/// Reads table definitions. A table comes after the tables that it references.
fn read_catalog(json: &str) -> Result<Catalog, Box<dyn Error>> {
    let bodies: Vec<TableBody> = serde_json::from_str(json)?;
    let definitions: Vec<TableDefinition> = bodies.into_iter().map(TableBody::into).collect();
    Ok(Catalog::define(&definitions).map_err(|problems| problems.join("\n"))?)
}

/// The problems of a write, in its order.
fn validate(json: &str, catalog: &Catalog) -> Result<Vec<Problem>, Box<dyn Error>> {
    let body: WriteBody = serde_json::from_str(json)?;
    let request = WriteRequest {
        tables: body
            .tables
            .into_iter()
            .map(TableWriteBody::read)
            .collect::<Result<_, _>>()?,
        series: body.series.into_iter().map(SeriesBody::into).collect(),
        ..WriteRequest::default()
    };
    Ok(check(&request, catalog).problems())
}

#[derive(Deserialize)]
struct TableBody {
    name: String,
    semantic_category: SemanticCategory,
    columns: Vec<ColumnBody>,
    #[serde(default)]
    unique_together: Vec<Vec<String>>,
}

#[derive(Deserialize)]
struct ColumnBody {
    name: String,
    data_type: DataType,
    is_nullable: Option<bool>,
    #[serde(default)]
    is_unique: bool,
    #[serde(default)]
    is_primary_key: bool,
    default: Option<Value>,
    references: Option<String>,
}

impl From<TableBody> for TableDefinition {
    fn from(body: TableBody) -> Self {
        let columns = body.columns.into_iter().map(ColumnBody::into).collect();
        Self {
            category: body.semantic_category,
            unique_together: body.unique_together,
            ..Self::new(body.name, columns)
        }
    }
}

impl From<ColumnBody> for ColumnDefinition {
    fn from(body: ColumnBody) -> Self {
        Self {
            is_nullable: body.is_nullable.unwrap_or(true),
            is_unique: body.is_unique,
            is_primary_key: body.is_primary_key,
            default: body.default,
            references: body.references,
            ..Self::new(body.name, body.data_type)
        }
    }
}

#[derive(Deserialize)]
struct WriteBody {
    #[serde(default)]
    tables: Vec<TableWriteBody>,
    #[serde(default)]
    series: Vec<SeriesBody>,
}

#[derive(Deserialize)]
struct TableWriteBody {
    table: String,
    rows: Vec<Map<String, Value>>,
    mode: Option<String>,
    key: Option<Vec<String>>,
}

impl TableWriteBody {
    fn read(self) -> Result<TableWrite, String> {
        let mode = self.mode.as_deref().unwrap_or(Mode::default().as_str());
        Ok(TableWrite {
            table: self.table,
            rows: self.rows.into_iter().collect(),
            mode: Mode::from_name(mode).ok_or_else(|| format!("unknown mode {mode:?}"))?,
            key: self.key,
            ..TableWrite::default()
        })
    }
}

#[derive(Deserialize)]
struct SeriesBody {
    table: String,
    parent: Value,
    columns: Map<String, Value>,
    parent_column: Option<String>,
}

impl From<SeriesBody> for SeriesWrite {
    fn from(body: SeriesBody) -> Self {
        let columns = body.columns.into_iter().map(|(name, values)| {
            let values = match values {
                Value::Array(values) => values,
                single => vec![single],
            };
            (name, values.into_iter().map(Cell::from).collect())
        });
        Self {
            table: body.table,
            parent: body.parent.into(),
            columns: columns.collect(),
            parent_column: body.parent_column,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLES: &str = r#"[
        {"name": "sample", "semantic_category": "curated", "columns": [
            {"name": "name", "data_type": "string", "is_nullable": false, "is_unique": true},
            {"name": "volume", "data_type": "float"}]},
        {"name": "growth_curve", "semantic_category": "raw", "columns": [
            {"name": "sample", "data_type": "string", "references": "sample"},
            {"name": "hours", "data_type": "float"}]}
    ]"#;

    fn problems(write: &str) -> Vec<String> {
        let catalog = read_catalog(TABLES).unwrap();
        let problems = validate(write, &catalog).unwrap().into_iter();
        problems
            .map(|problem| format!("{}: {}", problem.path.unwrap(), problem.message))
            .collect()
    }

    #[test]
    fn a_valid_write_has_no_problem() {
        let write = r#"{
            "tables": [{"table": "sample", "mode": "upsert", "key": ["name"],
                        "rows": [{"_ref": "a1", "name": "A1", "volume": 1.5}]}],
            "series": [{"table": "growth_curve", "parent": "@a1", "columns": {"hours": [0, 0.5]}},
                       {"table": "growth_curve", "parent": {"name": "A2"}, "columns": {"hours": [0]}}]
        }"#;
        assert_eq!(problems(write), Vec::<String>::new());
    }

    #[test]
    fn every_problem_is_reported_with_its_path() {
        let write = r#"{
            "tables": [{"table": "sample", "rows": [{"volume": "much"}, {"name": "A1", "weight": 1}]}],
            "series": [{"table": "growth_curve", "parent": "@a1", "columns": {"hours": [0]}}]
        }"#;
        assert_eq!(
            problems(write),
            [
                "tables[0].rows[0]: the required column \"name\" is missing",
                "tables[0].rows[0].volume: must be a number, not a string",
                "tables[0].rows[1].weight: \"sample\" has no column \"weight\"",
                "series[0].parent: label \"@a1\" is not defined in this request",
            ]
        );
    }

    #[test]
    fn a_table_that_cannot_be_is_refused() {
        let tables = r#"[{"name": "well", "semantic_category": "curated", "columns": [
            {"name": "plate", "data_type": "string", "references": "plate"}]}]"#;
        assert_eq!(
            read_catalog(tables).unwrap_err().to_string(),
            "reference \"plate\": there is no table \"plate\""
        );
    }
}
