//! Constructors of requests, and their numbers.

use serde_json::Value;

use crate::connection::{Request, Response};

/// Requests of an endpoint that reads.
pub(crate) const READS: usize = 800;
/// Requests of an endpoint that writes.
pub(crate) const WRITES: usize = 320;
/// Requests of an endpoint that changes definitions, or has a cap of 60 an hour.
pub(crate) const FEW: usize = 48;

/// The same request, several times.
pub(crate) fn same(count: usize, request: &Request) -> Vec<Request> {
    vec![request.clone(); count]
}

pub(crate) fn many(count: usize, request: impl Fn(usize) -> Request) -> Vec<Request> {
    (0..count).map(request).collect()
}

/// A request for each id.
pub(crate) fn each(ids: &[String], request: impl Fn(&str) -> Request) -> Vec<Request> {
    ids.iter().map(|id| request(id)).collect()
}

pub(crate) fn ids(responses: &[Response], pointer: &str) -> Vec<String> {
    responses
        .iter()
        .map(|response| response.text(pointer))
        .collect()
}

pub(crate) fn get(path: impl AsRef<str>) -> Request {
    Request::new("GET", path)
}

pub(crate) fn post(path: impl AsRef<str>, body: &Value) -> Request {
    Request::new("POST", path).json(body)
}

pub(crate) fn patch(path: impl AsRef<str>, body: &Value) -> Request {
    Request::new("PATCH", path).json(body)
}

pub(crate) fn delete(path: impl AsRef<str>) -> Request {
    Request::new("DELETE", path)
}
