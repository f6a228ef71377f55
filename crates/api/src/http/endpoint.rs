//! An endpoint: its route, its scope, its documentation, from one source.

use std::sync::Arc;

use actix_web::{FromRequest, Handler, HttpRequest, Responder, Route, http::Method, web};
use labdata_operations::{Access, Operation, RequiredScope, SCHEMAS};
use labdata_request_body::{Definitions, Shape};
use utoipa::{
    __dev::{SchemaReferences, Tags},
    Path,
    openapi::{
        RefOr, Schema,
        path::{HttpMethod, Operation as DocumentedOperation},
    },
};

use super::{
    body::Body,
    call::Call,
    once,
    operation::{components, parameters, request_body},
    serve::serve,
};

/// One method of one path.
pub struct Endpoint {
    /// The method. GET responds to HEAD as well.
    pub method: Method,
    /// The path's pattern, such as `/api/v1/api-keys/{id}`.
    pub path: String,
    /// What it asks of its caller.
    pub access: Access,
    /// True if the endpoint honors `Idempotency-Key`.
    pub(super) is_idempotent: bool,
    pub(super) documentation: Option<Documentation>,
    attach: Box<dyn Fn(Route) -> Route>,
}

/// Description of an endpoint in the OpenAPI document.
pub(super) struct Documentation {
    pub(super) method: HttpMethod,
    pub(super) operation: DocumentedOperation,
    /// Schemas that the request refers to.
    pub(super) request_schemas: Vec<(String, RefOr<Schema>)>,
    /// Schemas that the responses refer to.
    pub(super) response_schemas: Vec<(String, RefOr<Schema>)>,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} ({:?})", self.method, self.path, self.access)
    }
}

/// What an endpoint whose call needs that scope asks of its caller.
fn access<S: RequiredScope>() -> Access {
    S::SCOPE.map_or(Access::AnyKey, Access::Scope)
}

impl Endpoint {
    /// An endpoint whose handler takes a [`Call`]: the scope and the kind of body come from its
    /// type, method and path from its documentation `D`. Usually made by
    /// [`endpoint!`](crate::endpoint).
    pub fn scoped<D, H, S, B, Q, P>(handler: H) -> Self
    where
        D: Path + SchemaReferences + Tags<'static>,
        S: RequiredScope,
        B: Body,
        Q: Shape + 'static,
        P: Shape + 'static,
        H: Handler<(Call<S, B, Q, P>,)>,
        H::Output: Responder + 'static,
    {
        Self {
            access: access::<S>(),
            ..Self::open::<D, _, _>(handler).reading::<B, Q, P>()
        }
    }

    /// As [`Self::scoped`], for one that creates something: a request that bears an
    /// `Idempotency-Key` has its effect once, and gets the same response when it is sent again. The
    /// handler begins the effect with [`Call::begin`].
    pub fn creating<D, H, S, B, Q, P>(handler: H) -> Self
    where
        D: Path + SchemaReferences + Tags<'static>,
        S: RequiredScope,
        B: Body,
        Q: Shape + 'static,
        P: Shape + 'static,
        H: Handler<(Call<S, B, Q, P>,)>,
        H::Output: Responder + 'static,
    {
        let response = move |request: HttpRequest, call: Call<S, B, Q, P>| {
            let handler = handler.clone();
            once::respond(request, call, async move |call| handler.call((call,)).await)
        };
        Self {
            access: access::<S>(),
            is_idempotent: true,
            ..Self::open::<D, _, (HttpRequest, Call<S, B, Q, P>)>(response).reading::<B, Q, P>()
        }
    }

    /// Documents the request as its types declare it.
    fn reading<B: Body, Q: Shape, P: Shape>(mut self) -> Self {
        if let Some(Documentation {
            operation,
            request_schemas,
            ..
        }) = &mut self.documentation
        {
            let mut definitions = Definitions::new(SCHEMAS);
            let parameters = parameters::<P, Q>(&mut definitions);
            if !parameters.is_empty() {
                operation.parameters = Some(parameters);
            }
            let body = B::describe(&mut definitions);
            operation.request_body = body.map(|body| request_body(body).into());
            request_schemas.extend(components(definitions));
        }
        self
    }

