//! Runs that follow from events and ticks.

use serde_json::json;
use time::{Duration, macros::datetime};
use uuid::Uuid;

use super::*;
use crate::{
    executions::FinalStatus,
    files::{
        Attribution, ContentType, Crc32c, FilePath, FileState, ObjectKey, SourceType, StoredBytes,
    },
    ids::TriggerId,
    jobs::Widget,
    triggers::{Category, event::EventKind},
};

const NOW: OffsetDateTime = OffsetDateTime::UNIX_EPOCH;
const NEWEST: TriggeredVersion = TriggeredVersion::Newest;

fn id<T: From<Uuid>>(number: u128) -> T {
    Uuid::from_u128(number).into()
}

fn candidate(category: Category, conditions: &Value) -> Candidate {
    let definition = |name: &str, default: Option<Value>| ParameterDefinition {
        widget_type: Widget::Text,
        parameter_name: name.to_owned(),
        label: None,
        model_source: None,
        min: None,
        max: None,
        step: None,
        file_id: None,
        file_id_parameter: None,
        required: true,
        default,
    };
    Candidate {
        job: id(1),
        script_version: 4,
        published_version: None,
        parameters: vec![definition("a", Some(json!(1))), definition("b", None)],
        trigger: Trigger {
            id: id::<TriggerId>(2),
            category,
            instrument: None,
            conditions: conditions.as_object().unwrap().clone(),
            set_by: id(3),
            armed_at: OffsetDateTime::UNIX_EPOCH,
        },
    }
}

fn file(instrument: Option<InstrumentId>) -> Occurrence {
    Occurrence::File {
        id: id(10),
        facts: FileFacts {
            path: FilePath::parse("plate.csv").unwrap(),
            source: SourceType::ManualUpload,
            size_kilobytes: 1,
            has_reader: false,
        },
        instrument,
        made_by: None,
    }
}

fn ended(outputs: Vec<FileId>) -> Occurrence {
    Occurrence::Ended {
        id: id(11),
        job: id(12),
        status: "completed",
        outputs,
    }
}

fn runs(response: Response) -> Vec<Firing> {
    match response {
        Response::Runs(runs) => runs,
        Response::Loop | Response::Unpublished => panic!("no run starts"),
    }
}

#[test]
fn a_matching_file_is_one_run_with_the_defaults_in_the_name_of_who_set_the_trigger() {
    let candidate = candidate(Category::FileUploaded, &json!({}));
    let expected = Firing {
        job: id(1),
        script_version: 4,
        parameters: json!({"a": 1}).as_object().unwrap().clone(),
        file: Some(id(10)),
        source: None,
        started_by: id(3),
        trigger: id(2),
    };
    assert_eq!(
        runs(candidate.respond(&file(None), &[], NEWEST)),
        [expected]
    );
}

#[test]
fn a_trigger_of_an_instrument_waits_for_its_files_only() {
    let mut candidate = candidate(Category::FileUploaded, &json!({}));
    candidate.trigger.instrument = Some(id(20));
    for (instrument, count) in [(None, 0), (Some(id(21)), 0), (Some(id(20)), 1)] {
        let firings = runs(candidate.respond(&file(instrument), &[], NEWEST));
        assert_eq!(firings.len(), count, "{instrument:?}");
    }
}

#[test]
fn each_output_of_a_finished_execution_is_a_run_and_none_is_one_without_file() {
    let source: JobId = id(12);
    let candidate = candidate(Category::JobCompleted, &json!({"source_job_id": source}));
    for (outputs, expected) in [
        (vec![], vec![None]),
        (vec![id(30), id(31)], vec![Some(id(30)), Some(id(31))]),
    ] {
        let firings = runs(candidate.respond(&ended(outputs), &[id(12)], NEWEST));
        let files: Vec<_> = firings.iter().map(|firing| firing.file).collect();
        assert_eq!(files, expected);
        assert!(firings.iter().all(|firing| firing.source == Some(id(11))));
    }
}

#[test]
fn what_a_trigger_does_not_wait_for_starts_nothing() {
    let schedule = candidate(Category::Schedule, &json!({"cron": "0 9 * * *"}));
    let other = candidate(
        Category::JobCompleted,
        &json!({"source_job_id": Uuid::nil()}),
    );
    let files = candidate(Category::FileUploaded, &json!({"min_size_kb": 2}));
    for candidate in [&schedule, &other, &files] {
        for occurrence in [file(None), ended(vec![])] {
            assert_eq!(runs(candidate.respond(&occurrence, &[id(1)], NEWEST)), []);
        }
    }
    for candidate in [&other, &files] {
        let tick = candidate.tick(OffsetDateTime::UNIX_EPOCH, NEWEST);
        assert_eq!((tick.firing, tick.next_at), (None, None));
    }
}

#[test]
fn a_tick_is_one_run_and_moves_on_to_the_next_tick_after_now() {
    let schedule = candidate(Category::Schedule, &json!({"cron": "0 9 * * *"}));
    let late = datetime!(2026-01-11 12:00 UTC);
    let expected = Firing {
        job: id(1),
        script_version: 4,
        parameters: json!({"a": 1}).as_object().unwrap().clone(),
        file: None,
        source: None,
        started_by: id(3),
        trigger: id(2),
    };
    let tick = Tick {
        firing: Some(expected),
        next_at: Some(datetime!(2026-01-12 09:00 UTC)),
    };
    assert_eq!(schedule.tick(late, NEWEST), tick);
}

