use std::time::Duration;

use uuid::Uuid;

use super::*;
use crate::{files::ObjectKey, models::result::tests::result};

fn limits() -> TrainingLimits {
    TrainingLimits {
        time_limit: Duration::from_mins(10),
        cpus: 2,
        memory: 4 << 30,
        gpus: 0,
    }
}

fn exited(code: i32) -> ScriptEnd {
    ScriptEnd {
        reason: EndReason::Exited,
        exit: Some(RunExit::Code(code)),
        error_tail: String::new(),
    }
}

fn ended(end: &ScriptEnd) -> EndedTraining<'_> {
    EndedTraining {
        end,
        prepared: true,
        limits: limits(),
        problem: ProblemType::Multiclass,
        result: None,
        error: None,
        artifact: None,
    }
}

fn artifact(result: &TrainingResult) -> Artifact {
    Artifact {
        object: ObjectKey::new(Uuid::from_u128(1)),
        sha256: result.artifact.sha256,
        size: result.artifact.size,
    }
}

fn failure(training: EndedTraining<'_>) -> String {
    match training.decide() {
        Some(TrainingEnd::Failed(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_training_is_ready_with_a_result_and_the_artifact_that_it_names() {
    let (end, result) = (exited(0), result());
    let training = EndedTraining {
        artifact: Some(artifact(&result)),
        result: Some(result.clone()),
        ..ended(&end)
    };
    let ready = TrainingEnd::Ready(Box::new(result.clone()), artifact(&result));
    assert_eq!(training.decide(), Some(ready));
}

#[test]
fn exit_code_0_alone_is_no_model() {
    let (end, result) = (exited(0), result());
    let other = Artifact {
        size: result.artifact.size + 1,
        ..artifact(&result)
    };
    for (training, what) in [
        (ended(&end), "no result"),
        (
            EndedTraining {
                result: Some(result.clone()),
                ..ended(&end)
            },
            "not stored",
        ),
        (
            EndedTraining {
                result: Some(result.clone()),
                artifact: Some(other),
                ..ended(&end)
            },
            "not the one",
        ),
        (
            EndedTraining {
                artifact: Some(artifact(&result)),
                result: Some(result.clone()),
                problem: ProblemType::Binary,
                ..ended(&end)
            },
            "another problem type",
        ),
    ] {
        let error = failure(training);
        assert!(error.contains(what), "{error}");
    }
}

#[test]
fn a_result_of_a_process_that_failed_does_not_count() {
    let (end, result) = (exited(20), result());
    let error = failure(EndedTraining {
        artifact: Some(artifact(&result)),
        result: Some(result),
        ..ended(&end)
    });
    assert_eq!(error, "the training ended with exit code 20");
}

fn reported(code: &str, message: &str) -> TrainingError {
    TrainingError {
        code: code.to_owned(),
        exit_code: 10,
        message: message.to_owned(),
    }
}

#[test]
fn the_trainer_says_what_is_wrong_with_the_data() {
    let end = exited(10);
    let message = "The class \"barbera\" of \"target\" has only 4 rows.";
    let error = failure(EndedTraining {
        error: Some(reported("too_few_rows_of_class", message)),
        ..ended(&end)
    });
    assert_eq!(error, message);
}

#[test]
fn limits_are_named_with_the_settings_that_raise_them() {
    let end = exited(14);
    let memory = failure(EndedTraining {
        error: Some(reported("out_of_memory", "x")),
        ..ended(&end)
    });
    let by_kernel = ScriptEnd {
        reason: EndReason::Memory,
        ..exited(0)
    };
    assert_eq!(memory, failure(ended(&by_kernel)));
    assert!(
        memory.contains("4096 MiB") && memory.contains("LABDATA_TRAINING_MEMORY"),
        "{memory}"
    );
    let time = failure(EndedTraining {
        error: Some(reported("time_limit_too_short", "x")),
        ..ended(&end)
    });
    assert!(
        time.contains("600 s") && time.contains("LABDATA_TRAINING_TIME_LIMIT"),
        "{time}"
    );
    let late = ScriptEnd {
        reason: EndReason::TimedOut,
        ..exited(0)
    };
    let late = failure(ended(&late));
    assert!(late.contains("1500 s") && late.contains("600 s"), "{late}");
}

#[test]
fn dependencies_that_cannot_be_had_are_told_from_the_training() {
    let end = ScriptEnd {
        reason: EndReason::PreparationFailed,
        exit: Some(RunExit::Code(1)),
        error_tail: "Connection refused".to_owned(),
    };
    let error = failure(EndedTraining {
        prepared: false,
        ..ended(&end)
    });
    assert!(
        error.contains("package index") && error.ends_with(":\nConnection refused"),
        "{error}"
    );
}

#[test]
fn a_kill_without_a_report_points_to_memory() {
    let end = ScriptEnd {
        exit: Some(RunExit::Signal(9)),
        ..exited(0)
    };
    assert!(failure(ended(&end)).contains("ran out of memory"));
}

#[test]
fn a_message_of_the_trainer_is_bounded_and_printable() {
    let end = exited(20);
    let error = failure(EndedTraining {
        error: Some(reported(
            "internal",
            &format!("a\0b\u{1b}[31m\tc{}", "x".repeat(100_000)),
        )),
        ..ended(&end)
    });
    assert!(error.starts_with("a\u{fffd}b\u{fffd}[31m c"), "{error:.40}");
    assert_eq!(error.chars().count(), 2_001);
}

#[test]
fn a_lost_training_may_be_tried_again() {
    assert_eq!(ended(&ScriptEnd::lost()).decide(), None);
}
