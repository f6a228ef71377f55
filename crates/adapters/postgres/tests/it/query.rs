//! Queries that people write: what they find, and how their mistakes are told.

use std::time::{Duration, Instant};

use labdata_domain::{
    data::query::{QueryFailure, QueryLimits, QueryText},
    scalar::DataType,
};
use labdata_port_contracts::{catalog::definitions, given::at};
use labdata_ports::{
    catalog::CatalogStore,
    data::query::{Query, QueryError, QueryRunner},
};
use labdata_postgres::PgCatalogStore;
use serde_json::json;

use crate::query_lab::{LIMITS, QueryLab, schema};

#[tokio::test]
async fn curated_core_and_raw_tables_are_read_by_their_names() {
    let lab = QueryLab::new().await;
    let (columns, rows) = lab
        .ask(
            "select name, volume from sample where volume >= %s order by name;",
            json!([1]),
        )
        .await;
    assert_eq!(columns, ["name", "volume"]);
    assert_eq!(rows, json!([["ours 2", 1.0], ["ours 3", 1.5]]));
    assert_eq!(
        lab.rows("select sample_id, \"order\", time, od from curve order by 2")
            .await,
        json!([
            ["ours-1", 0, 0.0, 0.1],
            ["ours-1", 1, 0.5, 0.2],
            ["ours-1", 2, 1.0, null]
        ])
    );
    assert_eq!(
        lab.rows("select count(*) from experiment").await,
        json!([[0]])
    );
}

#[tokio::test]
async fn points_of_raw_tables_have_an_id_that_stays_while_their_series_stands() {
    let lab = QueryLab::new().await;
    let schema = schema(lab.ours);
    let ids = "select id from curve where sample_id = 'ours-1' order by \"order\"";
    let before = lab.rows(ids).await;
    lab.run_behind(&format!(
        "INSERT INTO {schema}_chunks.curve (sample_id, _points, _start, time, od) \
         VALUES ('ours-2', 2, 0, '{{0, 1}}', '{{0.1, 0.2}}')"
    ))
    .await;
    assert_eq!(lab.rows(ids).await, before);
    assert_eq!(
        lab.rows("select count(id), count(distinct id) from curve")
            .await,
        json!([[5, 5]])
    );
    let numbered = definitions::raw(
        "numbered",
        vec![
            definitions::reference("sample"),
            definitions::column("id", DataType::Integer),
        ],
    );
    let catalog = PgCatalogStore::new(lab.database.clone());
    catalog
        .define(lab.ours, &numbered, at(0))
        .await
        .expect("a table");
    lab.run_behind(&format!(
        "INSERT INTO {schema}_chunks.numbered (sample_id, _points, _start, id) \
         VALUES ('ours-1', 1, 0, '{{7}}')"
    ))
    .await;
    assert_eq!(
        lab.rows("select sample_id, id from numbered").await,
        json!([["ours-1", 7]])
    );
}

#[tokio::test]
async fn platform_tables_show_the_organizations_own_rows() {
    let lab = QueryLab::new().await;
    assert_eq!(
        lab.rows("select name from instrument").await,
        json!([["reader of ours"]])
    );
    assert_eq!(
        lab.rows("select count(*) from \"table\"").await,
        json!([[4]])
    );
    for table in [
        "file",
        "job",
        "job_execution",
        "organizationmember",
        "ml_model",
        "dataset",
    ] {
        let counted = lab.rows(&format!("select count(*) from {table}")).await;
        assert_eq!(counted, json!([[0]]), "{table}");
    }
}

#[tokio::test]
async fn a_table_defined_later_is_read_at_once() {
    let lab = QueryLab::new().await;
    lab.rows("select 1").await;
    lab.run_behind(&format!(
        "CREATE TABLE {}.later AS SELECT 5 AS five",
        schema(lab.ours)
    ))
    .await;
    assert_eq!(lab.rows("select five from later").await, json!([[5]]));
}

#[tokio::test]
async fn columns_keep_their_order_and_their_names_even_twice() {
    let lab = QueryLab::new().await;
    let (columns, rows) = lab
        .ask(
            "select 2 as b, 1 as a, 3 as b, '{1,2}'::int[] as c",
            json!([]),
        )
        .await;
    assert_eq!(columns, ["b", "a", "b", "c"]);
    assert_eq!(rows, json!([[2, 1, 3, [1, 2]]]));
    let (columns, rows) = lab
        .ask("select name, id from sample where false", json!([]))
        .await;
    assert_eq!(
        (columns, rows),
        (vec!["name".to_owned(), "id".to_owned()], json!([]))
    );
}

