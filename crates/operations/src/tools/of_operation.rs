//! Operations as tools.

use std::sync::Arc;

use async_trait::async_trait;
use labdata_application::{
    Error,
    agent::tools::{Tool, ToolContext, failure},
};
use labdata_domain::{
    agent::{ToolInput, ToolOutput},
    people::{actor::Actor, scope::Scope},
};
use labdata_ports::agent::ToolDefinition;
use labdata_request_body::Definitions;
use serde_json::{Map, Value, json, value::RawValue};

use super::{
    arguments::{arguments, schema_of, unfit},
    facts::{FilledField, ToolFacts},
};
use crate::{Access, BaseUrl, Operation, Platform, Reply, Request};

/// Number of items of a list unless the model asks for another: few enough for what it is given of an
/// output.
const DEFAULT_ITEMS: u32 = 20;

/// The argument of lists for the number of items.
const LIMIT: &str = "limit";

/// An operation as a tool. Its arguments are the fields of path, query string and body in one object.
pub(super) struct OperationTool {
    operation: Operation,
    facts: ToolFacts,
    definition: ToolDefinition,
    /// True if it has the argument [`LIMIT`] of the operation.
    is_list: bool,
}

impl OperationTool {
    /// The tool of an operation, if it is one.
    pub(super) fn new(mut operation: Operation) -> Option<Self> {
        let facts = operation.tool.take()?;
        let filled = facts.filled.as_ref().map(|filled| filled.name);
        let fields = (operation.describe_arguments)(&mut Definitions::inline());
        let mut fields: Vec<_> = fields
            .into_iter()
            .filter(|field| Some(field.name) != filled)
            .collect();
        let mut is_list = false;
        if !operation.has_tool_function() {
            for field in fields.iter_mut().filter(|field| field.name == LIMIT) {
                field.default = Some(DEFAULT_ITEMS.into());
                is_list = true;
            }
        }
        Some(Self {
            definition: ToolDefinition {
                name: facts.name.unwrap_or(operation.about.name).to_owned(),
                description: facts.description.to_owned(),
                schema: schema_of(fields),
            },
            operation,
            facts,
            is_list,
        })
    }

    /// The request that the arguments are.
    fn request(
        &self,
        context: &ToolContext<'_>,
        mut arguments: Map<String, Value>,
    ) -> Result<Request, Error> {
        let services = context.services;
        if let Some(FilledField { name, value }) = &self.facts.filled {
            arguments.insert((*name).to_owned(), value(services).into());
        }
        if self.is_list {
            let limit = arguments.entry(LIMIT).or_insert(Value::Null);
            if limit.is_null() {
                *limit = DEFAULT_ITEMS.into();
            }
        }
        let arguments = Value::Object(arguments);
        let body = serde_json::to_vec(&arguments);
        Ok(Request {
            platform: Arc::new(Platform {
                services: Arc::new(services.clone()),
                agent: context.agent.clone(),
            }),
            actor: context.actor.clone(),
            base_url: BaseUrl::default(),
            path: arguments.clone(),
            query: arguments,
            body: body
                .map_err(|error| Error::Internal(error.to_string()))?
                .into(),
        })
    }

    async fn respond(&self, request: Request) -> Result<ToolOutput, Error> {
        let services = Arc::clone(&request.platform.services);
        let preparation = match self.operation.read_as_tool(request) {
            Ok(preparation) => preparation,
            Err(problems) => return Ok(unfit(&problems)),
        };
        let effect = preparation.await;
        let reply = effect(services).await?;
        self.output(&reply)
            .map_err(|error| Error::Internal(error.to_string()))
    }

    fn output(&self, reply: &Reply) -> serde_json::Result<ToolOutput> {
        let result: &RawValue = serde_json::from_slice(reply.json.as_deref().unwrap_or(b"null"))?;
        // Over HTTP the cursor of a list is a header, which a tool does not have.
        let text = if result.get().starts_with('[') {
            json!({ "items": result, "next_cursor": reply.next }).to_string()
        } else if self.needs_write() {
            let mut fields: Map<String, Value> = serde_json::from_str(result.get())?;
            fields.insert("effects".to_owned(), reply.effects.clone().into());
            Value::Object(fields).to_string()
        } else {
            result.get().to_owned()
        };
        Ok(ToolOutput::result(text))
    }
}

#[async_trait]
impl Tool for OperationTool {
    fn name(&self) -> &'static str {
        self.facts.name.unwrap_or(self.operation.about.name)
    }

    fn definition(&self) -> ToolDefinition {
        self.definition.clone()
    }

    fn needs_write(&self) -> bool {
        self.operation.access != Access::Scope(Scope::Read)
    }

    fn is_open_to(&self, actor: &Actor) -> bool {
        let may_write = actor.scopes.contains(Scope::Write) || !self.needs_write();
        may_write && self.facts.scripts.is_open_to(actor)
    }

    fn is_destructive(&self) -> bool {
        self.facts.is_destructive
    }

    async fn call(&self, context: &ToolContext<'_>, input: &ToolInput) -> ToolOutput {
        let request = match arguments(&self.definition, input) {
            Ok(input) => self.request(context, input.clone()),
            Err(refused) => return refused,
        };
        let output = match request {
            Ok(request) => self.respond(request).await,
            Err(error) => Err(error),
        };
        output.unwrap_or_else(|error| failure(self.name(), &error))
    }
}
