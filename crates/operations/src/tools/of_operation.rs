//! Operations as tools.

use std::sync::Arc;

use async_trait::async_trait;
use labdata_application::{
    Error, Services,
    agent::tools::{Tool, ToolContext, failure},
};
use labdata_domain::{agent::ToolOutput, people::scope::Scope};
use labdata_request_body::Definitions;
use serde_json::{Map, Value, json, value::RawValue};

use super::arguments::{refuse_unknown, schema_of, unfit};
use crate::{Access, BaseUrl, Operation, Platform, Reply, Request};

/// Number of items of a list unless the model asks for another: few enough for what it is given of an
/// output.
const DEFAULT_ITEMS: u32 = 20;

/// The argument of lists for the number of items.
const LIMIT: &str = "limit";

/// Facts for a model about an operation that is a tool.
pub(crate) struct ToolFacts {
    /// The tool's name, if it is not the operation's.
    pub(crate) name: Option<&'static str>,
    /// Its purpose.
    pub(crate) description: &'static str,
    /// True if it may change or remove what is there.
    pub(crate) is_destructive: bool,
    /// A field of the body that the platform fills in.
    pub(crate) filled: Option<FilledField>,
}

/// A field that the platform fills in, and that the model does not know.
pub(crate) struct FilledField {
    /// Its name.
    pub(crate) name: &'static str,
    /// Its value.
    pub(crate) value: fn(&Services) -> String,
}

impl ToolFacts {
    /// A tool that reads, or only adds.
    pub(crate) const fn of(description: &'static str) -> Self {
        Self {
            name: None,
            description,
            is_destructive: false,
            filled: None,
        }
    }
}

/// An operation as a tool. Its arguments are the fields of path, query string and body in one object.
pub(super) struct OperationTool {
    operation: Operation,
    facts: ToolFacts,
    schema: Map<String, Value>,
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
        for field in fields.iter_mut().filter(|field| field.name == LIMIT) {
            field.default = Some(DEFAULT_ITEMS.into());
        }
        Some(Self {
            schema: schema_of(fields),
            operation,
            facts,
        })
    }

    /// The request that the arguments are.
    fn request(
        &self,
        context: &ToolContext<'_>,
        mut arguments: Map<String, Value>,
    ) -> Result<Request, Error> {
        let ports = context.ports;
        if let Some(FilledField { name, value }) = &self.facts.filled {
            arguments.insert((*name).to_owned(), value(ports).into());
        }
        let properties = self.schema.get("properties");
        if properties.is_some_and(|properties| properties.get(LIMIT).is_some()) {
            let limit = arguments.entry(LIMIT).or_insert(Value::Null);
            if limit.is_null() {
                *limit = DEFAULT_ITEMS.into();
            }
        }
        let arguments = Value::Object(arguments);
        let body = serde_json::to_vec(&arguments);
        Ok(Request {
            platform: Arc::new(Platform {
                ports: Arc::new(ports.clone()),
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
        let ports = Arc::clone(&request.platform.ports);
        let preparation = match self.operation.read(request) {
            Ok(preparation) => preparation,
            Err(problems) => return Ok(unfit(&problems)),
        };
        let effect = preparation.await;
        let reply = effect(ports).await?;
        self.output(&reply)
            .map_err(|error| Error::Internal(error.to_string()))
    }

    fn output(&self, reply: &Reply) -> serde_json::Result<ToolOutput> {
        let result: &RawValue = serde_json::from_slice(reply.json.as_deref().unwrap_or(b"null"))?;
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

    fn description(&self) -> &'static str {
        self.facts.description
    }

    fn schema(&self) -> Map<String, Value> {
        self.schema.clone()
    }

    fn needs_write(&self) -> bool {
        self.operation.access != Access::Scope(Scope::Read)
    }

    fn is_destructive(&self) -> bool {
        self.facts.is_destructive
    }

    async fn call(&self, context: &ToolContext<'_>, input: Map<String, Value>) -> ToolOutput {
        if let Err(refused) = refuse_unknown(self.name(), &self.schema, &input) {
            return refused;
        }
        let output = match self.request(context, input) {
            Ok(request) => self.respond(request).await,
            Err(error) => Err(error),
        };
        output.unwrap_or_else(|error| failure(self.name(), &error))
    }
}