    /// A documented endpoint that asks for no key.
    pub fn open<D, H, A>(handler: H) -> Self
    where
        D: Path + SchemaReferences + Tags<'static>,
        A: FromRequest + 'static,
        H: Handler<A>,
        H::Output: Responder + 'static,
    {
        let method = D::methods().into_iter().next().unwrap_or(HttpMethod::Get);
        let mut response_schemas = Vec::new();
        D::schemas(&mut response_schemas);
        let mut operation = D::operation();
        operation.tags = Some(D::tags().into_iter().map(str::to_owned).collect());
        Self {
            documentation: Some(Documentation {
                method: method.clone(),
                operation,
                request_schemas: Vec::new(),
                response_schemas,
            }),
            ..Self::hidden(standard(&method), D::path(), handler)
        }
    }

    /// The endpoint of a declared operation.
    #[must_use]
    pub fn of(operation: Operation) -> Self {
        let (access, method, path) = described(&operation);
        let operation = Arc::new(operation);
        Self {
            access,
            ..Self::hidden(method, path, move |request, payload| {
                serve(Arc::clone(&operation), request, payload)
            })
        }
    }

    /// The endpoint of an operation that is served by hand.
    #[must_use]
    pub fn by_hand<H, A>(operation: &Operation, handler: H) -> Self
    where
        A: FromRequest + 'static,
        H: Handler<A>,
        H::Output: Responder + 'static,
    {
        let (access, method, path) = described(operation);
        Self {
            access,
            ..Self::hidden(method, path, handler)
        }
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
            once::respond(request, call, async move |call| handler.call((call,)).await)
        };
        Self::by_hand::<_, (HttpRequest, Call<S, B, Q, P>)>(operation, response)
    }

    /// An endpoint that asks for no key and is no part of the OpenAPI document.
    pub fn hidden<H, A>(method: Method, path: impl Into<String>, handler: H) -> Self
    where
        A: FromRequest + 'static,
        H: Handler<A>,
        H::Output: Responder + 'static,
    {
        Self {
            method,
            path: path.into(),
            access: Access::Open,
            is_idempotent: false,
            documentation: None,
            attach: Box::new(move |route| route.to(handler.clone())),
        }
    }

    /// The methods that it responds.
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

/// Access, method and path of an operation.
fn described(operation: &Operation) -> (Access, Method, &'static str) {
    let method = match operation.about.method {
        labdata_operations::Method::Get => Method::GET,
        labdata_operations::Method::Post => Method::POST,
        labdata_operations::Method::Put => Method::PUT,
        labdata_operations::Method::Patch => Method::PATCH,
        labdata_operations::Method::Delete => Method::DELETE,
    };
    (operation.access, method, operation.about.path)
}

fn standard(method: &HttpMethod) -> Method {
    match method {
        HttpMethod::Post => Method::POST,
        HttpMethod::Put => Method::PUT,
        HttpMethod::Patch => Method::PATCH,
        HttpMethod::Delete => Method::DELETE,
        _ => Method::GET,
    }
}

/// The endpoint of a module that has a documented `handle`: `endpoint!(api_keys::create)`, or
/// `endpoint!(open health)` for one that asks for no key, or `endpoint!(creating jobs::create)` for a
/// POST that honors `Idempotency-Key`.
#[macro_export]
macro_rules! endpoint {
    (open $($module:ident)::+) => {
        $crate::http::endpoint::Endpoint::open::<$($module)::+::__path_handle, _, _>(
            $($module)::+::handle,
        )
    };
    (creating $($module:ident)::+) => {
        $crate::http::endpoint::Endpoint::creating::<$($module)::+::__path_handle, _, _, _, _, _>(
            $($module)::+::handle,
        )
    };
    ($($module:ident)::+) => {
        $crate::http::endpoint::Endpoint::scoped::<$($module)::+::__path_handle, _, _, _, _, _>(
            $($module)::+::handle,
        )
    };
}
