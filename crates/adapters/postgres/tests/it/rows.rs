//! Rows and entities: what cannot be stored, and what cannot be read.

use labdata_domain::{
    executions::FinalStatus,
    files::{
        Attribution, ContentType, Crc32c, ExtensionFilter, File, FileFilter, FilePath, FileState,
        ObjectKey, SourceType, StoredBytes,
    },
    ids::FileId,
    page::PageRequest,
    storage::StorageQuota,
};
use labdata_port_contracts::{
    Harness, Subject,
    fixtures::{Executions, Instruments, Tenants},
    given::{self, at},
};
use labdata_ports::{
    PortError,
    executions::{CloseExecutionError, ExecutionRepository},
    files::{AddFileError, FileRepository},
    people::ApiKeyRepository,
};

use crate::{contracts::Postgres, look_behind};

fn assert_corrupt<T: std::fmt::Debug>(result: Result<T, PortError>, text: &str) {
    match result {
        Err(PortError::Corrupt(found)) => assert_eq!(found, text),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_row_that_is_no_execution_is_corrupt_and_names_itself() {
    let harness = Postgres::fresh().await;
    let lab = harness.organization("lab").await.id;
    let execution = harness.execution(lab, at(0), None).await;
    let client = look_behind(harness.url()).await;
    client
        .batch_execute(
            "ALTER TABLE labdata.job_execution DROP CONSTRAINT job_execution_status_check, \
                 DROP CONSTRAINT job_execution_completed_at_check; \
             UPDATE labdata.job_execution SET status = 'lost'",
        )
        .await
        .expect("a row that is no execution");
    let executions: &dyn ExecutionRepository = &*harness.subject();
    let text = format!("labdata.job_execution.status of {}", execution.id);
    assert_corrupt(executions.get(lab, execution.id).await, &text);
    match executions
        .close(lab, execution.id, FinalStatus::Completed, at(1))
        .await
    {
        Err(CloseExecutionError::Port(error)) => assert_corrupt::<()>(Err(error), &text),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_row_that_is_no_key_is_corrupt_and_names_itself() {
    let harness = Postgres::fresh().await;
    let lab = harness.organization("lab").await.id;
    let key = given::api_key(&harness.user(lab, "ada@example.org").await);
    let keys: &dyn ApiKeyRepository = &*harness.subject();
    keys.add(&key).await.expect("a key");
    let client = look_behind(harness.url()).await;
    client
        .batch_execute(
            "ALTER TABLE labdata.api_key DROP CONSTRAINT api_key_scopes_check; \
             UPDATE labdata.api_key SET scopes = '{read,root}'",
        )
        .await
        .expect("a row that is no key");
    let text = format!("labdata.api_key.scopes of {}", key.id);
    assert_corrupt(keys.find_by_prefix(&key.prefix).await, &text);
}

#[tokio::test]
async fn the_database_itself_refuses_references_across_organizations() {
    let harness = Postgres::fresh().await;
    let (ours, theirs) = harness.two_organizations().await;
    let execution = harness.execution(theirs, at(0), None).await;
    harness.user(ours, "ada@example.org").await;
    let client = look_behind(harness.url()).await;
    let smuggle = format!(
        "INSERT INTO labdata.job_execution \
             (id, organization_id, job_id, origin, status, started_by, created_at) \
         SELECT gen_random_uuid(), organization_id, '{}', 'off_platform', 'running', id, now() \
         FROM labdata.app_user WHERE organization_id = '{ours}'",
        execution.job_id
    );
    let refused = client
        .batch_execute(&smuggle)
        .await
        .expect_err("another organization's job");
    let constraint = refused.as_db_error().and_then(|error| error.constraint());
    assert_eq!(constraint, Some("job_execution_job_id_fkey"));
}

fn upload(path: &str, attribution: Attribution) -> File {
    File {
        id: FileId::new(given::uuid()),
        path: FilePath::parse(path).expect("a path"),
        content_type: ContentType::default(),
        source_type: SourceType::ManualUpload,
        attribution,
        file_created_at: None,
        created_at: at(0),
        state: FileState::Confirmed {
            object: ObjectKey::new(given::uuid()),
            bytes: StoredBytes {
                size: 1,
                crc32c: Crc32c::new(7),
            },
            uploaded_at: at(0),
        },
    }
}

#[tokio::test]
async fn the_longest_paths_and_extensions_are_kept_found_and_told_apart() {
    let harness = Postgres::fresh().await;
    let lab = harness.organization("lab").await.id;
    let instrument = harness.instrument(lab, "reader").await;
    let attribution = Attribution::new(Some(instrument.id), None).expect("an instrument");
    let files: &dyn FileRepository = &*harness.subject();
    // Four bytes each, and hardly to be compressed: far beyond what an index entry can hold.
    let noise = |from: u32| -> String {
        (0..1000_u32)
            .filter_map(|n| char::from_u32(0x2_0000 + (from + n * 7919) % 40_000))
            .collect()
    };
    let (first, second) = (format!("x.{}", noise(1)), format!("x.{}{}", noise(1), "y"));
    for path in [&first, &second] {
        files
            .add(
                lab,
                &upload(path, attribution),
                StorageQuota::UNLIMITED,
                at(0),
            )
            .await
            .expect("a long path");
    }
    let again = files
        .add(
            lab,
            &upload(&first, attribution),
            StorageQuota::UNLIMITED,
            at(0),
        )
        .await;
    assert!(matches!(again, Err(AddFileError::PathTaken)), "{again:?}");

    let all = PageRequest {
        limit: None,
        after: None,
    };
    for path in [&first, &second] {
        let filter = FileFilter {
            extensions: ExtensionFilter::parse(path.strip_prefix("x").expect("an extension")),
            ..FileFilter::default()
        };
        let found = files.list(lab, &filter, all).await.expect("a list").items;
        let paths: Vec<&str> = found.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, [path.as_str()]);
    }
}
