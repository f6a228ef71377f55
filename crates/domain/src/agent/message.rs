//! Messages between the agent and a model.

use serde_json::{Map, Value};

use super::{
    ToolOutput, Usage,
    text::{storable, storable_object},
};

/// A message of the conversation that a model continues.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// A text of the user's.
    User(String),
    /// An earlier response of the model.
    Assistant {
        /// Its text; may be empty if it called tools.
        text: String,
        /// Its tool calls. The results follow, in the same order.
        tool_calls: Vec<ToolCall>,
    },
    /// Result of a tool call.
    ToolResult {
        /// Id of the call.
        call_id: String,
        /// The output, shortened to what a model gets.
        output: String,
        /// True if the call failed; the output says why.
        is_error: bool,
    },
}

impl Message {
    /// Its size in bytes, roughly.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let bytes = match self {
            Self::User(text) => text.len(),
            Self::Assistant { text, tool_calls } => {
                let calls = tool_calls.iter();
                let calls = calls.map(|call| call.name.len() + call.input.size());
                text.len() + calls.sum::<usize>()
            }
            Self::ToolResult { output, .. } => output.len(),
        };
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

/// Call of a tool that the model asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// Id, unique within the run.
    pub id: String,
    /// Name of the tool, which may not exist.
    pub name: String,
    /// Its arguments.
    pub input: ToolInput,
    /// Data of the provider's that belongs to the call and must be sent back with it unchanged.
    pub provider_data: Option<Value>,
}

/// Arguments of a tool call.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolInput {
    /// A JSON object, as it should be.
    Object(Map<String, Value>),
    /// Any other text.
    Invalid(String),
}

/// Number of characters of invalid arguments that the model is displayed.
const SHOWN_ARGUMENTS: usize = 200;

impl ToolInput {
    /// Reads the arguments as a model wrote them. An empty text is an empty object: it is how models
    /// call a tool without parameters.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        // Some providers send no arguments at all for a tool without required ones.
        if text.trim().is_empty() {
            return Self::Object(Map::new());
        }
        match serde_json::from_str(text) {
            // `jsonb` takes no NUL character, which a model may write.
            Ok(Value::Object(object)) => Self::Object(storable_object(object)),
            // Not a failure of the run: the model reads the error and can call again.
            _ => Self::Invalid(storable(text)),
        }
    }

    /// The object, if it is one.
    ///
    /// # Errors
    /// The output of the failed call, which tells the model why.
    pub fn object(&self) -> Result<&Map<String, Value>, ToolOutput> {
        match self {
            Self::Object(object) => Ok(object),
            Self::Invalid(text) => {
                let start: String = text.chars().take(SHOWN_ARGUMENTS).collect();
                Err(ToolOutput::error(format!(
                    "the arguments are not a JSON object; the tool was not called. They begin: {start}"
                )))
            }
        }
    }

    /// Their size in bytes, roughly.
    #[must_use]
    pub fn size(&self) -> usize {
        match self {
            Self::Object(object) => object
                .iter()
                .map(|(key, value)| key.len() + size(value))
                .sum(),
            Self::Invalid(text) => text.len(),
        }
    }
}

fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| size(item) + 1).sum::<usize>() + 2,
        Value::Object(object) => object
            .iter()
            .map(|(key, value)| key.len() + size(value) + 4)
            .sum(),
        // An estimate: sizes bound memory, they are not lengths of JSON.
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
    }
}

/// One whole response of a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelResponse {
    /// Its text.
    pub text: String,
    /// The tool calls that it asks for, in order.
    pub tool_calls: Vec<RequestedCall>,
    /// The tokens that it took.
    pub usage: Usage,
    /// Why it ended.
    pub stop: StopReason,
}

/// Tool call as a provider reports it, unchecked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestedCall {
    /// Id; some providers send none, or the same one twice.
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// The arguments: a JSON object, if the model did it right.
    pub arguments: String,
    /// See [`ToolCall::provider_data`].
    pub provider_data: Option<Value>,
}

/// Reason why a response ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StopReason {
    /// It is complete.
    #[default]
    Complete,
    /// It reached the provider's maximum length.
    Length,
    /// The provider withheld the rest.
    Filtered,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_are_an_object_or_an_error_for_the_model() {
        let empty = ToolInput::parse(" ");
        assert_eq!(empty.object(), Ok(&Map::new()));
        let object = ToolInput::parse(r#"{"a": 1}"#);
        assert_eq!(
            Value::Object(object.object().unwrap().clone()),
            json!({ "a": 1 })
        );
        for text in ["[1]", "\"x\"", "null", "{\"a\": ", "call it"] {
            let output = ToolInput::parse(text).object().unwrap_err();
            assert!(output.is_error);
            assert!(output.text.ends_with(text), "{}", output.text);
        }
        let long = ToolInput::parse(&"x".repeat(10_000)).object().unwrap_err();
        assert!(long.text.len() < 400);
    }

    #[test]
    fn nul_is_replaced_wherever_it_is() {
        let input = ToolInput::parse(r#"{"a\u0000": [{"b": "\u0000"}]}"#);
        let expected = json!({ "a\u{fffd}": [{ "b": "\u{fffd}" }] });
        assert_eq!(Value::Object(input.object().unwrap().clone()), expected);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in ".*") {
            let input = ToolInput::parse(&text);
            prop_assert!(input.size() <= text.len().max(64) * 8);
            if let Err(output) = input.object() {
                prop_assert!(output.text.len() <= 1024);
            }
        }
    }
}
