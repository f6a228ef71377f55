//! Tools that are no operations.

use async_trait::async_trait;
use labdata_application::{
    Error,
    agent::tools::{Tool, ToolContext, failure},
};
use labdata_domain::agent::ToolOutput;
use labdata_request_body::{Definitions, Shape, read};
use serde::Serialize;
use serde_json::{Map, Value};

use super::arguments::{refuse_unknown, schema_of, unfit};

/// A tool that is no operation, because a model needs another form of its data.
#[async_trait]
pub(super) trait OwnTool: Send + Sync {
    /// Its arguments.
    type Input: Shape + Send;
    /// Its result.
    type Output: Serialize;
    /// See [`Tool::name`].
    const NAME: &'static str;
    /// See [`Tool::description`].
    const DESCRIPTION: &'static str;
    /// See [`Tool::needs_write`]. One that does may change what is there.
    const NEEDS_WRITE: bool = false;

    /// Calls it.
    async fn run(
        &self,
        context: &ToolContext<'_>,
        input: Self::Input,
    ) -> Result<Self::Output, Error>;
}

/// Makes a tool of one that is declared by [`OwnTool`].
pub(super) struct Own<T>(pub(super) T);

#[async_trait]
impl<T: OwnTool> Tool for Own<T> {
    fn name(&self) -> &'static str {
        T::NAME
    }

    fn description(&self) -> &'static str {
        T::DESCRIPTION
    }

    fn schema(&self) -> Map<String, Value> {
        schema_of(T::Input::properties(&mut Definitions::inline()))
    }

    fn needs_write(&self) -> bool {
        T::NEEDS_WRITE
    }

    fn is_destructive(&self) -> bool {
        T::NEEDS_WRITE
    }

    async fn call(&self, context: &ToolContext<'_>, input: Map<String, Value>) -> ToolOutput {
        let input = match arguments(T::NAME, &self.schema(), input) {
            Ok(input) => input,
            Err(refused) => return refused,
        };
        let outcome = self.0.run(context, input).await.and_then(|output| {
            serde_json::to_string(&output).map_err(|error| Error::Internal(error.to_string()))
        });
        match outcome {
            Ok(text) => ToolOutput::result(text),
            Err(error) => failure(T::NAME, &error),
        }
    }
}

/// Reads the arguments of a call; otherwise returns its output, which says what is wrong.
pub(super) fn arguments<I: Shape>(
    tool: &str,
    schema: &Map<String, Value>,
    input: Map<String, Value>,
) -> Result<I, ToolOutput> {
    refuse_unknown(tool, schema, &input)?;
    read::<I>("arguments", Value::Object(input)).map_err(|problems| unfit(&problems))
}
