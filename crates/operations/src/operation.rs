//! An operation: its facts, its types, and the function that it runs.

use std::{future::ready, sync::Arc};

use futures::future::BoxFuture;
use labdata_application::{Error, Services, slots::Work};
use labdata_domain::people::scope::Scope;
use labdata_request_body::{Definitions, Property, Schema, Shape, ShapeProblem};
use serde_json::Value;

use crate::{
    About, Access, BODY_LIMIT, Body, BodyDescription, BodyKind, Call, Describe, DescribeBody,
    OPEN_BODY_LIMIT, Reply, Request, RequiredScope, Respond, tools::ToolFacts,
};

/// Effect of a request that was read. It takes the ports that it uses, which may be those of a unit of
/// work.
pub type Effect = Box<dyn FnOnce(Arc<Services>) -> BoxFuture<'static, Result<Reply, Error>> + Send>;

/// Slow work of a request that was read. It comes before its effect, and outside of the unit of work.
pub type Preparation = BoxFuture<'static, Effect>;

/// The function of an operation: reads the request, and returns its preparation.
type Read = dyn Fn(Request) -> Result<Preparation, Vec<ShapeProblem>> + Send + Sync;

/// Effect of a repeated request on an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idempotency {
    /// Its effect is the same; `Idempotency-Key` is ignored.
    Natural,
    /// With an `Idempotency-Key` it has its effect once, and the stored response is returned again.
    ByKey,
    /// The response holds a secret: it is never cached, and an `Idempotency-Key`, for which it would
    /// have to be stored, is refused.
    Secret,
}

/// A refusal with a separate body.
pub(crate) struct TypedRefusal {
    pub(crate) status: u16,
    pub(crate) description: &'static str,
    pub(crate) content: fn(&mut Definitions) -> Vec<(&'static str, Schema)>,
}

/// A header that a request may bear.
#[derive(Clone, Copy, Debug)]
pub struct RequestHeader {
    /// Its name.
    pub name: &'static str,
    /// Its meaning.
    pub description: &'static str,
    /// Regular expression of its values.
    pub pattern: &'static str,
}

/// The scope that a query string, an object of texts, requires.
pub type ScopeByQuery = fn(&Services, &Value) -> Scope;

/// An operation.
pub struct Operation {
    /// Its facts.
    pub about: About,
    /// Requirement to its caller.
    pub access: Access,
    /// The scope that it requires besides, where that depends on the query string.
    pub scope_by_query: Option<ScopeByQuery>,
    /// Effect of a repeated request.
    pub idempotency: Idempotency,
    /// True if its preparation is slow.
    pub is_prepared: bool,
    /// Way in which its body is received.
    pub body: BodyKind,
    /// Limit of its body where it is not the usual one, and the work that a long body is.
    large_body: Option<(usize, Work)>,
    pub(crate) typed_refusals: Vec<TypedRefusal>,
    pub(crate) empty_responses: &'static [(u16, &'static str)],
    pub(crate) response_headers: &'static [(&'static str, &'static str)],
    pub(crate) request_headers: &'static [RequestHeader],
    pub(crate) describe_request: fn(&mut Definitions) -> RequestShapes,
    /// The fields of path, query string and body, which are the arguments of a tool.
    pub(crate) describe_arguments: fn(&mut Definitions) -> Vec<Property>,
    pub(crate) tool: Option<ToolFacts>,
    pub(crate) success_status: u16,
    pub(crate) describe_success: fn(&mut Definitions) -> Vec<(&'static str, Schema)>,
    read: Option<Box<Read>>,
    /// The function of its tool, if it is another.
    read_as_tool: Option<Box<Read>>,
}

/// The schemas of a request.
pub(crate) struct RequestShapes {
    pub(crate) path: Vec<Property>,
    pub(crate) query: Vec<Property>,
    pub(crate) body: Option<BodyDescription>,
    pub(crate) other_body: Option<BodyDescription>,
}

fn request_shapes<B: DescribeBody, Q: Shape, P: Shape>(
    definitions: &mut Definitions,
) -> RequestShapes {
    RequestShapes {
        path: P::properties(definitions),
        query: Q::properties(definitions),
        body: B::describe(definitions),
        other_body: B::describe_other(definitions),
    }
}

