//! Jobs: their scripts, names and backfills.

use labdata_application::{
    executions::start_execution::ensure_job,
    files::begin_upload::begin_upload,
    instruments::create_instrument::{CreateInstrument, create_instrument},
    jobs::{
        check_script::CheckedScript,
        create_job::create_job,
        update_job::{CodeChange, UpdateJob, update_job},
    },
    work::backfill::{BackfillJob, backfill_job},
};
use labdata_domain::{
    instruments::READ_JOB_NAME,
    jobs::{Edit, Job, JobName, PublishStatus},
    people::scope::Scope,
    refusal::ErrorCode,
    triggers::TriggerChange,
};

use crate::{files, lab::Lab, work::job_with};

#[tokio::test]
async fn the_same_text_is_no_version_of_a_script() {
    let lab = Lab::new().await;
    let author = lab.actor(&Scope::ALL);
    let script = CheckedScript::check("print()").await;
    let job = job_with("job", script, TriggerChange::default());
    let job = create_job(&lab.services, &author, job).await.unwrap();
    let publish = UpdateJob {
        publish_status: Some(PublishStatus::Published),
        ..UpdateJob::default()
    };
    let published = update_job(&lab.services, &author, job.id, publish).await;
    let edit = Edit {
        old: "()".to_owned(),
        new: "()".to_owned(),
    };
    for code in [
        CodeChange::Replace("\u{feff}print()".to_owned()),
        CodeChange::Edit(vec![edit]),
    ] {
        let change = UpdateJob {
            code: Some(code),
            ..UpdateJob::default()
        };
        let changed = update_job(&lab.services, &author, job.id, change).await;
        assert_eq!(&changed.unwrap(), published.as_ref().unwrap());
    }
}

#[tokio::test]
async fn only_the_job_that_reads_files_has_its_name() {
    let lab = Lab::new().await;
    let author = lab.actor(&Scope::ALL);
    let script = CheckedScript::check("print()").await;
    let named = |name| job_with(name, script.clone(), TriggerChange::default());
    let refused = create_job(&lab.services, &author, named(READ_JOB_NAME)).await;
    assert_eq!(refused.unwrap_err().code(), Some(ErrorCode::InvalidName));
    let job = create_job(&lab.services, &author, named("job"))
        .await
        .unwrap();
    let rename = || UpdateJob {
        name: Some(READ_JOB_NAME.to_owned()),
        ..UpdateJob::default()
    };
    let refused = update_job(&lab.services, &author, job.id, rename()).await;
    assert_eq!(refused.unwrap_err().code(), Some(ErrorCode::InvalidName));
    let by_name = ensure_job(&lab.services, &author, Some(READ_JOB_NAME)).await;
    assert_eq!(by_name.unwrap_err().code(), Some(ErrorCode::InvalidName));
    // One that took the name before it was reserved keeps the laboratory from setting a reader.
    let taken = Job::new(job.id, JobName::reader(), lab.services.clock.now());
    let organization = author.organization;
    let taken = Job {
        version_number: job.version_number,
        ..taken
    };
    let renamed = lab
        .services
        .jobs
        .update(organization, job.revision, &taken, None);
    assert!(renamed.await.unwrap());
    let instrument = CreateInstrument {
        name: "plate reader".to_owned(),
        description: None,
        instrument_type: None,
        reader: Some("auto".to_owned()),
        timezone: None,
    };
    let refused = create_instrument(&lab.services, &author, instrument).await;
    assert_eq!(refused.unwrap_err().code(), Some(ErrorCode::NameTaken));
}

#[tokio::test]
async fn a_backfill_names_the_file_that_it_cannot_take() {
    let lab = Lab::new().await;
    let author = lab.actor(&Scope::ALL);
    let script = CheckedScript::check("print()").await;
    let job = job_with("job", script, TriggerChange::default());
    let job = create_job(&lab.services, &author, job).await.unwrap();
    let wanted = files::wanted(files::instrument(&lab).await);
    let pending = begin_upload(&lab.services, &author, wanted).await.unwrap();
    let unknown = "0191d5a4-0000-7000-8000-000000000000".to_owned();
    for (file, code) in [
        (pending.file.id.to_string(), ErrorCode::FileNotConfirmed),
        (unknown, ErrorCode::NotFound),
    ] {
        let command = BackfillJob {
            files: Some(vec![file.clone()]),
            ..BackfillJob::default()
        };
        let refused = backfill_job(&lab.services, &author, job.id, command).await;
        let refused = refused.unwrap_err();
        assert_eq!(refused.code(), Some(code));
        assert!(refused.to_string().contains(&file), "{refused}");
    }
}
