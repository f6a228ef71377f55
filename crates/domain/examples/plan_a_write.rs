//! Embedding the domain without the platform: define a table, check a data write against it, and
//! plan it. No database, no network, no async runtime: questions that a store would respond come
//! out as a value, and their responses go in as one.
//!
//! ```sh
//! cargo run -p labdata-domain --example plan_a_write
//! ```
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use labdata_domain::{
    catalog::{Catalog, ColumnDefinition, TableDefinition},
    data::write::{LookupResults, RowMatch, TableWrite, WriteRequest, check},
    scalar::{DataType, KeyValue},
};
use serde_json::{Value, json};
use uuid::Uuid;

fn main() -> Result<(), Box<dyn Error>> {
    // 1. A table of the laboratory's own, beside the core tables that every catalog has.
    let columns = vec![
        ColumnDefinition {
            is_nullable: false,
            is_unique: true,
            ..ColumnDefinition::new("name", DataType::String)
        },
        ColumnDefinition::new("volume", DataType::Float),
        ColumnDefinition {
            references: Some("carrier".to_owned()),
            ..ColumnDefinition::new("carrier", DataType::String)
        },
    ];
    let sample = TableDefinition::new("sample", columns);
    let catalog = Catalog::define([&sample]).map_err(|problems| problems.join("\n"))?;

    // 2. A request with a wrong value: every problem is found, with its place.
    let wrong = request(&[
        json!({"name": "A1", "volume": "much"}),
        json!({"volume": 2}),
    ]);
    let problems = check(&wrong, &catalog).plan(&LookupResults::default(), &mut Uuid::nil);
    for problem in problems.err().unwrap_or_default() {
        println!(
            "problem at {}: {}",
            problem.path.unwrap_or_default(),
            problem.message
        );
    }

    // 3. A request that holds up, if the plate is there: that is asked, not looked up.
    let right = request(&[json!({"name": "A1", "volume": 1.5, "carrier": {"name": "plate 7"}})]);
    let checked = check(&right, &catalog);
    for question in &checked.questions().lookups {
        println!(
            "asks for {} row(s) of \"{}\"",
            question.len, question.table.name
        );
    }
    let plate = KeyValue::Text("0189c0de-0000-7000-8000-000000000007".to_owned());
    let responses = LookupResults {
        ids: Vec::new(),
        lookups: vec![vec![RowMatch::One(plate)]],
    };

    // 4. The plan: typed columns, for any store.
    let mut next_id = || Uuid::from_u128(1);
    let plan = checked
        .plan(&responses, &mut next_id)
        .map_err(|_| "the request holds up")?;
    for step in &plan.tables {
        println!("{} row(s) for \"{}\":", step.len, step.table.name);
        for given in &step.columns {
            println!("  {}: {:?}", given.column.name, given.values);
        }
    }
    Ok(())
}

/// A request to insert rows into `sample`.
fn request(rows: &[Value]) -> WriteRequest {
    let rows = rows.iter().filter_map(Value::as_object);
    let write = TableWrite {
        table: "sample".to_owned(),
        rows: rows.cloned().collect(),
        ..TableWrite::default()
    };
    WriteRequest {
        tables: vec![write],
        ..WriteRequest::default()
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_runs() {
        super::main().unwrap();
    }
}
