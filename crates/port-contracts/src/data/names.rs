//! Contract of [`labdata_ports::data::DataStore`]: columns of any name.

use labdata_domain::{
    catalog::{ColumnDefinition, SemanticCategory, TableDefinition},
    data::{
        read::RowSelection,
        write::{Mode, TableWrite},
    },
    ids::ExecutionId,
    scalar::DataType,
};
use serde_json::{Map, Value, json};

use crate::{
    Itself,
    catalog::definitions::{column, curated, reference, unique},
    data::{
        as_of::{exported, pages, write_at},
        lab::{DataHarness, Lab, insert, series, table_write},
        restore::{delete, restore, update},
    },
    given::at,
};

/// Words that statements over tables use as aliases and as names of columns besides.
const WORDS: [&str; 55] = [
    "action",
    "after",
    "at",
    "before",
    "changed",
    "chunk",
    "chunks",
    "chosen",
    "column",
    "count",
    "created",
    "deleted",
    "excluded",
    "execution",
    "execution_id",
    "existed",
    "existed_since",
    "first",
    "found",
    "group",
    "ids",
    "image",
    "input",
    "is_chunk",
    "key",
    "key_name",
    "keys",
    "last",
    "matched",
    "new",
    "number",
    "of_others",
    "old",
    "owner",
    "own",
    "parent",
    "place",
    "places",
    "points",
    "previous",
    "recorded",
    "rendered",
    "restored",
    "row",
    "row_id",
    "rows",
    "since",
    "source",
    "stored",
    "table",
    "target",
    "touched",
    "value",
    "version",
    "written",
];

/// All of them, and every letter.
fn names() -> Vec<String> {
    let letters = ('a'..='z').map(String::from);
    let words = WORDS.into_iter().map(str::to_owned);
    words.chain(letters).collect()
}

/// Values for each name, by a table's other columns.
fn row(others: &Value, value: &str) -> Value {
    let mut row: Map<String, Value> = others.as_object().cloned().unwrap();
    row.extend(names().into_iter().map(|name| (name, json!(value))));
    Value::Object(row)
}

/// Rows of each name, whose parents and values have such names too.
async fn defined(lab: &Lab) {
    let texts = |others: Vec<ColumnDefinition>| {
        let texts = names().into_iter();
        let texts = texts.map(|name| column(&name, DataType::String));
        others.into_iter().chain(texts).collect::<Vec<_>>()
    };
    let named = curated("t", texts(vec![unique("name", DataType::String)]));
    lab.define(&named).await.unwrap();
    let referring = ColumnDefinition {
        name: "u".to_owned(),
        ..reference("t")
    };
    let rows = curated("c", vec![referring.clone(), column("t", DataType::String)]);
    lab.define(&rows).await.unwrap();
    let numbers = names().into_iter().filter(|name| name != "u");
    let numbers = numbers.map(|name| column(&name, DataType::Float));
    let points = TableDefinition {
        category: SemanticCategory::Raw,
        ..curated("p", std::iter::once(referring).chain(numbers).collect())
    };
    lab.define(&points).await.unwrap();
}

fn keyed(mode: Mode, rows: Value) -> TableWrite {
    TableWrite {
        key: Some(vec!["name".to_owned()]),
        ..table_write(mode, "t", rows)
    }
}

fn points(value: i64) -> Value {
    let names = names().into_iter().filter(|name| name != "u");
    names.map(|name| (name, json!([value, null]))).collect()
}

/// All rows and points of the tables.
async fn stored(lab: &Lab) -> Vec<Vec<Map<String, Value>>> {
    let mut stored = Vec::new();
    for table in ["t", "c", "p"] {
        let selection = RowSelection {
            limit: 100,
            ..RowSelection::default()
        };
        stored.push(pages(lab, table, selection).await);
    }
    stored
}

async fn written(lab: &Lab, seconds: i64) -> ExecutionId {
    let changed = [
        keyed(
            Mode::Upsert,
            json!([
                row(&json!({"name": "a"}), "2"),
                row(&json!({"name": "new"}), "2")
            ]),
        ),
        keyed(Mode::Update, json!([row(&json!({"name": "b"}), "2")])),
        delete("t", json!([{"id": "d"}])),
        update("c", json!([{"id": "1", "t": "2"}])),
    ];
    write_at(lab, seconds, changed, [series("p", json!("a"), points(2))]).await
}

crate::suite!(
    use data::names as data_names;

    /// Rows, points, earlier versions and reverts work with columns of any name.
    async fn columns_may_have_any_name(harness: &Itself<impl DataHarness>) {
        let lab = Lab::empty(harness).await;
        defined(&lab).await;
        let rows = ["a", "b", "d"].map(|id| row(&json!({"id": id, "name": id}), "1"));
        let others = ["a", "d"]
            .map(|id| json!({"id": if id == "a" { "1" } else { "2" }, "u": id, "t": "1"}));
        let curves = ["a", "d"].map(|id| series("p", json!(id), points(1)));
        let tables = [insert("t", json!(rows)), insert("c", json!(others))];
        write_at(&lab, 100, tables, curves).await;
        let before = stored(&lab).await;
        let second = written(&lab, 200).await;
        let after = stored(&lab).await;
        assert_ne!(before, after);
        for name in names() {
            for (filters, expected) in [
                (json!({&name: "1"}), 3),
                (json!({format!("{name}__contains"): "1"}), 3),
            ] {
                let selection = RowSelection {
                    filters: filters.as_object().cloned().unwrap(),
                    order_by: vec![name.clone()],
                    limit: 2,
                    as_of: Some(at(150)),
                    ..RowSelection::default()
                };
                assert_eq!(pages(&lab, "t", selection).await.len(), expected, "{name}");
            }
            let now = lab.find("t", json!({&name: "2"})).await;
            assert_eq!(now.len(), 3, "{name}");
            let through = lab.find("c", json!({format!("u__{name}"): "2"})).await;
            assert_eq!(through.len(), 1, "{name}");
        }
        for (table, stored) in ["t", "c", "p"].into_iter().zip(&before) {
            assert_eq!(exported(&lab, table, at(150)).await.len(), stored.len());
        }
        restore(&lab, second).await.unwrap();
        assert_eq!(stored(&lab).await, before);
        let third = written(&lab, 300).await;
        lab.revert(third).await.unwrap();
        assert_eq!(lab.find("t", json!({"name": "new"})).await.len(), 0);
    }
);
