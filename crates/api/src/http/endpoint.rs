//! An endpoint: one method of one path, and its handler.

use std::{rc::Rc, sync::Arc};

use actix_web::{
    FromRequest, Handler, HttpRequest, HttpResponse, Responder, ResponseError, Route, http::Method,
    web,
};
use labdata_operations::{Operation, RequiredScope};
use labdata_request_body::Shape;

use super::{body::Body, call::Call, once::Once, serve::serve};

/// One method of one path.
pub struct Endpoint {
    /// The method. GET responds to HEAD as well.
    pub method: Method,
    /// The path's pattern, such as `/api/v1/api-keys/{id}`.
    pub path: String,
    attach: Box<dyn Fn(Route) -> Route>,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

impl Endpoint {
    /// The endpoint of an operation that runs.
    #[must_use]
    pub fn of(operation: Operation) -> Self {
        let (method, path) = (method_of(&operation), operation.about.path);
        let operation = Arc::new(operation);
        Self::hidden(method, path, move |request, payload| {
            serve(Arc::clone(&operation), request, payload)
        })
    }

    /// The endpoint of an operation that is served by hand.
    #[must_use]
    pub fn by_hand<H, A>(operation: &Operation, handler: H) -> Self
    where
        A: FromRequest + 'static,
        H: Handler<A>,
        H::Output: Responder + 'static,
    {
        Self::hidden(method_of(operation), operation.about.path, handler)
    }

    /// As [`Self::by_hand`], for one that creates something: a request that bears an `Idempotency-Key`
    /// has its effect once. The handler begins the effect with [`Call::begin`].
    #[must_use]
    pub fn creating_by_hand<H, S, B, Q, P>(operation: &Operation, handler: H) -> Self
    where
        S: RequiredScope,
        B: Body,
        Q: Shape + 'static,
        P: Shape + 'static,
        H: Handler<(Call<S, B, Q, P>,)>,
        H::Output: Responder + 'static,
    {
        let response = move |request: HttpRequest, call: Call<S, B, Q, P>| {
            let handler = handler.clone();
            run_once(request, call, async move |call| handler.call((call,)).await)
        };
        Self::by_hand::<_, (HttpRequest, Call<S, B, Q, P>)>(operation, response)
    }

    /// An endpoint that is no operation: it asks for no key, and no document shows it.
    pub fn hidden<H, A>(method: Method, path: impl Into<String>, handler: H) -> Self
    where
        A: FromRequest + 'static,
        H: Handler<A>,
        H::Output: Responder + 'static,
    {
        Self {
            method,
            path: path.into(),
            attach: Box::new(move |route| route.to(handler.clone())),
        }
    }

    /// The methods that it responds to.
    #[must_use]
    pub fn methods(&self) -> Vec<Method> {
        match self.method {
            // RFC 9110 requires HEAD wherever GET exists; the framework drops its body.
            Method::GET => vec![Method::GET, Method::HEAD],
            ref method => vec![method.clone()],
        }
    }

    pub(super) fn routes(&self) -> impl Iterator<Item = Route> {
        self.methods()
            .into_iter()
            .map(|method| (self.attach)(web::method(method)))
    }
}

fn method_of(operation: &Operation) -> Method {
    match operation.about.method {
        labdata_operations::Method::Get => Method::GET,
        labdata_operations::Method::Post => Method::POST,
        labdata_operations::Method::Put => Method::PUT,
        labdata_operations::Method::Patch => Method::PATCH,
        labdata_operations::Method::Delete => Method::DELETE,
    }
}

/// Calls a handler that begins its effect with [`Call::begin`], and ends its unit of work.
async fn run_once<R: Responder, S, B, Q, P>(
    request: HttpRequest,
    mut call: Call<S, B, Q, P>,
    handler: impl AsyncFnOnce(Call<S, B, Q, P>) -> R,
) -> HttpResponse {
    let once = call.body_sha256.map(|sha256| Once::of(&request, sha256));
    let once = match once.transpose() {
        Ok(once) => once.map(Rc::new),
        Err(error) => return error.error_response(),
    };
    // Shared with the handler, which begins the unit of work when its slow preparation is done.
    call.once.clone_from(&once);
    let output = handler(call).await;
    let response = output.respond_to(&request).map_into_boxed_body();
    match once {
        Some(once) => once.end(response).await,
        None => response,
    }
}
