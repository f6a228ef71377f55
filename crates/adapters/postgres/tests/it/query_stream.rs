//! Results of queries that arrive in parts.

use std::time::Duration;

use async_trait::async_trait;
use labdata_domain::{
    data::query::{MAX_ROW_BYTES, QueryFailure, QueryLimits, QueryText, SNAPSHOT_LIMITS},
    scalar::DataType,
};
use labdata_ports::data::query::{
    Query, QueryError, QueryRunner, ResultColumn, ResultSink, SinkClosed,
};

use crate::query_lab::{LIMITS, QueryLab};

/// Counts what it takes, and takes a limited number of parts.
#[derive(Default)]
struct Counting {
    columns: Vec<ResultColumn>,
    parts: Vec<usize>,
    last: String,
    most_parts: Option<usize>,
}

#[async_trait]
impl ResultSink for Counting {
    async fn begin(&mut self, columns: Vec<ResultColumn>) -> Result<(), SinkClosed> {
        assert!(self.columns.is_empty() && self.parts.is_empty());
        self.columns = columns;
        Ok(())
    }

    async fn rows(&mut self, rows: Vec<String>) -> Result<(), SinkClosed> {
        if self.most_parts == Some(self.parts.len()) {
            return Err(SinkClosed);
        }
        self.parts.push(rows.len());
        self.last.clone_from(rows.last().expect("a row"));
        Ok(())
    }
}

fn query(sql: &str, limits: QueryLimits) -> Query {
    Query {
        text: QueryText::parse(sql).expect("a query"),
        params: Vec::new(),
        limits,
        view: None,
    }
}

#[tokio::test]
async fn a_result_arrives_in_parts_after_its_columns() {
    let lab = QueryLab::new().await;
    let sql = "select n, 'row ' || n as name from generate_series(1, 100000) as n";
    let mut sink = Counting::default();
    let query = query(sql, SNAPSHOT_LIMITS);
    let streamed = lab.runner.stream(lab.ours, &query, &mut sink).await;
    streamed.expect("a result");
    let column = |name: &str, data_type| ResultColumn {
        name: name.to_owned(),
        data_type,
    };
    assert_eq!(
        sink.columns,
        [
            column("n", DataType::Integer),
            column("name", DataType::Text)
        ]
    );
    assert_eq!(sink.parts.iter().sum::<usize>(), 100_000);
    assert!(sink.parts.len() > 10, "{:?}", sink.parts);
    assert_eq!(sink.last, r#"[100000,"row 100000"]"#);
}

#[tokio::test]
async fn a_result_without_rows_has_columns() {
    let lab = QueryLab::new().await;
    let mut sink = Counting::default();
    let empty = query("select name from sample where false", LIMITS);
    let streamed = lab.runner.stream(lab.ours, &empty, &mut sink).await;
    streamed.expect("a result");
    assert_eq!((sink.columns.len(), sink.parts.len()), (1, 0));
}

#[tokio::test]
async fn a_query_ends_when_its_sink_takes_no_more() {
    let lab = QueryLab::new().await;
    let mut sink = Counting {
        most_parts: Some(2),
        ..Counting::default()
    };
    let endless = query("select generate_series(1, 1000000000)", SNAPSHOT_LIMITS);
    let streamed = lab.runner.stream(lab.ours, &endless, &mut sink).await;
    assert!(
        matches!(streamed, Err(QueryError::Closed(_))),
        "{streamed:?}"
    );
    let running = "SELECT count(*) FROM pg_stat_activity \
                   WHERE state = 'active' AND query LIKE '%generate_series(1, 1000000000)%' \
                   AND pid <> pg_backend_pid()";
    let is_idle = async {
        while lab
            .behind
            .query_one(running, &[])
            .await
            .expect("an answer")
            .get::<_, i64>(0)
            > 0
        {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let ended = tokio::time::timeout(Duration::from_secs(10), is_idle).await;
    ended.expect("the query was cancelled");
}

#[tokio::test]
async fn limits_hold_for_results_that_arrive_in_parts() {
    let lab = QueryLab::new().await;
    let refusal = async |sql: &str, limits: QueryLimits| {
        let mut sink = Counting::default();
        let query = query(sql, limits);
        let streamed = lab.runner.stream(lab.ours, &query, &mut sink).await;
        let Err(QueryError::Refused(failure)) = streamed else {
            panic!("{streamed:?}");
        };
        failure
    };
    let rows = QueryLimits {
        rows: 20_000,
        ..SNAPSHOT_LIMITS
    };
    let many = "select n from generate_series(1, 20001) as n";
    assert_eq!(refusal(many, rows).await, QueryFailure::TooManyRows(rows));
    let bytes = QueryLimits {
        bytes: 3 << 20,
        ..SNAPSHOT_LIMITS
    };
    let large = "select repeat('x', 1000) as a from generate_series(1, 4000) as n";
    assert_eq!(refusal(large, bytes).await, QueryFailure::TooLarge(bytes));
    let one = format!("select repeat('x', {}) as a", MAX_ROW_BYTES + (2 << 20));
    assert_eq!(
        refusal(&one, SNAPSHOT_LIMITS).await,
        QueryFailure::RowTooLarge
    );
}
