//! Language models, behind a provider's API.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use futures::stream::BoxStream;
use labdata_domain::agent::{Message, ModelFailure, ModelResponse};
use serde_json::{Map, Value};

/// Request for a response.
#[derive(Clone, PartialEq)]
pub struct ModelRequest {
    /// Name of the model, as its provider knows it.
    pub model: String,
    /// Instructions that stand above the conversation.
    pub instructions: String,
    /// The conversation to continue. It begins with a message of the user.
    pub messages: Vec<Message>,
    /// Tools that the model may call.
    pub tools: Arc<[ToolDefinition]>,
}

impl fmt::Debug for ModelRequest {
    /// Without the conversation, which holds data of the organization.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelRequest")
            .field("model", &self.model)
            .field("messages", &self.messages.len())
            .field("tools", &self.tools.len())
            .finish_non_exhaustive()
    }
}

/// A tool as described to a model.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolDefinition {
    /// Its name.
    pub name: String,
    /// Its purpose, and when to use it.
    pub description: String,
    /// JSON schema of its arguments: an object.
    pub schema: Map<String, Value>,
}

impl ToolDefinition {
    /// Its size in a request in bytes, roughly.
    #[must_use]
    pub fn size(&self) -> usize {
        let schema = serde_json::to_string(&self.schema).unwrap_or_default();
        self.name.len() + self.description.len() + schema.len()
    }
}

/// Part of a response.
#[derive(Clone, Debug, PartialEq)]
pub enum ResponsePart {
    /// The next characters of the text; never empty.
    Text(String),
    /// The whole response. It is the last part.
    End(ModelResponse),
}

/// A response as it arrives: texts, then [`ResponsePart::End`] or an error. It ends after either.
pub type ResponseStream = BoxStream<'static, Result<ResponsePart, ModelFailure>>;

/// A language model.
#[async_trait]
pub trait LanguageModel: Send + Sync {
    /// Checks that the settings suffice to ask for responses. Sends nothing.
    ///
    /// # Errors
    /// [`ModelFailure::NotConfigured`], as every request would fail.
    fn check(&self) -> Result<(), ModelFailure>;

    /// Asks for a response and waits until it begins.
    ///
    /// An implementation MUST
    /// - pass text on as soon as it arrives;
    /// - end every stream with [`ResponsePart::End`] or an error, and report a response that lacks the
    ///   provider's mark of its end, or whose parts cannot be distinguished, as
    ///   [`ModelFailure::Broken`];
    /// - end when the provider sends nothing for its timeout ([`ModelFailure::Timeout`]), and stop at
    ///   [`MAX_ANSWER_BYTES`](labdata_domain::agent::MAX_ANSWER_BYTES);
    /// - repeat a request only as long as nothing of its response has arrived, by
    ///   [`retry_delay`](labdata_domain::agent::retry_delay);
    /// - cancel the request when the future or the stream is dropped;
    /// - keep its key out of errors and logs
    ///   ([`provider_message`](labdata_domain::agent::provider_message)).
    ///
    /// # Errors
    /// See [`ModelFailure`].
    async fn response(&self, request: &ModelRequest) -> Result<ResponseStream, ModelFailure>;
}
