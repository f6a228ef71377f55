//! A call of an endpoint: who calls, with what. Its type says what the endpoint asks for.

use std::{marker::PhantomData, rc::Rc};

use actix_web::{FromRequest, HttpMessage as _, HttpRequest, dev::Payload, web::Data};
use futures::future::LocalBoxFuture;
use labdata_application::{Error, Services, slots::Work};
use labdata_domain::people::{actor::Actor, credential::SecretNotReplayed, scope::Scope};
use labdata_operations::RequiredScope;
use labdata_request_body::{FieldPath, Problems, Shape};
use serde_json::Map;

use super::{
    ApiError,
    accept::Accepted,
    body::{Body, JsonBody, NoBody, OPEN_BODY_LIMIT, drain, receive_json_within},
    credential::Credential,
    observe,
    once::Once,
    request::{IDEMPOTENCY_KEY, app_of, path_document, query_document},
};
use crate::app::App;

/// The one argument of a handler: `Call<Scope, Body, Query, Path>`.
///
/// It is made in this order, and the first step that fails is the response: the key (401), its scope
/// (403), the body's Content-Type (415), its size (413); then path, query string and body are read,
/// and all their problems make one 422.
pub struct Call<S, B = NoBody, Q = (), P = ()> {
    /// The server's parts.
    pub app: Data<App>,
    /// The caller.
    pub actor: Actor,
    /// The body.
    pub body: B,
    /// The query string.
    pub query: Q,
    /// The path's variable parts.
    pub path: P,
    /// The forms of a result that the client accepts.
    pub accepted: Accepted,
    /// The request's head.
    pub(crate) request: HttpRequest,
    /// The SHA-256 of the body, where the request bears an idempotency key.
    pub(super) body_sha256: Option<[u8; 32]>,
    /// Set where the endpoint honors the key.
    pub(super) once: Option<Rc<Once>>,
    scope: PhantomData<S>,
}

impl<S, B, Q, P> Call<S, B, Q, P> {
    /// The services, for use cases.
    #[must_use]
    pub fn services(&self) -> &Services {
        &self.app.services
    }

    /// Begins the effect of an endpoint that honors `Idempotency-Key`, and returns the ports for it. With
    /// a key they are those of one transaction, which also stores the response when the handler returns;
    /// it holds a connection to the database, so slow preparation comes before. Without a key they are
    /// [`Self::services`].
    ///
    /// # Errors
    /// [`ApiError::Replayed`] where the request has a response already; the refusal of a key that another
    /// body has used.
    pub async fn begin(&self) -> Result<&Services, ApiError> {
        match &self.once {
            Some(once) => Ok(once.begin(self.services(), &self.actor).await?),
            None => Ok(self.services()),
        }
    }

    /// The services for a request that changes nothing. Its response is not stored under an idempotency
    /// key.
    pub fn begin_dry_run(&self) -> &Services {
        if let Some(once) = &self.once {
            once.mark_dry_run(true);
        }
        self.services()
    }

    /// Spares the preparation of a request that has a response already: [`Self::begin`] decides, but
    /// comes after it.
    ///
    /// # Errors
    /// As [`Self::begin`].
    pub async fn refuse_repeated(&self) -> Result<(), ApiError> {
        match &self.once {
            Some(once) => once.refuse_repeated(self.services(), &self.actor).await,
            None => Ok(()),
        }
    }

    /// Takes the body out, which may be large.
    #[must_use]
    pub fn take_body(self) -> (Call<S, (), Q, P>, B) {
        let call = Call {
            app: self.app,
            actor: self.actor,
            body: (),
            query: self.query,
            path: self.path,
            accepted: self.accepted,
            request: self.request,
            body_sha256: self.body_sha256,
            once: self.once,
            scope: PhantomData,
        };
        (call, self.body)
    }
}

