//! Assertions on the errors of ports.

use std::fmt::Debug;

use labdata_domain::conflict::Conflict;
use labdata_ports::PortError;

/// Fails unless the result is [`PortError::NotFound`].
#[track_caller]
pub fn assert_not_found<T: Debug>(result: Result<T, PortError>) {
    match result {
        Err(PortError::NotFound(_)) => {}
        other => panic!("expected NotFound, got {other:?}"),
    }
}

/// Fails unless the result is [`PortError::Conflict`].
#[track_caller]
pub fn assert_conflict<T: Debug>(result: Result<T, PortError>) {
    match result {
        Err(PortError::Conflict(_)) => {}
        other => panic!("expected Conflict, got {other:?}"),
    }
}

/// Fails unless the result is exactly this conflict.
#[track_caller]
pub fn assert_conflict_is<T: Debug>(result: Result<T, PortError>, expected: &Conflict) {
    match result {
        Err(PortError::Conflict(conflict)) => assert_eq!(conflict, *expected),
        other => panic!("expected Conflict, got {other:?}"),
    }
}

/// Fails unless exactly one of several concurrent calls succeeded and the rest conflicted.
#[track_caller]
pub fn assert_one_winner<T: Debug>(results: Vec<Result<T, PortError>>) -> T {
    let (mut won, lost): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
    lost.into_iter().for_each(assert_conflict);
    assert_eq!(won.len(), 1, "exactly one call wins");
    won.remove(0).unwrap()
}

/// Fails unless all concurrent calls succeeded with the same response, and returns it.
#[track_caller]
pub fn assert_unanimous<T: Debug + PartialEq>(results: Vec<Result<T, PortError>>) -> T {
    let mut responses: Vec<T> = results.into_iter().map(Result::unwrap).collect();
    let first = responses.remove(0);
    for other in &responses {
        assert_eq!(*other, first, "racing calls agree");
    }
    first
}

/// The same JSON, with numbers by their value: a store may render the float 2.0 as `2`.
pub(crate) fn by_value(value: impl Into<serde_json::Value>) -> serde_json::Value {
    use serde_json::Value;
    match value.into() {
        Value::Number(number) => number.as_f64().map_or(Value::Number(number), Value::from),
        Value::Array(list) => list.into_iter().map(by_value).collect(),
        other => other,
    }
}
