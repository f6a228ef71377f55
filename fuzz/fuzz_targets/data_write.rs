//! The body of a data write, and the plan that is made of it.
//!
//! Whatever the bytes are, nothing panics or hangs; both readers of the body agree; and a body that
//! fits is planned, or refused with at least one problem and at most 101.

#![no_main]

use std::sync::LazyLock;

use labdata_domain::{
    catalog::{Catalog, CatalogVersion, ColumnDefinition, SemanticCategory, TableDefinition},
    data::write::{LookupResults, Questions, RowMatch, WriteRequest, check},
    scalar::{DataType, KeyValue},
};
use labdata_request_body::{data_write::DataWriteBody, json, read};
use libfuzzer_sys::{Corpus, fuzz_target};
use serde_json::Value;
use uuid::Uuid;

static CATALOG: LazyLock<Catalog> = LazyLock::new(catalog);

fuzz_target!(|body: &[u8]| -> Corpus {
    let streamed: Option<DataWriteBody> = json::stream(body);
    let Ok(document) = serde_json::from_slice::<Value>(body) else {
        assert!(streamed.is_none(), "only one reader takes it as JSON");
        return Corpus::Reject;
    };
    let Ok(read) = read::<DataWriteBody>("body", document) else {
        assert!(streamed.is_none(), "only one reader takes it");
        return Corpus::Keep;
    };
    let planned = plan(read);
    // The streaming reader leaves bodies with a field given twice to the other one.
    if let Some(streamed) = streamed {
        // The tree sorts the fields of its objects: the columns of the two are in different orders.
        assert_eq!(plan(streamed), planned, "the readers disagree");
    }
    Corpus::Keep
});

/// How many problems there are; else how many rows of each table and points of each series would be
/// written, and how many ids were made.
fn plan(body: DataWriteBody) -> Result<(Vec<usize>, Vec<usize>, u128), usize> {
    let request = WriteRequest::from(body);
    let checked = check(&request, &CATALOG);
    let responses = responses(checked.questions());
    let mut ids = 0_u128;
    let planned = checked.plan(&responses, &mut || {
        ids += 1;
        Uuid::from_u128(ids)
    });
    match planned {
        Ok(plan) => Ok((
            plan.tables.iter().map(|step| step.len).collect(),
            plan.series.iter().map(|step| step.points).collect(),
            ids,
        )),
        Err(problems) => {
            assert!((1..=101).contains(&problems.len()), "{}", problems.len());
            Err(problems.len())
        }
    }
}

/// Every answer there is, in turn.
fn responses(questions: &Questions) -> LookupResults {
    LookupResults {
        ids: questions
            .ids
            .iter()
            .map(|question| (0..question.keys.len()).map(|key| key % 3 != 2).collect())
            .collect(),
        lookups: questions
            .lookups
            .iter()
            .map(|question| {
                (0..question.len)
                    .map(|lookup| match lookup % 3 {
                        0 => RowMatch::One(KeyValue::Text(lookup.to_string())),
                        1 => RowMatch::None,
                        _ => RowMatch::Several,
                    })
                    .collect()
            })
            .collect(),
    }
}

/// A table with a column of every type, one that references it, and one of its series.
fn catalog() -> Catalog {
    let column = |name: &str, data_type| ColumnDefinition {
        name: name.to_owned(),
        data_type,
        description: None,
        label: None,
        unit: None,
        is_nullable: true,
        is_unique: false,
        is_primary_key: false,
        default: None,
        references: None,
        renamed_from: None,
    };
    let reference = |name: &str| ColumnDefinition {
        references: Some(name.to_owned()),
        ..column(name, DataType::String)
    };
    let required = |column: ColumnDefinition| ColumnDefinition {
        is_nullable: false,
        ..column
    };
    let mut tables = Vec::new();
    for (name, category, columns) in [
        (
            "sample",
            SemanticCategory::Curated,
            vec![
                ColumnDefinition {
                    is_unique: true,
                    ..required(column("name", DataType::String))
                },
                column("n", DataType::Integer),
                column("v", DataType::Float),
                column("b", DataType::Boolean),
                column("at", DataType::Datetime),
                column("on", DataType::Date),
                column("u", DataType::Uuid),
                column("j", DataType::Json),
            ],
        ),
        (
            "part",
            SemanticCategory::Curated,
            vec![
                required(reference("sample")),
                column("note", DataType::Text),
            ],
        ),
        (
            "curve",
            SemanticCategory::Raw,
            vec![
                required(reference("sample")),
                column("order", DataType::Integer),
                required(column("od", DataType::Float)),
            ],
        ),
    ] {
        let definition = TableDefinition {
            category,
            ..TableDefinition::new(name, columns)
        };
        let catalog = Catalog::new(CatalogVersion(1), tables.clone());
        tables.push(definition.resolve(&catalog).expect("a valid definition"));
    }
    Catalog::new(CatalogVersion(1), tables)
}
