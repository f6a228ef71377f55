//! Connections that break during a commit, of every kind: the outcome is unknown, and no message invites to repeat it.

use std::sync::Arc;

use labdata_domain::{
    executions::FinalStatus,
    idempotency::{Fingerprint, StoredResponse},
    ids::ApiKeyId,
    people::session::SignInLink,
};
use labdata_port_contracts::{
    Harness as _, Subject,
    catalog::definitions,
    data::lab::{Lab, insert, request},
    fixtures::Executions as _,
    given::{self, at},
};
use labdata_ports::{
    PortError,
    catalog::DefineError,
    data::WriteError,
    executions::CloseExecutionError,
    idempotency::{Begun, Idempotency, IdempotentRequest},
    instruments::InstrumentRepository,
    people::sessions::SessionRepository,
};
use serde_json::json;

use crate::{contracts::Postgres, look_behind};

/// Lets every session end while it commits a change of that table.
async fn break_commits(harness: &Postgres, table: &str) {
    let statements = format!(
        "CREATE FUNCTION public.break_off() RETURNS trigger LANGUAGE plpgsql AS \
         'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END'; \
         CREATE CONSTRAINT TRIGGER breaks AFTER INSERT OR UPDATE OR DELETE ON labdata.{table} \
         DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.break_off()"
    );
    let behind = look_behind(harness.url()).await;
    behind.batch_execute(&statements).await.expect("a trigger");
}

/// A lab with tables, a row, and the job of its writes.
async fn lab() -> (Postgres, Lab) {
    let harness = Postgres::fresh().await;
    let lab = Lab::named(&harness, "lab").await;
    lab.define_tables().await;
    lab.insert("sample", json!([{"name": "first"}])).await;
    (harness, lab)
}

#[track_caller]
fn assert_unknown(error: &PortError) {
    assert!(matches!(error, PortError::OutcomeUnknown(_)), "{error:?}");
}

fn written(outcome: Result<labdata_domain::data::write::WriteOutcome, WriteError>) -> PortError {
    match outcome {
        Err(WriteError::Port(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn of_a_write_in_a_transaction_of_its_own() {
    let (harness, lab) = lab().await;
    break_commits(&harness, "job_execution").await;
    let write = request([insert("sample", json!([{"name": "second"}]))], []);
    let plan = lab.plan(write).await.unwrap();
    let outcome = lab
        .apply(&plan, Lab::new_execution("a new job"), at(100))
        .await;
    assert_unknown(&written(outcome));
}

#[tokio::test]
async fn of_small_writes_that_share_a_transaction() {
    let (harness, lab) = lab().await;
    // The job is known by now, as small writes need it.
    lab.insert("sample", json!([{"name": "second"}])).await;
    break_commits(&harness, "job_execution").await;
    let write = request([insert("sample", json!([{"name": "third"}]))], []);
    assert_unknown(&written(lab.write(write).await));
}

#[tokio::test]
async fn of_a_definition() {
    let (harness, lab) = lab().await;
    break_commits(&harness, "catalog_table").await;
    match lab
        .define(&definitions::curated(
            "further",
            vec![definitions::column(
                "note",
                labdata_domain::scalar::DataType::Text,
            )],
        ))
        .await
    {
        Err(DefineError::Port(error)) => assert_unknown(&error),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn of_the_end_of_an_execution() {
    let (harness, lab) = lab().await;
    let open = harness.execution(lab.organization, at(0), None).await;
    break_commits(&harness, "job_execution").await;
    let closed = lab
        .executions
        .close(lab.organization, open.id, FinalStatus::Completed, at(1));
    match closed.await {
        Err(CloseExecutionError::Port(error)) => assert_unknown(&error),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn of_a_unit_of_work_with_its_response() {
    let (harness, lab) = lab().await;
    break_commits(&harness, "idempotency_key").await;
    let request = IdempotentRequest {
        organization: lab.organization,
        api_key: ApiKeyId::new(given::uuid()),
        operation: "POST /api/v1/jobs".to_owned(),
        key: "key".to_owned(),
        fingerprint: Fingerprint {
            body: [7; 32],
            rights: [0; 32],
        },
        now: at(1),
    };
    let idempotency: Arc<dyn Idempotency> = harness.subject();
    let Begun::New(unit) = idempotency.begin(&request).await.unwrap() else {
        panic!("it ran before");
    };
    let response = StoredResponse {
        status: 200,
        content_type: "application/json".to_owned(),
        body: b"{}".to_vec(),
        tables: Vec::new(),
    };
    assert_unknown(&unit.commit(Some(&response)).await.unwrap_err());
}

#[tokio::test]
async fn of_a_statement_that_commits_by_itself() {
    let (harness, lab) = lab().await;
    break_commits(&harness, "instrument").await;
    let instruments: Arc<dyn InstrumentRepository> = harness.subject();
    let reader = given::instrument("reader", at(1));
    assert_unknown(
        &instruments
            .add(lab.organization, &reader)
            .await
            .unwrap_err(),
    );
}

#[tokio::test]
async fn of_a_sign_in_link_that_is_used() {
    let (harness, lab) = lab().await;
    let sessions: Arc<dyn SessionRepository> = harness.subject();
    let link = SignInLink {
        token: labdata_domain::people::ApiKeyHash([7; 32]),
        organization: lab.organization,
        user: lab.user,
        expires_at: at(1_000),
    };
    sessions.add_link(&link).await.unwrap();
    break_commits(&harness, "sign_in_link").await;
    assert_unknown(&sessions.take_link(link.token).await.unwrap_err());
}