fn arguments<B: Body, Q: Shape, P: Shape>(definitions: &mut Definitions) -> Vec<Property> {
    let mut fields = P::properties(definitions);
    fields.extend(Q::properties(definitions));
    fields.extend(B::fields(definitions));
    fields
}

impl Operation {
    /// Returns the size in bytes from which its JSON body is refused.
    #[must_use]
    pub fn body_limit(&self) -> usize {
        match self.large_body {
            Some((limit, _)) => limit,
            None if self.access == Access::Open => OPEN_BODY_LIMIT,
            None => BODY_LIMIT,
        }
    }

    /// Returns the work that a long body is, which takes a slot.
    #[must_use]
    pub fn body_work(&self) -> Work {
        self.large_body.map_or(Work::LargeBody, |(_, work)| work)
    }
}

impl About {
    /// The operation that runs a function: its types state scope, body, query string, path and
    /// response.
    #[must_use]
    pub fn runs<S, B, Q, P, R, F, U>(self, run: F) -> Operation
    where
        S: RequiredScope,
        B: Body,
        Q: Shape + Send + 'static,
        P: Shape + Send + 'static,
        R: Respond + 'static,
        F: Fn(Call<S, B, Q, P>) -> U + Send + Sync + 'static,
        U: Future<Output = Result<R, Error>> + Send + 'static,
    {
        let prepare = |_: &Call<S, B, Q, P>| ready(());
        Operation {
            is_prepared: false,
            ..self.runs_after(prepare, move |call, ()| run(call))
        }
    }

    /// As [`Self::runs`], after slow work, whose outcome is the function's second argument. A unit of work
    /// begins after it, because it holds a connection to the database.
    #[must_use]
    pub fn runs_after<S, B, Q, P, R, G, V, F, U>(self, prepare: G, run: F) -> Operation
    where
        S: RequiredScope,
        B: Body,
        Q: Shape + Send + 'static,
        P: Shape + Send + 'static,
        R: Respond + 'static,
        G: Fn(&Call<S, B, Q, P>) -> V + Send + Sync + 'static,
        V: Future<Output: Send> + Send + 'static,
        F: Fn(Call<S, B, Q, P>, V::Output) -> U + Send + Sync + 'static,
        U: Future<Output = Result<R, Error>> + Send + 'static,
    {
        let run = Arc::new(run);
        let read = move |request: Request| {
            let (run, mut call) = (Arc::clone(&run), Call::read(request)?);
            let preparing = prepare(&call);
            let preparation: Preparation = Box::pin(async move {
                let prepared = preparing.await;
                let effect: Effect = Box::new(move |services| {
                    call.services = services;
                    let outcome = run(call, prepared);
                    Box::pin(async move { outcome.await?.reply() })
                });
                effect
            });
            Ok(preparation)
        };
        Operation {
            body: B::KIND,
            read: Some(Box::new(read)),
            is_prepared: true,
            describe_arguments: arguments::<B, Q, P>,
            ..self.served_by_hand::<S, B, Q, P, R>()
        }
    }

    /// The operation whose handler is written by hand: it streams, or receives a file.
    #[must_use]
    pub fn served_by_hand<S, B, Q, P, R>(self) -> Operation
    where
        S: RequiredScope,
        B: DescribeBody,
        Q: Shape,
        P: Shape,
        R: Describe,
    {
        Operation {
            about: self,
            access: S::SCOPE.map_or(Access::AnyKey, Access::Scope),
            scope_by_query: None,
            idempotency: Idempotency::Natural,
            is_prepared: false,
            body: BodyKind::None,
            large_body: None,
            typed_refusals: Vec::new(),
            empty_responses: &[],
            response_headers: &[],
            request_headers: &[],
            describe_request: request_shapes::<B, Q, P>,
            describe_arguments: |_| Vec::new(),
            tool: None,
            success_status: R::STATUS,
            describe_success: R::content,
            read: None,
            read_as_tool: None,
        }
    }
}

impl Operation {
    /// The same, for one that creates something: a request that bears an `Idempotency-Key` has its
    /// effect once.
    #[must_use]
    pub fn creating(self) -> Self {
        Self {
            idempotency: Idempotency::ByKey,
            ..self
        }
    }

