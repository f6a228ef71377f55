//! Contract of [`labdata_ports::catalog::CatalogStore`]: renamed and dropped columns.

use labdata_domain::{
    catalog::{CatalogRefusal, ColumnDefinition, ColumnRole, TableDefinition},
    data::write::Mode,
    scalar::DataType,
};
use labdata_ports::{PortError, catalog::DefineError, data::WriteError};
use serde_json::{Value, json};

use crate::{
    Itself,
    catalog::{
        assert_refused,
        definitions::{column, curated, curve, key, measurement, reference, sample},
        with,
    },
    data::lab::{
        DataHarness, Lab, assert_problems, assert_problems_are, insert, repeated, request, series,
    },
    given::at,
};

fn renamed(from: &str, column: ColumnDefinition) -> ColumnDefinition {
    ColumnDefinition {
        renamed_from: Some(from.to_owned()),
        ..column
    }
}

/// The definition with a column of another name.
fn renaming(mut definition: TableDefinition, from: &str, to: &str) -> TableDefinition {
    for column in &mut definition.columns {
        if column.name == from {
            *column = renamed(from, column.clone());
            to.clone_into(&mut column.name);
        }
    }
    definition
}

async fn drop_column(lab: &Lab, table: &str, name: &str, force: bool) -> Result<(), DefineError> {
    let organization = lab.organization;
    lab.catalog
        .drop_column(organization, table, name, force, at(60))
        .await
}

fn needed(table: &str, column: &str, role: ColumnRole) -> CatalogRefusal {
    CatalogRefusal::NeededColumn {
        table: table.to_owned(),
        column: column.to_owned(),
        role,
    }
}

fn without_od() -> TableDefinition {
    let mut definition = curve();
    definition.columns.retain(|column| column.name != "od");
    definition
}

