//! Tools that are no operations.

use async_trait::async_trait;
use labdata_application::{
    Error,
    agent::tools::{Tool, ToolContext, failure},
};
use labdata_domain::agent::{ToolInput, ToolOutput};
use labdata_ports::agent::ToolDefinition;
use labdata_request_body::{Definitions, Shape, read};
use serde::Serialize;

use super::arguments::{arguments, schema_of, unfit};

/// A tool that is no operation, because a model needs another form of its data.
#[async_trait]
pub(super) trait OwnTool: Send + Sync {
    /// Its arguments.
    type Input: Shape + Send;
    /// Its result.
    type Output: ToolResult + Send;
    /// See [`Tool::name`].
    const NAME: &'static str;
    /// Its purpose, for the model.
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

/// The result of a tool.
pub(super) trait ToolResult {
    /// The output for the model.
    fn output(self) -> serde_json::Result<ToolOutput>;
}

impl<T: Serialize> ToolResult for T {
    fn output(self) -> serde_json::Result<ToolOutput> {
        Ok(ToolOutput::result(serde_json::to_string(&self)?))
    }
}

/// Makes a tool of one that is declared by [`OwnTool`].
pub(super) struct Own<T> {
    tool: T,
    definition: ToolDefinition,
}

impl<T: OwnTool> Own<T> {
    pub(super) fn new(tool: T) -> Self {
        let definition = ToolDefinition {
            name: T::NAME.to_owned(),
            description: T::DESCRIPTION.to_owned(),
            schema: schema_of(T::Input::properties(&mut Definitions::inline())),
        };
        Self { tool, definition }
    }
}

#[async_trait]
impl<T: OwnTool> Tool for Own<T> {
    fn name(&self) -> &'static str {
        T::NAME
    }

    fn definition(&self) -> ToolDefinition {
        self.definition.clone()
    }

    fn needs_write(&self) -> bool {
        T::NEEDS_WRITE
    }

    fn is_destructive(&self) -> bool {
        T::NEEDS_WRITE
    }

    async fn call(&self, context: &ToolContext<'_>, input: &ToolInput) -> ToolOutput {
        let input = match arguments(&self.definition, input) {
            Ok(input) => read::<T::Input>("arguments", input.clone().into()),
            Err(refused) => return refused,
        };
        let input = match input {
            Ok(input) => input,
            Err(problems) => return unfit(&problems),
        };
        let result = self.tool.run(context, input).await;
        let output = result.and_then(|result| {
            let output = result.output();
            output.map_err(|error| Error::Internal(error.to_string()))
        });
        output.unwrap_or_else(|error| failure(T::NAME, &error))
    }
}
