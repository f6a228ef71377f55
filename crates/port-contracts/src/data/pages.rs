//! Contract of [`labdata_ports::data::DataStore`]: pages, core tables and platform tables.

use labdata_domain::{
    data::read::{Position, ReadPlan},
    scalar::DataType,
};
use serde_json::{Map, Value, json};

use crate::{
    Itself,
    assertions::by_value,
    catalog::definitions::{curated, key},
    data::{
        lab::{DataHarness, Lab, request, series},
        read::{found, lab_with_samples},
    },
    fixtures::{Instruments, Jobs},
    lab::Records,
};

/// Reads all rows, `limit` at a time; `between` runs after each page.
pub(crate) async fn read_pages(
    lab: &Lab,
    plan: ReadPlan,
    mut between: impl AsyncFnMut(usize),
) -> Vec<Map<String, Value>> {
    let limit = usize::try_from(plan.limit).unwrap();
    let mut rows = Vec::new();
    let mut after: Option<Position> = None;
    for number in 0..1000 {
        let page = lab
            .read(&ReadPlan {
                after,
                ..plan.clone()
            })
            .await;
        assert!(page.rows.len() <= limit && (page.next.is_none() || page.rows.len() == limit));
        rows.extend(
            page.rows
                .iter()
                .map(|row| serde_json::from_str(row.as_str()).unwrap()),
        );
        between(number).await;
        match page.next {
            None => return rows,
            // URL-encoded.
            Some(next) => after = Some(Position::decode(&next.encode()).unwrap()),
        }
    }
    panic!("the table has no end");
}

/// The values of a column.
pub(crate) fn values(rows: &[Map<String, Value>], column: &str) -> Vec<Value> {
    rows.iter()
        .map(|row| row.get(column).cloned().unwrap())
        .collect()
}