#[tokio::test]
async fn values_come_as_writes_accept_them() {
    let lab = QueryLab::new().await;
    let values = "'a \"b\" %s', 9007199254740993, 0.1::float8, 1e300, true, \
                  '2026-03-01 12:00:00.5+02'::timestamptz, '2026-03-01'::date, \
                  '0191d5a4-0000-7000-8000-000000000000'::uuid, '{\"b\": [1, null]}'::jsonb, \
                  null, 'NaN'::float8, 12.50::numeric, '1 day 02:00'::interval, '\\xff'::bytea";
    assert_eq!(
        lab.rows(&format!("select {values}")).await,
        json!([[
            "a \"b\" %s",
            9_007_199_254_740_993_i64,
            0.1,
            1e300,
            true,
            "2026-03-01T10:00:00.5Z",
            "2026-03-01",
            "0191d5a4-0000-7000-8000-000000000000",
            {"b": [1, null]},
            null,
            null,
            12.50,
            "P1DT2H",
            "\\xff"
        ]])
    );
    let row = lab
        .rows("select s, array[s.name] from sample s where name = 'ours 1'")
        .await;
    assert_eq!(row[0][0]["name"], "ours 1");
    assert_eq!(row[0][1], json!(["ours 1"]));
}

#[tokio::test]
async fn parameters_take_the_type_of_their_place() {
    let lab = QueryLab::new().await;
    lab.run_behind(&format!(
        "INSERT INTO {}.every_type (id, a_text, an_integer, a_float, a_boolean, a_datetime, a_date, a_uuid, a_json) \
         VALUES ('1', 'a', 1, 1.5, true, '2026-03-01T12:00:00Z', '2026-03-01', \
         '0191d5a4-0000-7000-8000-000000000000', '{{\"a\": [1]}}')",
        schema(lab.ours)
    ))
    .await;
    for (column, value) in [
        ("a_text", json!("a")),
        ("an_integer", json!(1)),
        ("an_integer", json!("1")),
        ("a_float", json!(1.5)),
        ("a_boolean", json!(true)),
        ("a_datetime", json!("2026-03-01T14:00:00+02:00")),
        ("a_date", json!("2026-03-01")),
        ("a_uuid", json!("0191D5A4-0000-7000-8000-000000000000")),
        ("a_json", json!({"a": [1]})),
    ] {
        let query = format!("select id from every_type where {column}=%s");
        assert_eq!(
            lab.ask(&query, json!([value])).await.1,
            json!([["1"]]),
            "{column}"
        );
    }
    let (_, rows) = lab
        .ask(
            "select name from sample where name = any($1) and volume < $2 limit $3",
            json!([["ours 1", "ours 3", null], 1, 5]),
        )
        .await;
    assert_eq!(rows, json!([["ours 1"]]));
    assert_eq!(
        lab.ask("select %s::int is null, 7 %% 4", json!([null]))
            .await
            .1,
        json!([[true, 3]])
    );
}

#[tokio::test]
async fn mistakes_are_told_in_postgresqls_words() {
    let lab = QueryLab::new().await;
    for (sql, reported) in [
        ("selct 1", "begins with \"selct\""),
        (
            "select name frm sample",
            "syntax error at or near \"sample\"",
        ),
        (
            "select name from sample where",
            "the statement ends too early",
        ),
        (
            "select 'µ',\n name from sample where -- and",
            "the statement ends too early",
        ),
        (
            "select name from sample where )",
            "the query's parentheses do not match",
        ),
        (
            "select 1\nfrom nowhere",
            "relation \"nowhere\" does not exist (line 2)",
        ),
        ("select nme from sample", "column \"nme\" does not exist"),
        (
            "select 1 / (volume - volume) from sample",
            "division by zero",
        ),
        (
            "select 'x'::int",
            "invalid input syntax for type integer: \"x\"",
        ),
        (
            "select nofunction(1)",
            "function nofunction(integer) does not exist",
        ),
        (
            "select name, count(*) from sample",
            "must appear in the GROUP BY clause",
        ),
    ] {
        let reason = lab.refusal(sql).await;
        assert!(reason.contains(reported), "{sql}: {reason}");
        assert!(!reason.contains("q_"), "the alias shows: {reason}");
    }
    let wrong = lab
        .run("select * from sample where volume > %s", json!(["much"]))
        .await;
    let reason = wrong.expect_err("no number").to_string();
    assert!(
        reason.contains("invalid input syntax for type double precision"),
        "{reason}"
    );
}