crate::suite!(
    use catalog::columns as catalog_columns;

    /// Values, id and place of a renamed column stay; it is written and read by its new name only.
    async fn a_renamed_column_keeps_its_values(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        lab.insert("sample", json!([{"name": "a", "volume": 1.5}]))
            .await;
        let before = lab.tables().await;
        let former = before.table("sample").unwrap().column("volume").unwrap();
        let after = lab.define(&renaming(sample(), "volume", "amount")).await;
        let after = after.unwrap();
        let renamed = after.column("amount").unwrap();
        assert_eq!(renamed.position(), former.position());
        assert_eq!(renamed.id, former.id);
        assert_eq!(after.column("volume"), None);
        let now = lab.tables().await;
        assert!(now.version > before.version);
        assert_eq!(now.table("sample"), Some(&after));
        assert_eq!(lab.column("sample", "amount").await, [1.5]);
        lab.insert("sample", json!([{"name": "b", "amount": 2}]))
            .await;
        assert_eq!(lab.find("sample", json!({"amount": 2})).await.len(), 1);
        let old_name = insert("sample", json!([{"name": "c", "volume": 3}]));
        assert_problems(lab.write(request([old_name], [])).await);
    }

    /// The former name no longer exists then; the version stays.
    async fn a_renaming_definition_again_changes_nothing(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let definition = renaming(sample(), "volume", "amount");
        let first = lab.define(&definition).await.unwrap();
        let version = lab.tables().await.version;
        assert_eq!(lab.define(&definition).await.unwrap(), first);
        assert_eq!(lab.tables().await.version, version);
    }

    /// Uniqueness, alone and together, required values and defaults hold on, under the new names.
    async fn a_renamed_column_keeps_its_constraints(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let grouped = |definition, group: [&str; 2]| TableDefinition {
            unique_together: vec![group.map(str::to_owned).to_vec()],
            ..definition
        };
        let unit = ColumnDefinition {
            default: Some(json!("ml")),
            ..column("unit", DataType::String)
        };
        let definition = with(sample(), vec![unit]);
        lab.define(&grouped(definition.clone(), ["volume", "unit"]))
            .await
            .unwrap();
        lab.insert("sample", json!([{"name": "a", "volume": 1}]))
            .await;
        let mut definition = renaming(definition, "name", "title");
        definition = renaming(definition, "unit", "measure");
        lab.define(&grouped(definition, ["volume", "measure"]))
            .await
            .unwrap();
        assert_eq!(lab.column("sample", "measure").await, ["ml"]);
        let refused = async |row: Value| {
            lab.write(request([insert("sample", json!([row]))], []))
                .await
        };
        assert_problems_are(
            refused(json!({"title": "a"})).await,
            &[repeated("sample", "sample_title_key", "title", "a")],
        );
        let (constraint, columns) = ("sample_volume_measure_key", "volume, measure");
        assert_problems_are(
            refused(json!({"title": "b", "volume": 1})).await,
            &[repeated("sample", constraint, columns, "1, ml")],
        );
        assert_problems(refused(json!({"volume": 2})).await);
    }

    /// The reference still holds, and follows its rows.
    async fn a_renamed_reference_points_at_the_same_rows(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        lab.insert("sample", json!([{"name": "a"}])).await;
        let a = lab.sample("a").await;
        lab.insert("measurement", json!([{"sample": a, "value": 1}]))
            .await;
        lab.define(&renaming(measurement(), "sample", "specimen"))
            .await
            .unwrap();
        let found = lab
            .find("measurement", json!({"specimen__name": "a"}))
            .await;
        assert_eq!(found.len(), 1);
        lab.insert("measurement", json!([{"specimen": {"name": "a"}}]))
            .await;
        let dangling = insert("measurement", json!([{"specimen": "nothing"}]));
        assert_problems(lab.write(request([dangling], [])).await);
        let mut delete = insert("sample", json!([{"id": a}]));
        delete.mode = Mode::Delete;
        assert_problems(lab.write(request([delete], [])).await);
    }

    /// References to the rows stay, and the key is generated as before.
    async fn a_renamed_key_identifies_the_same_rows(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        lab.insert("sample", json!([{"name": "a"}])).await;
        let a = lab.sample("a").await;
        lab.insert("measurement", json!([{"sample": a}])).await;
        let code = renamed("id", key("code", DataType::String));
        lab.define(&with(sample(), vec![code])).await.unwrap();
        assert_eq!(lab.column("sample", "code").await, [json!(a)]);
        lab.insert("sample", json!([{"name": "b"}])).await;
        let rows = json!([{"sample": a}, {"sample": {"name": "b"}}]);
        lab.insert("measurement", rows).await;
        let found = lab.find("measurement", json!({"sample__code": a})).await;
        assert_eq!(found.len(), 2);
        let points = series("curve", json!({"code": a}), json!({"time": [0, 1]}));
        lab.write(request([], [points])).await.unwrap();
        assert_eq!(lab.count("curve").await, 2);
    }

    /// Values and references of stored points are there by their new names.
    async fn columns_of_points_are_renamed(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let points = series(
            "curve",
            json!("@a"),
            json!({"time": [0, 1], "od": [0.1, 0.2]}),
        );
        let rows = insert("sample", json!([{"_ref": "a", "name": "a"}]));
        lab.write(request([rows], [points])).await.unwrap();
        let mut definition = renaming(curve(), "od", "density");
        definition = renaming(definition, "sample", "specimen");
        definition = with(definition, vec![column("ph", DataType::Float)]);
        lab.define(&definition).await.unwrap();
        assert_eq!(lab.column("curve", "density").await, [0.1, 0.2]);
        let found = lab.find("curve", json!({"specimen__name": "a"})).await;
        assert_eq!(found.len(), 2);
        let replaced = series(
            "curve",
            json!({"name": "a"}),
            json!({"time": [0], "density": [0.5]}),
        );
        let written = lab.write(request([], [replaced])).await.unwrap();
        assert_eq!(written.series[0].points_replaced, 2);
        assert_eq!(lab.column("curve", "density").await, [0.5]);
    }

    /// A name may be given up by one column and taken by another in one definition.
    async fn names_move_on_from_column_to_column(harness: &Itself<impl DataHarness>) {
        let lab = Lab::empty(harness).await;
        let integer = |name| column(name, DataType::Integer);
        let pair = |a, b| curated("pair", vec![a, b]);
        lab.define(&pair(integer("a"), integer("b"))).await.unwrap();
        lab.insert("pair", json!([{"a": 1, "b": 2}])).await;
        let moved = pair(renamed("a", integer("b")), renamed("b", integer("c")));
        lab.define(&moved).await.unwrap();
        assert_eq!(lab.column("pair", "b").await, [1]);
        assert_eq!(lab.column("pair", "c").await, [2]);
    }

    /// The definition stays as it was.
    async fn a_rename_to_a_taken_name_is_refused(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let before = lab.tables().await.version;
        let mut taken = renaming(sample(), "volume", "note");
        taken.columns.remove(2);
        match lab.define(&taken).await {
            Err(DefineError::Refused(CatalogRefusal::Definition(reasons))) => {
                assert!(
                    reasons
                        .iter()
                        .any(|reason| reason.contains("cannot be renamed"))
                );
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(lab.tables().await.version, before);
    }

    /// A record of writes names tables and rows, not columns.
    async fn rows_from_before_a_rename_are_reverted(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let points = series("curve", json!("@a"), json!({"time": [0, 1]}));
        let rows = insert("sample", json!([{"_ref": "a", "name": "a"}]));
        let written = lab.write(request([rows], [points])).await.unwrap();
        let code = renamed("id", key("code", DataType::String));
        lab.define(&with(renaming(sample(), "name", "title"), vec![code]))
            .await
            .unwrap();
        let curve = renaming(renaming(curve(), "sample", "specimen"), "time", "seconds");
        lab.define(&curve).await.unwrap();
        let report = lab.revert(written.execution.unwrap()).await.unwrap();
        assert_eq!((report.deleted_count, report.raws_deleted_count), (1, 2));
        assert_eq!(lab.count("sample").await + lab.count("curve").await, 0);
    }

    /// It is neither in the catalog nor read or written; the rest stays as it is.
    async fn a_dropped_column_is_gone(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        lab.insert("sample", json!([{"name": "a", "volume": 1.5}]))
            .await;
        let before = lab.tables().await;
        drop_column(&lab, "sample", "note", false).await.unwrap();
        let after = lab.tables().await;
        assert!(after.version > before.version);
        let mut expected = (**before.table("sample").unwrap()).clone();
        let note = expected.column("note").unwrap().clone();
        expected.columns = expected.columns.without(&note);
        assert_eq!(after.table("sample").map(|table| &**table), Some(&expected));
        assert_eq!(lab.column("sample", "volume").await, [1.5]);
        lab.insert("sample", json!([{"name": "b", "volume": 2}]))
            .await;
        let dropped = insert("sample", json!([{"name": "c", "note": "x"}]));
        assert_problems(lab.write(request([dropped], [])).await);
        for (table, column) in [("sample", "note"), ("nothing", "note")] {
            match drop_column(&lab, table, column, true).await {
                Err(DefineError::Port(PortError::NotFound(_))) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// A row with a value is enough, also in a unique column or a reference, which go with their
    /// constraints.
    async fn a_column_with_values_is_dropped_by_force_only(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        lab.insert("sample", json!([{"name": "a"}, {"name": "b", "note": "x"}]))
            .await;
        let a = lab.sample("a").await;
        lab.insert("measurement", json!([{"sample": a}])).await;
        for (table, column) in [
            ("sample", "note"),
            ("sample", "name"),
            ("measurement", "sample"),
        ] {
            let refused = drop_column(&lab, table, column, false).await;
            let expected = CatalogRefusal::ColumnHoldsValues {
                table: table.to_owned(),
                column: column.to_owned(),
            };
            assert_refused(refused, &expected);
            drop_column(&lab, table, column, true).await.unwrap();
        }
        assert_eq!(lab.count("sample").await, 2);
        lab.insert("sample", json!([{"volume": 1}, {"volume": 1}]))
            .await;
    }

    /// Points without a value there do not count.
    async fn a_column_of_points_is_dropped_by_force_only(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let rows = insert("sample", json!([{"_ref": "a", "name": "a"}]));
        let columns = json!({"time": [0, 1], "od": [null, null]});
        let points = series("curve", json!("@a"), columns);
        lab.write(request([rows], [points])).await.unwrap();
        let refused = drop_column(&lab, "curve", "time", false).await;
        let expected = CatalogRefusal::ColumnHoldsValues {
            table: "curve".to_owned(),
            column: "time".to_owned(),
        };
        assert_refused(refused, &expected);
        drop_column(&lab, "curve", "od", false).await.unwrap();
        assert_eq!(lab.column("curve", "time").await, [0.0, 1.0]);
        let refused = drop_column(&lab, "curve", "time", true).await;
        assert_refused(refused, &needed("curve", "time", ColumnRole::OnlyValues));
        lab.define(&with(
            renaming(without_od(), "time", "seconds"),
            vec![column("ph", DataType::Float)],
        ))
        .await
        .unwrap();
        drop_column(&lab, "curve", "seconds", true).await.unwrap();
        assert_eq!(lab.column("curve", "ph").await, [Value::Null, Value::Null]);
    }

    /// Points belong to the rows that it references.
    async fn a_reference_of_a_raw_table_is_dropped_while_no_point_has_it(
        harness: &Itself<impl DataHarness>,
    ) {
        let lab = Lab::with_tables(harness).await;
        let experiment = with(curve(), vec![reference("experiment")]);
        lab.define(&experiment).await.unwrap();
        let rows = [
            insert("sample", json!([{"_ref": "a", "name": "a"}])),
            insert("experiment", json!([{"_ref": "e", "name": "e"}])),
        ];
        let mut points = series("curve", json!("@a"), json!({"time": [0, 1]}));
        points.parent_column = Some("sample".to_owned());
        lab.write(request(rows, [points])).await.unwrap();
        for force in [false, true] {
            let refused = drop_column(&lab, "curve", "sample", force).await;
            assert_refused(refused, &needed("curve", "sample", ColumnRole::Owner));
        }
        drop_column(&lab, "curve", "experiment", false)
            .await
            .unwrap();
        let refused = drop_column(&lab, "curve", "sample", true).await;
        assert_refused(
            refused,
            &needed("curve", "sample", ColumnRole::OnlyReference),
        );
        assert_eq!(lab.count("curve").await, 2);
    }

    /// Not by force either, empty or not.
    async fn a_column_that_is_a_key_is_not_dropped(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let group = vec!["sample".to_owned(), "value".to_owned()];
        lab.define(&TableDefinition {
            unique_together: vec![group.clone()],
            ..measurement()
        })
        .await
        .unwrap();
        let together = ColumnRole::UniqueTogether(group);
        let cases = [
            ("sample", "id", ColumnRole::PrimaryKey),
            ("measurement", "value", together),
            ("curve", "order", ColumnRole::Order),
            ("curve", "sample", ColumnRole::OnlyReference),
        ];
        for (table, column, role) in cases {
            let refused = drop_column(&lab, table, column, true).await;
            assert_refused(refused, &needed(table, column, role));
        }
        let system = CatalogRefusal::PlatformColumn {
            table: "sample".to_owned(),
            column: "created_at".to_owned(),
        };
        assert_refused(
            drop_column(&lab, "sample", "created_at", true).await,
            &system,
        );
    }

    /// Defined once more, the column holds nothing, in rows and in points.
    async fn a_dropped_column_comes_back_empty(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let rows = insert("sample", json!([{"_ref": "a", "name": "a", "volume": 1}]));
        let columns = json!({"time": [0], "od": [0.5]});
        let points = series("curve", json!("@a"), columns);
        lab.write(request([rows], [points])).await.unwrap();
        drop_column(&lab, "sample", "volume", true).await.unwrap();
        drop_column(&lab, "curve", "od", true).await.unwrap();
        lab.define_tables().await;
        assert_eq!(lab.column("sample", "volume").await, [Value::Null]);
        assert_eq!(lab.column("curve", "od").await, [Value::Null]);
    }

    /// A plan made with the former names is refused, not applied to other columns.
    async fn a_write_that_was_planned_before_is_planned_again(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let rows = || request([insert("sample", json!([{"name": "a", "volume": 1}]))], []);
        let plan = lab.plan(rows()).await.unwrap();
        lab.define(&renaming(sample(), "volume", "amount"))
            .await
            .unwrap();
        let target = Lab::new_execution("some job");
        let refused = lab.apply(&plan, target, at(70)).await;
        assert!(
            matches!(refused, Err(WriteError::CatalogChanged)),
            "{refused:?}"
        );
        assert_eq!(lab.count("sample").await, 0);
    }
);