impl<S: RequiredScope, B: Body, Q: Shape + 'static, P: Shape + 'static> FromRequest
    for Call<S, B, Q, P>
{
    type Error = ApiError;
    type Future = LocalBoxFuture<'static, Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let request = request.clone();
        let mut payload = payload.take();
        Box::pin(async move {
            let call = Self::receive(&request, &mut payload).await;
            if call.is_err() {
                drain(&mut payload).await;
            }
            call
        })
    }
}

impl<S: RequiredScope, B: Body, Q: Shape, P: Shape> Call<S, B, Q, P> {
    async fn receive(request: &HttpRequest, payload: &mut Payload) -> Result<Self, ApiError> {
        // Before the body: strangers cannot make the server buffer one.
        let (app, actor) = admit(request, S::SCOPE).await?;
        let received = B::receive(request, payload).await?;
        let body_sha256 = request
            .headers()
            .contains_key(IDEMPOTENCY_KEY)
            // Hashing a large body takes time, which only a repeatable request needs.
            .then(|| B::sha256(&received));

        // Path, query and body share one list, so that a client sees all problems at once.
        let problems = Problems::default();
        let path = P::read(path_document(request), &FieldPath::root("path", &problems));
        let query = Q::read(
            query_document(request),
            &FieldPath::root("query", &problems),
        );
        let body = B::read(&received, &FieldPath::root("body", &problems));
        match (path, query, body) {
            (Some(path), Some(query), Some(body)) if problems.is_empty() => Ok(Self {
                app,
                actor,
                body,
                query,
                path,
                accepted: Accepted::of(request),
                request: request.clone(),
                body_sha256,
                once: None,
                scope: PhantomData,
            }),
            _ => Err(ApiError::Shape(problems.explain(&Map::from_iter([
                ("path".to_owned(), path_document(request)),
                ("query".to_owned(), query_document(request)),
                ("body".to_owned(), B::document(&received)),
            ])))),
        }
    }
}

/// Authenticates the caller, counts the request, and requires a scope.
pub(super) async fn admit(
    request: &HttpRequest,
    scope: Option<Scope>,
) -> Result<(Data<App>, Actor), ApiError> {
    let app = app_of(request)?;
    let presented = Credential::of(request, &app.public_url)?;
    let actor = presented.authenticate(&app.services).await?;
    observe::record_actor(&actor);
    // After the authentication: a guessed key must not use up the requests of a real one.
    app.rate_limit.count(actor.api_key)?;
    if let Some(scope) = scope {
        actor.require(scope).map_err(Error::from)?;
    }
    // For bodies whose room is shared among organizations.
    request.extensions_mut().insert(actor.clone());
    Ok((app, actor))
}

/// A call of an endpoint that asks for no key, and whose response holds a secret: a request with an
/// idempotency key is refused.
pub struct OpenCall<B> {
    /// The server's parts.
    pub app: Data<App>,
    /// The body.
    pub body: B,
}

impl<T: Shape + 'static> FromRequest for OpenCall<JsonBody<T>> {
    type Error = ApiError;
    type Future = LocalBoxFuture<'static, Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let request = request.clone();
        let mut payload = payload.take();
        Box::pin(async move {
            let call = Self::receive(&request, &mut payload).await;
            if call.is_err() {
                drain(&mut payload).await;
            }
            call
        })
    }
}

impl<T: Shape + 'static> OpenCall<JsonBody<T>> {
    async fn receive(request: &HttpRequest, payload: &mut Payload) -> Result<Self, ApiError> {
        let received =
            receive_json_within(request, payload, true, (OPEN_BODY_LIMIT, Work::LargeBody)).await?;
        let problems = Problems::default();
        let body = JsonBody::<T>::read(&received, &FieldPath::root("body", &problems));
        let Some(body) = body.filter(|_| problems.is_empty()) else {
            return Err(ApiError::Shape(problems.explain(&Map::from_iter([(
                "body".to_owned(),
                JsonBody::<T>::document(&received),
            )]))));
        };
        // Storing the response would store its secret.
        if request.headers().contains_key(IDEMPOTENCY_KEY) {
            return Err(Error::refused(SecretNotReplayed).into());
        }
        let app = app_of(request)?;
        Ok(Self { app, body })
    }
}