#[test]
fn outputs_are_in_the_order_of_their_upload() {
    let execution = Execution::start(id(11), id(12), "source".to_owned(), None, NOW);
    let execution = execution.close(FinalStatus::Failed, NOW).unwrap();
    let outputs = vec![
        (NOW + Duration::seconds(2), id(30)),
        (NOW, id(32)),
        (NOW, id(31)),
    ];
    let expected = Occurrence::Ended {
        id: id(11),
        job: id(12),
        status: "failed",
        outputs: vec![id(31), id(32), id(30)],
    };
    assert_eq!(Occurrence::end(&execution, outputs), expected);
    assert_eq!(expected.source(), Some(id(11)));
}

#[test]
fn a_file_is_an_upload_once_its_bytes_are_confirmed() {
    let object = ObjectKey::new(Uuid::from_u128(1));
    let attribution = Attribution::new(Some(id(20)), Some(id(11))).unwrap();
    let awaiting = File {
        id: id(10),
        path: FilePath::parse("plate.csv").unwrap(),
        content_type: ContentType::substitute(None),
        source_type: SourceType::JobArtifact,
        attribution,
        state: FileState::AwaitingBytes {
            object,
            expires_at: NOW,
            received: None,
        },
        file_created_at: None,
        created_at: NOW,
    };
    assert_eq!(Occurrence::upload(&awaiting, |_| false), None);
    let confirmed = File {
        state: FileState::Confirmed {
            object,
            bytes: StoredBytes {
                size: 2_048,
                crc32c: Crc32c::new(1),
            },
            uploaded_at: NOW,
        },
        ..awaiting
    };
    let expected = Occurrence::File {
        id: id(10),
        facts: FileFacts {
            path: FilePath::parse("plate.csv").unwrap(),
            source: SourceType::JobArtifact,
            size_kilobytes: confirmed.size_kilobytes().unwrap(),
            has_reader: false,
        },
        instrument: Some(id(20)),
        made_by: Some(id(11)),
    };
    assert_eq!(expected.source(), Some(id(11)));
    assert_eq!(Occurrence::upload(&confirmed, |_| false), Some(expected));
}

#[test]
fn every_candidate_responds_to_an_event() {
    let candidates = [
        candidate(Category::FileUploaded, &json!({})),
        candidate(Category::FileUploaded, &json!({"min_size_kb": 2})),
    ];
    let event = Event {
        id: id(40),
        organization: id(41),
        kind: EventKind::FileUploaded(id(10)),
        created_at: NOW,
    };
    let event = TriggerEvent {
        event: &event,
        occurrence: &file(None),
        candidates: &candidates,
        chain: &[],
    };
    let responses: Vec<usize> = event
        .responses(NEWEST)
        .map(|(_, it)| runs(it).len())
        .collect();
    assert_eq!(responses, [1, 0]);
}

#[test]
fn a_firing_becomes_a_run_that_no_key_asked_for() {
    let firing =
        runs(candidate(Category::FileUploaded, &json!({})).respond(&file(None), &[], NEWEST));
    let run = firing.into_iter().next().unwrap().into_run(id(50), NOW);
    let expected = NewRun {
        id: id(50),
        job: id(1),
        script_version: 4,
        trigger_file: Some(id(10)),
        parameters: json!({"a": 1}).as_object().unwrap().clone(),
        source: None,
        started_by: id(3),
        api_key: None,
        trigger: Some(id(2)),
        scopes: crate::people::run_key::most_run_scopes(),
        queued_at: NOW,
    };
    assert_eq!(run, expected);
}

#[test]
fn a_job_never_follows_from_itself_and_chains_end() {
    let candidate = candidate(Category::FileUploaded, &json!({}));
    let others: Vec<JobId> = (100..).take(MAX_CHAIN - 1).map(id).collect();
    assert_eq!(
        runs(candidate.respond(&file(None), &others, NEWEST)).len(),
        1
    );
    let with_itself = [&others[..3], &[id(1)]].concat();
    assert_eq!(
        candidate.respond(&file(None), &with_itself, NEWEST),
        Response::Loop
    );
    let too_long = [&others[..], &[id(99)]].concat();
    assert_eq!(
        candidate.respond(&file(None), &too_long, NEWEST),
        Response::Loop
    );
}

#[test]
fn where_only_published_versions_run_a_draft_starts_nothing_and_an_older_published_one_does() {
    let published = TriggeredVersion::Published;
    let conditions = json!({"cron": "0 9 * * *"});
    let mut on_file = candidate(Category::FileUploaded, &json!({}));
    let mut schedule = candidate(Category::Schedule, &conditions);
    let response = on_file.respond(&file(None), &[], published);
    assert_eq!(response, Response::Unpublished);
    let tick = schedule.tick(NOW, published);
    assert_eq!(tick.firing, None);
    assert!(tick.next_at.is_some());

    on_file.published_version = Some(3);
    schedule.published_version = Some(3);
    let fired = runs(on_file.respond(&file(None), &[], published));
    let ticked = schedule.tick(NOW, published).firing;
    let versions = fired.into_iter().chain(ticked).map(|it| it.script_version);
    assert_eq!(versions.collect::<Vec<_>>(), [3, 3]);
}