    /// The same, for one whose scope depends on its query string. It is checked before the body.
    #[must_use]
    pub(crate) fn scoped_by(self, scope: ScopeByQuery) -> Self {
        Self {
            scope_by_query: Some(scope),
            ..self
        }
    }

    /// The same, for one whose body may be longer than others. Long bodies take slots of that work.
    #[must_use]
    pub(crate) fn with_body_of(self, limit: usize, work: Work) -> Self {
        Self {
            large_body: Some((limit, work)),
            ..self
        }
    }

    /// The same, for one whose response holds a secret.
    #[must_use]
    pub fn secret(self) -> Self {
        Self {
            idempotency: Idempotency::Secret,
            ..self
        }
    }

    /// The same, for one that asks for no key.
    #[must_use]
    pub fn open(self) -> Self {
        Self {
            access: Access::Open,
            ..self
        }
    }

    /// The same, as a tool of the agent as well.
    #[must_use]
    pub(crate) fn tool(self, tool: ToolFacts) -> Self {
        Self {
            tool: Some(tool),
            ..self
        }
    }

    /// As [`Self::tool`], with another function for the tool, because a model needs other data.
    #[must_use]
    pub(crate) fn tool_running<S, B, Q, P, R, F, U>(self, tool: ToolFacts, run: F) -> Self
    where
        S: RequiredScope,
        B: Body,
        Q: Shape + Send + 'static,
        P: Shape + Send + 'static,
        R: Respond + 'static,
        F: Fn(Call<S, B, Q, P>) -> U + Send + Sync + 'static,
        U: Future<Output = Result<R, Error>> + Send + 'static,
    {
        let form = self.about.runs(run);
        Self {
            describe_arguments: form.describe_arguments,
            read_as_tool: form.read,
            ..self.tool(tool)
        }
    }

    /// Adds a refusal with a separate body.
    #[must_use]
    pub fn refusing<T: Describe>(mut self, status: u16, description: &'static str) -> Self {
        self.typed_refusals.push(TypedRefusal {
            status,
            description,
            content: T::content,
        });
        self
    }

    /// States responses without a body, by status, with descriptions of when they come.
    #[must_use]
    pub fn with_empty_responses(self, empty_responses: &'static [(u16, &'static str)]) -> Self {
        Self {
            empty_responses,
            ..self
        }
    }

    /// States headers of the successful response, with their descriptions.
    #[must_use]
    pub fn with_response_headers(
        self,
        response_headers: &'static [(&'static str, &'static str)],
    ) -> Self {
        Self {
            response_headers,
            ..self
        }
    }

    /// States headers that a request may bear.
    #[must_use]
    pub fn with_request_headers(self, request_headers: &'static [RequestHeader]) -> Self {
        Self {
            request_headers,
            ..self
        }
    }

    /// True if its handler is written by hand.
    #[must_use]
    pub fn is_served_by_hand(&self) -> bool {
        self.read.is_none()
    }

    /// Reads a request. Its preparation yields the effect, which calls the use case.
    ///
    /// # Errors
    /// The problems of the request's shape.
    pub fn read(&self, request: Request) -> Result<Preparation, Vec<ShapeProblem>> {
        read_by(self.read.as_deref(), request)
    }

    /// True if its tool runs another function.
    pub(crate) const fn has_tool_function(&self) -> bool {
        self.read_as_tool.is_some()
    }

    /// As [`Self::read`], of a call of its tool.
    ///
    /// # Errors
    /// The problems of the arguments' shape.
    pub(crate) fn read_as_tool(&self, request: Request) -> Result<Preparation, Vec<ShapeProblem>> {
        read_by(
            self.read_as_tool.as_deref().or(self.read.as_deref()),
            request,
        )
    }
}

fn read_by(read: Option<&Read>, request: Request) -> Result<Preparation, Vec<ShapeProblem>> {
    if let Some(read) = read {
        return read(request);
    }
    let effect: Effect = Box::new(|_| {
        let missing = Error::Internal("the operation has no function".to_owned());
        Box::pin(ready(Err(missing)))
    });
    Ok(Box::pin(ready(effect)))
}

impl std::fmt::Debug for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let About { method, path, .. } = self.about;
        write!(f, "{} {path} ({:?})", method.as_str(), self.access)
    }
}