crate::suite!(
    use data::pages as data_pages;

    /// Generated keys grow, so the last row written is the first one read.
    async fn rows_with_generated_keys_come_newest_first(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        lab.insert("sample", json!([{"name": "1"}, {"name": "2"}]))
            .await;
        lab.insert("sample", json!([{"name": "3"}])).await;
        assert_eq!(
            values(&lab.find("sample", json!({})).await, "name"),
            ["3", "2", "1"]
        );
    }

    /// A page ends with the row that brings it to its greatest size, and the next one continues behind it.
    async fn a_page_ends_with_the_row_that_fills_it(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let note = "n".repeat(10_000);
        let rows = ["1", "2", "3", "4", "5"].map(|name| json!({ "name": name, "note": note }));
        lab.insert("sample", json!(rows)).await;
        let mut plan = lab.read_plan("sample", json!({}), 4).await;
        // More than two rows, less than three.
        plan.max_bytes = 25_000;
        let mut sizes = Vec::new();
        loop {
            let page = lab.read(&plan).await;
            sizes.push(page.rows.len());
            plan.after = page.next;
            if plan.after.is_none() {
                break;
            }
        }
        assert_eq!(sizes, [3, 2]);
        // Never a page without a row.
        (plan.max_bytes, plan.limit) = (0, 1);
        assert_eq!(lab.read(&plan).await.rows.len(), 1);
    }

    /// With any page size, all rows are read once, by descending key.
    async fn rows_come_by_descending_key_page_by_page(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        lab.define(&curated("run", vec![key("number", DataType::Integer)]))
            .await
            .unwrap();
        let numbers = [3, -20, 100, 0, 7, i64::MIN, i64::MAX];
        let rows: Vec<Value> = numbers
            .iter()
            .map(|number| json!({ "number": number }))
            .collect();
        lab.insert("run", json!(rows)).await;
        lab.define(&curated("tag", vec![key("code", DataType::Uuid)]))
            .await
            .unwrap();
        let codes = ["f", "0", "a", "9"]
            .map(|digit| format!("{}-0000-7000-8000-000000000000", digit.repeat(8)));
        lab.insert(
            "tag",
            json!(codes.clone().map(|code| json!({ "code": code }))),
        )
        .await;
        let mut numbers = numbers.to_vec();
        numbers.sort_unstable_by(|a, b| b.cmp(a));
        let mut codes = codes.to_vec();
        codes.sort_by(|a, b| b.cmp(a));
        for limit in [1, 2, 4, 7, 100] {
            let nothing = async |_| ();
            let rows =
                read_pages(&lab, lab.read_plan("run", json!({}), limit).await, nothing).await;
            assert_eq!(values(&rows, "number"), numbers);
            let rows =
                read_pages(&lab, lab.read_plan("tag", json!({}), limit).await, nothing).await;
            assert_eq!(values(&rows, "code"), codes);
            let rows = read_pages(
                &lab,
                lab.read_plan("sample", json!({}), limit).await,
                nothing,
            )
            .await;
            assert_eq!(values(&rows, "name"), ["e", "d", "c", "b", "a"]);
        }
    }

    /// Points are read in the order in which they were written, with any page size.
    async fn points_come_series_by_series_page_by_page(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        let mut expected = Vec::new();
        for (sample, points) in [("c", 3_u32), ("a", 5), ("b", 1)] {
            let times: Vec<u32> = (0..points).collect();
            lab.write(request(
                [],
                [series("curve", json!(sample), json!({ "time": times }))],
            ))
            .await
            .unwrap();
            expected.extend(
                times
                    .iter()
                    .map(|time| (json!(sample), json!(f64::from(*time)))),
            );
        }
        for limit in [1, 2, 4, 9, 100] {
            let rows = read_pages(
                &lab,
                lab.read_plan("curve", json!({}), limit).await,
                async |_| (),
            )
            .await;
            let read: Vec<(Value, Value)> = values(&rows, "sample")
                .into_iter()
                .zip(values(&rows, "time").into_iter().map(by_value))
                .collect();
            assert_eq!(read, expected, "in pages of {limit}");
        }
    }

    /// Rows that exist when paging begins are read exactly once, while newer rows are written.
    async fn pages_lose_and_repeat_nothing_while_others_write(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let rows: Vec<Value> = (0..7)
            .map(|number| json!({"name": format!("{number}")}))
            .collect();
        lab.insert("sample", json!(rows)).await;
        let plan = lab.read_plan("sample", json!({}), 2).await;
        let rows = read_pages(&lab, plan, async |number| {
            lab.insert("sample", json!([{"name": format!("new {number}")}]))
                .await;
        })
        .await;
        assert_eq!(values(&rows, "name"), ["6", "5", "4", "3", "2", "1", "0"]);
    }

    /// A filter and a cursor work together.
    async fn filters_hold_on_every_page(harness: &Itself<impl DataHarness>) {
        let lab = lab_with_samples(harness).await;
        let curves =
            ["a", "b"].map(|sample| series("curve", json!(sample), json!({"time": [0, 1, 2, 3]})));
        lab.write(request([], curves)).await.unwrap();
        for limit in 1..4 {
            let plan = lab
                .read_plan("sample", json!({"volume__gte": 2}), limit)
                .await;
            let rows = read_pages(&lab, plan, async |_| ()).await;
            assert_eq!(values(&rows, "name"), ["d", "c", "b"]);
            let plan = lab
                .read_plan("curve", json!({"sample__name": "b", "time__gt": 0}), limit)
                .await;
            let rows = read_pages(&lab, plan, async |_| ()).await;
            assert_eq!(values(&rows, "time"), [1.0, 2.0, 3.0]);
        }
    }

    /// Core tables are written and read like the organization's own, references among them included.
    async fn core_tables_are_read_like_defined_ones(harness: &Itself<impl DataHarness>) {
        let lab = Lab::empty(harness).await;
        lab.insert(
            "experiment",
            json!([{"id": "x", "name": "growth", "status": "planned"}]),
        )
        .await;
        lab.insert(
            "carrier",
            json!([{"id": "p", "name": "plate", "barcode": "0042"}]),
        )
        .await;
        let operation = json!({
            "id": "o", "name": "incubate", "experiment": "x", "carrier": "p",
            "instrument_id": "0189c0de-0000-7000-8000-000000000001",
            "performed_at": "2026-03-01T12:00:00Z", "parameters": {"temperature": 37},
        });
        lab.insert("operation", json!([operation])).await;
        assert_eq!(
            found(&lab, "operation", json!({"experiment__name": "growth"})).await,
            "o"
        );
        let row = lab
            .find("operation", json!({"carrier__barcode": "0042"}))
            .await
            .remove(0);
        for (name, value) in operation.as_object().unwrap() {
            assert_eq!(row.get(name), Some(value), "{name}");
        }
    }

    /// Platform tables show the organization's records with the documented columns.
    async fn platform_tables_show_what_is_stored(harness: &Itself<impl DataHarness + Records>) {
        use labdata_domain::catalog::PlatformTable;

        let lab = Lab::with_tables(harness).await;
        let instrument = harness.instrument(lab.organization, "reader").await;
        let job = harness.job(lab.organization, "parse").await;
        let execution = lab.insert("sample", json!([{"name": "a"}])).await;
        let one = async |table: &str, filters: Value| {
            let mut rows = lab.find(table, filters).await;
            assert_eq!(rows.len(), 1, "{table}");
            rows.remove(0)
        };
        let row = one("instrument", json!({"name": "reader"})).await;
        assert_eq!(row.get("id"), Some(&json!(instrument.id.to_string())));
        assert_eq!(row.get("instrument_type"), Some(&json!("plate_reader")));
        let row = one("job", json!({"name__contains": "ARS", "archived": false})).await;
        assert_eq!(row.get("id"), Some(&json!(job.id.to_string())));
        let row = one("job_execution", json!({"id": execution.to_string()})).await;
        assert_eq!(
            (&row["status"], &row["job_name"]),
            (&json!("completed"), &json!("some job"))
        );
        let row = one("organizationmember", json!({})).await;
        assert_eq!(row.get("email"), Some(&json!("ada@example.org")));
        let tables = lab.find("table", json!({})).await;
        assert_eq!(values(&tables, "name"), ["curve", "measurement", "sample"]);
        assert_eq!(
            values(&tables, "semantic_category"),
            ["raw", "curated", "curated"]
        );
        let ids: Vec<Value> = lab
            .tables()
            .await
            .tables()
            .iter()
            .take(3)
            .map(|table| json!(table.id))
            .collect();
        assert!(values(&tables, "id").iter().all(|id| ids.contains(id)));
        for table in PlatformTable::ALL {
            let rows = lab.find(table.as_str(), json!({})).await;
            let names: Vec<&str> = table.columns().iter().map(|column| column.name).collect();
            for row in rows {
                assert!(
                    names.iter().all(|name| row.contains_key(*name)),
                    "{}",
                    table.as_str()
                );
            }
        }
    }

    /// No platform table shows records of another organization.
    async fn platform_tables_show_no_other_organization(
        harness: &Itself<impl DataHarness + Records>,
    ) {
        use labdata_domain::catalog::PlatformTable;

        let lab = Lab::with_tables(harness).await;
        harness.instrument(lab.organization, "reader").await;
        lab.insert("sample", json!([{"name": "a"}])).await;
        let other = Lab::named(harness, "another lab").await;
        for table in PlatformTable::ALL {
            let expected = usize::from(table == PlatformTable::OrganizationMember);
            assert_eq!(
                other.count(table.as_str()).await,
                expected,
                "{}",
                table.as_str()
            );
        }
    }
);