#[tokio::test]
async fn results_beyond_the_limits_are_refused_and_up_to_them_given() {
    let lab = QueryLab::new().await;
    let all = lab
        .run("select * from generate_series(1, 10000)", json!([]))
        .await;
    assert_eq!(all.expect("as many as may be").rows.len(), 10_000);
    let reason = lab.refusal("select * from generate_series(1, 10001)").await;
    assert!(reason.contains("more than 10,000 rows"), "{reason}");
    for sql in [
        "select repeat('x', 1000000) from generate_series(1, 17)",
        "select repeat('x', 20000000)",
        "select repeat('x', 100000000)",
        "select array_agg(n) from generate_series(1, 4000000) n",
    ] {
        let reason = lab.refusal(sql).await;
        assert!(reason.contains("larger than 16 MiB"), "{sql}: {reason}");
    }
    lab.settle().await;
}

#[tokio::test]
async fn an_expression_that_is_too_deep_for_the_server_is_refused_without_its_settings() {
    let lab = QueryLab::new().await;
    let deep = format!("select 1{}", "+1".repeat(60_000));
    assert_eq!(lab.refusal(&deep).await, "the query is nested too deeply");
}

#[tokio::test]
async fn a_query_that_takes_too_long_is_cancelled() {
    let lab = QueryLab::new().await;
    let limits = QueryLimits {
        time: Duration::from_millis(300),
        ..LIMITS
    };
    let endless =
        "with recursive r(n) as (select 1 union all select n + 1 from r) select count(*) from r";
    let begun = Instant::now();
    let outcome = lab.run_within(endless, json!([]), limits).await;
    let reason = outcome.expect_err("it never ends").to_string();
    assert_eq!(reason, "the query took longer than 0.3 s and was cancelled");
    assert!(begun.elapsed() < Duration::from_secs(5));
    lab.settle().await;
}

#[tokio::test]
async fn a_query_ends_on_the_server_when_its_caller_leaves() {
    let lab = QueryLab::new().await;
    lab.rows("select 1").await;
    let endless =
        "with recursive r(n) as (select 1 union all select n + 1 from r) select count(*) from r";
    let waiting = lab.run(endless, json!([]));
    assert!(
        tokio::time::timeout(Duration::from_millis(500), waiting)
            .await
            .is_err()
    );
    let begun = Instant::now();
    lab.settle().await;
    assert!(begun.elapsed() < Duration::from_secs(3));
}

#[tokio::test]
async fn more_queries_than_run_at_once_take_turns() {
    let lab = QueryLab::new().await;
    let queries =
        (0..12).map(|_| lab.run("select count(*) from generate_series(1, 300000)", json!([])));
    for outcome in futures::future::join_all(queries).await {
        outcome.expect("its turn came");
    }
}

#[tokio::test]
async fn a_role_that_was_lost_is_made_again() {
    let lab = QueryLab::new().await;
    lab.rows("select 1").await;
    lab.settle().await;
    let role = format!("{}_reader", schema(lab.ours));
    lab.run_behind(&format!("DROP OWNED BY {role}; DROP ROLE {role}"))
        .await;
    assert_eq!(lab.rows("select count(*) from sample").await, json!([[3]]));
}

#[tokio::test]
async fn a_platform_that_may_not_create_roles_uses_those_that_are_there() {
    let lab = QueryLab::managed().await;
    lab.rows("select 1").await;
    lab.run_behind(
        "DO $$ BEGIN EXECUTE format('ALTER ROLE %I NOCREATEROLE', \
         (SELECT datdba::regrole::text FROM pg_database WHERE datname = current_database())); END $$",
    )
    .await;
    let lab = lab.restarted();
    assert_eq!(lab.rows("select count(*) from sample").await, json!([[3]]));
    let text = QueryText::parse("select 1").expect("a query");
    let theirs = Query {
        text,
        params: Vec::new(),
        limits: LIMITS,
        view: None,
    };
    let Err(QueryError::Refused(failure)) = lab.runner.run(lab.theirs, &theirs).await else {
        panic!("their role cannot have been made");
    };
    assert_eq!(failure, QueryFailure::SwitchedOff);
}

#[tokio::test]
async fn views_over_platform_tables_do_not_stand_in_the_way_of_migrations() {
    let lab = QueryLab::new().await;
    lab.rows("select 1 from file").await;
    labdata_postgres::revert_all_migrations(&lab.database)
        .await
        .expect("reverted");
    labdata_postgres::migrate(&lab.database)
        .await
        .expect("migrated");
}
