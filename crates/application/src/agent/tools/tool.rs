//! What a tool is.

use async_trait::async_trait;
use labdata_domain::agent::ToolOutput;
use labdata_request_body::{LocationStep, Shape, ShapeProblem, json_schema, read};
use serde_json::{Map, Value};

use super::context::ToolContext;
use crate::Error;

/// A tool.
#[async_trait]
pub trait Tool: Send + Sync {
    /// Its name.
    fn name(&self) -> &'static str;

    /// Its purpose, for the model.
    fn description(&self) -> &'static str;

    /// JSON schema of its arguments: an object without further properties.
    fn schema(&self) -> Map<String, Value>;

    /// True if it changes something, for which the caller needs the write scope.
    fn needs_write(&self) -> bool;

    /// True if it may change or remove what is there, rather than only add to it.
    fn is_destructive(&self) -> bool {
        false
    }

    /// Calls it. A failure is an output that the model reads.
    async fn call(&self, context: &ToolContext<'_>, input: Map<String, Value>) -> ToolOutput;
}

/// A tool whose arguments are declared by [`shape!`](labdata_request_body::shape!).
#[async_trait]
pub trait TypedTool: Send + Sync {
    /// Its arguments.
    type Input: Shape + Send;
    /// See [`Tool::name`].
    const NAME: &'static str;
    /// See [`Tool::description`].
    const DESCRIPTION: &'static str;
    /// See [`Tool::needs_write`].
    const NEEDS_WRITE: bool;
    /// See [`Tool::is_destructive`].
    const IS_DESTRUCTIVE: bool = false;

    /// Calls it; returns a JSON text.
    ///
    /// # Errors
    /// Those of its use case.
    async fn run(&self, context: &ToolContext<'_>, input: Self::Input) -> Result<String, Error>;
}

#[async_trait]
impl<T: TypedTool> Tool for T {
    fn name(&self) -> &'static str {
        T::NAME
    }

    fn description(&self) -> &'static str {
        T::DESCRIPTION
    }

    fn schema(&self) -> Map<String, Value> {
        schema_of::<T::Input>()
    }

    fn needs_write(&self) -> bool {
        T::NEEDS_WRITE
    }

    fn is_destructive(&self) -> bool {
        T::IS_DESTRUCTIVE
    }

    async fn call(&self, context: &ToolContext<'_>, input: Map<String, Value>) -> ToolOutput {
        let input = match arguments::<T::Input>(T::NAME, &self.schema(), input) {
            Ok(input) => input,
            Err(refused) => return refused,
        };
        match self.run(context, input).await {
            Ok(text) => ToolOutput::result(text),
            Err(error) => failure(T::NAME, &error),
        }
    }
}

/// The schema of arguments: an object without further properties.
pub(super) fn schema_of<I: Shape>() -> Map<String, Value> {
    let Value::Object(mut schema) = inlined(json_schema::<I>()) else {
        return Map::new();
    };
    // The description of the tool says it.
    schema.remove("description");
    schema.insert("additionalProperties".to_owned(), false.into());
    schema
}

/// Reads the arguments of a call; otherwise returns its output, which says what is wrong.
pub(super) fn arguments<I: Shape>(
    tool: &str,
    schema: &Map<String, Value>,
    input: Map<String, Value>,
) -> Result<I, ToolOutput> {
    // A misspelled optional argument would otherwise have no effect and raise no error.
    if let Some(unknown) = unknown_argument(schema, &input) {
        return Err(ToolOutput::error(format!(
            "{tool} has no argument \"{unknown}\""
        )));
    }
    read::<I>("arguments", Value::Object(input))
        .map_err(|problems| ToolOutput::error(explain(&problems)))
}

/// The output of a call that failed.
pub(super) fn failure(tool: &str, error: &Error) -> ToolOutput {
    ToolOutput::error(message(tool, error))
}

/// Maximum number of definitions inside of each other.
const MAX_DEPTH: u32 = 8;

/// The schema with its definitions where they are used: not every provider follows references.
fn inlined(mut schema: Value) -> Value {
    let definitions = schema
        .as_object_mut()
        .and_then(|schema| schema.remove("$defs"));
    inline(schema, &definitions.unwrap_or_default(), 0)
}

fn inline(schema: Value, definitions: &Value, depth: u32) -> Value {
    match schema {
        Value::Object(mut object) => {
            let name = object.get("$ref").and_then(Value::as_str);
            let name = name.and_then(|reference| reference.strip_prefix("#/$defs/"));
            let definition = name.and_then(|name| definitions.get(name)?.as_object());
            // Some providers refuse `$ref`; the depth bounds recursive definitions.
            if let Some(definition) = definition.filter(|_| depth < MAX_DEPTH) {
                let mut whole = definition.clone();
                object.remove("$ref");
                // Keywords beside `$ref`, such as the description, take precedence.
                whole.extend(object);
                return inline(Value::Object(whole), definitions, depth + 1);
            }
            let fields = object.into_iter();
            fields
                .map(|(name, value)| (name, inline(value, definitions, depth)))
                .collect()
        }
        Value::Array(items) => {
            let items = items.into_iter();
            items.map(|item| inline(item, definitions, depth)).collect()
        }
        other => other,
    }
}

fn unknown_argument(schema: &Map<String, Value>, input: &Map<String, Value>) -> Option<String> {
    let known = schema.get("properties").and_then(Value::as_object);
    let is_known = |name: &str| known.is_some_and(|known| known.contains_key(name));
    let unknown = input.keys().find(|name| !is_known(name))?;
    Some(unknown.chars().take(100).collect())
}

/// The problems of arguments, one line each.
fn explain(problems: &[ShapeProblem]) -> String {
    let lines = problems.iter().map(|problem| {
        let path = problem.loc.iter().map(|step| match step {
            LocationStep::Name(name) => name.clone(),
            LocationStep::Index(index) => index.to_string(),
        });
        let path: Vec<String> = path.collect();
        format!("{}: {}", path.join("."), problem.msg)
    });
    let lines: Vec<String> = lines.collect();
    format!("the arguments do not fit:\n{}", lines.join("\n"))
}

/// The message of an error as the model gets it. Internals are for the log only.
fn message(tool: &str, error: &Error) -> String {
    match error {
        Error::Problems(problems) => {
            let lines = problems.iter().map(|problem| match &problem.path {
                Some(path) => format!("{path}: {}", problem.message),
                None => problem.message.clone(),
            });
            let lines: Vec<String> = lines.collect();
            format!("nothing was written:\n{}", lines.join("\n"))
        }
        Error::Internal(cause) => {
            // The cause may hold details of the server, so the model does not get it.
            tracing::error!(tool, cause, "a tool of the agent failed");
            "internal error".to_owned()
        }
        other => other.to_string(),
    }
}
