//! A call of an operation: who calls, with what. Its type states what the operation requires.

use std::{marker::PhantomData, sync::Arc};

use bytes::Bytes;
use labdata_application::Services;
use labdata_domain::people::actor::Actor;
use labdata_request_body::{FieldPath, Problems, Shape, ShapeProblem};
use serde_json::{Map, Value};

use crate::{AnyScope, BaseUrl, Body, NoBody, Platform};

/// A request whose caller is known and may call the operation.
#[derive(Debug)]
pub struct Request {
    /// The server's parts.
    pub platform: Arc<Platform>,
    /// The caller.
    pub actor: Actor,
    /// URL by which the caller reaches the server.
    pub base_url: BaseUrl,
    /// The path's variable parts as an object of texts.
    pub path: Value,
    /// The query string as an object of texts.
    pub query: Value,
    /// The body as it was received.
    pub body: Bytes,
}

/// The one argument of an operation: `Call<Scope, Body, Query, Path>`.
#[derive(Debug)]
pub struct Call<S = AnyScope, B: Body = NoBody, Q = (), P = ()> {
    /// The services, for use cases.
    pub services: Arc<Services>,
    /// The server's other parts.
    pub platform: Arc<Platform>,
    /// The caller.
    pub actor: Actor,
    /// URL by which the caller reaches the server.
    pub base_url: BaseUrl,
    /// The body.
    pub body: B::Value,
    /// The query string.
    pub query: Q,
    /// The path's variable parts.
    pub path: P,
    scope: PhantomData<fn() -> S>,
}

impl<S, B: Body, Q: Shape, P: Shape> Call<S, B, Q, P> {
    /// Reads path, query string and body.
    ///
    /// # Errors
    /// All their problems.
    pub fn read(request: Request) -> Result<Self, Vec<ShapeProblem>> {
        let problems = Problems::default();
        let path = P::read(request.path.clone(), &FieldPath::root("path", &problems));
        let query = Q::read(request.query.clone(), &FieldPath::root("query", &problems));
        let body = B::read(&request.body, &FieldPath::root("body", &problems));
        match (path, query, body) {
            (Some(path), Some(query), Some(body)) if problems.is_empty() => Ok(Self {
                services: Arc::clone(&request.platform.services),
                platform: request.platform,
                actor: request.actor,
                base_url: request.base_url,
                body,
                query,
                path,
                scope: PhantomData,
            }),
            _ => Err(problems.explain(&Map::from_iter([
                ("path".to_owned(), request.path),
                ("query".to_owned(), request.query),
                ("body".to_owned(), B::document(&request.body)),
            ]))),
        }
    }
}
