//! Contract of [`labdata_ports::data::DataStore`]: earlier values of columns whose type has changed.

use labdata_domain::{
    catalog::{CatalogRefusal, KeyedTable, SemanticCategory, TableDefinition},
    data::read::RowSelection,
    scalar::{DataType, KeyValue},
};
use serde_json::{Value, json};

use crate::{
    Itself,
    catalog::{
        assert_refused,
        definitions::{column, curated, reference},
        scripted::texts,
    },
    data::{
        as_of::{pages, write_at},
        lab::{DataHarness, Lab, insert, series},
        restore::update,
    },
    given::at,
};

crate::suite!(
    use data::retyped as data_retyped;

    /// Earlier values are read in the type that their column has now, whether a row is found by its key or by the value.
    async fn earlier_values_convert_with_their_column(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        lab.insert("sample", json!([{"id": "s", "name": "s"}]))
            .await;
        for (data_type, values, texts) in texts() {
            let (name, curve) = (format!("row_{data_type}"), format!("curve_{data_type}"));
            let rows = |data_type| curated(&name, vec![column("value", data_type)]);
            let points = |data_type| TableDefinition {
                category: SemanticCategory::Raw,
                ..curated(
                    &curve,
                    vec![reference("sample"), column("value", data_type)],
                )
            };
            lab.define(&rows(data_type)).await.unwrap();
            lab.define(&points(data_type)).await.unwrap();
            let id = |index: usize| format!("r{index}");
            let written = values.iter().enumerate();
            let written: Vec<Value> = written
                .map(|(index, value)| json!({"id": id(index), "value": value}))
                .collect();
            let first = series(&curve, json!("s"), json!({"value": values}));
            write_at(&lab, 100, [insert(&name, json!(written))], [first]).await;
            let emptied = (0..values.len()).map(|index| json!({"id": id(index), "value": null}));
            let emptied = update(&name, emptied.collect());
            let second = series(&curve, json!("s"), json!({"value": [null]}));
            write_at(&lab, 200, [emptied], [second]).await;
            lab.define(&rows(DataType::Text)).await.unwrap();
            lab.define(&points(DataType::Text)).await.unwrap();
            let found = |table: String, filters: Value| {
                let selection = RowSelection {
                    filters: filters.as_object().cloned().unwrap(),
                    limit: 10,
                    as_of: Some(at(150)),
                    ..RowSelection::default()
                };
                let lab = &lab;
                async move {
                    let rows = pages(lab, &table, selection).await;
                    let values = rows.into_iter().map(|mut row| row.remove("value").unwrap());
                    values.collect::<Vec<_>>()
                }
            };
            for (index, text) in texts.iter().enumerate() {
                for filters in [json!({"id": id(index)}), json!({"value": text})] {
                    assert_eq!(found(name.clone(), filters).await, [*text], "{name}");
                }
            }
            assert_eq!(found(curve.clone(), json!({})).await, texts, "{curve}");
        }
    }

    /// A value of an earlier version that a new type cannot store exactly refuses the change, as one of now does.
    async fn an_earlier_value_without_an_exact_counterpart_keeps_the_type(
        harness: &Itself<impl DataHarness>,
    ) {
        let lab = Lab::empty(harness).await;
        let large = 9_007_199_254_740_993_i64;
        let counted = |data_type| curated("counted", vec![column("count", data_type)]);
        lab.define(&counted(DataType::Integer)).await.unwrap();
        lab.insert("counted", json!([{"id": "a", "count": large}]))
            .await;
        let replaced = update("counted", json!([{"id": "a", "count": 1}]));
        write_at(&lab, 200, [replaced], []).await;
        assert_refused(
            lab.define(&counted(DataType::Float)).await,
            &CatalogRefusal::Inexact {
                table: "counted".to_owned(),
                column: "count".to_owned(),
                data_type: DataType::Float,
                values: vec![large.to_string()],
            },
        );
        let table = KeyedTable::of(lab.tables().await.table("counted").unwrap()).unwrap();
        let key = KeyValue::Text("a".to_owned());
        let forgotten = lab.data.forget_history(lab.organization, &table, &key);
        forgotten.await.unwrap();
        lab.define(&counted(DataType::Float)).await.unwrap();
        assert_eq!(lab.column("counted", "count").await, [1.0]);
    }
);
