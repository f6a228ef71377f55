//! A response as it is put together from its parts.

use labdata_domain::agent::{
    BrokenStream, MAX_ANSWER_BYTES, ModelResponse, RequestedCall, StopReason, Usage,
};
use serde_json::Value;

/// Maximum number of tool calls of one response.
const MAX_CALLS: usize = 128;

/// Effect of an event.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Read {
    /// None that the caller sees.
    Nothing,
    /// A tool call has begun or grown.
    CallPart,
    /// More text.
    Text(String),
    /// The whole response.
    End(ModelResponse),
    /// The provider reports an error, with its status if it says which.
    Error {
        /// HTTP status that the error would have had.
        status: Option<u16>,
        /// The message.
        message: String,
    },
}

/// The parts of a response so far.
#[derive(Debug, Default)]
pub(crate) struct Assembly {
    text: String,
    calls: Vec<(u64, RequestedCall)>,
    bytes: usize,
    pub(crate) usage: Usage,
    pub(crate) stop: StopReason,
}

/// A part of a tool call.
#[derive(Debug, Default)]
pub(crate) struct CallPart<'a> {
    pub(crate) id: &'a str,
    pub(crate) name: &'a str,
    pub(crate) arguments: &'a str,
    pub(crate) provider_data: Option<Value>,
}

impl Assembly {
    /// Adds text.
    pub(crate) fn text(&mut self, text: &str) -> Result<(), BrokenStream> {
        self.grow(text.len())?;
        self.text.push_str(text);
        Ok(())
    }

    /// Adds a part of the call at that index: its first one, or one that continues it.
    pub(crate) fn call(&mut self, index: u64, part: CallPart<'_>) -> Result<(), BrokenStream> {
        self.grow(part.id.len() + part.name.len() + part.arguments.len())?;
        let known = self.calls.iter_mut().find(|(own, _)| *own == index);
        let Some((_, call)) = known else {
            if self.calls.len() >= MAX_CALLS {
                return Err(BrokenStream::TooLong);
            }
            let call = RequestedCall {
                id: part.id.to_owned(),
                name: part.name.to_owned(),
                arguments: part.arguments.to_owned(),
                provider_data: part.provider_data,
            };
            self.calls.push((index, call));
            return Ok(());
        };
        // Some providers repeat id and name in every part.
        let other = |own: &str, new: &str| !own.is_empty() && !new.is_empty() && own != new;
        if other(&call.id, part.id) || other(&call.name, part.name) {
            return Err(BrokenStream::CollidingIndex);
        }
        // They may also come in a later part than the first.
        if call.id.is_empty() {
            part.id.clone_into(&mut call.id);
        }
        if call.name.is_empty() {
            part.name.clone_into(&mut call.name);
        }
        call.arguments.push_str(part.arguments);
        if part.provider_data.is_some() {
            call.provider_data = part.provider_data;
        }
        Ok(())
    }

    /// True if there is a call at that index.
    pub(crate) fn has_call(&self, index: u64) -> bool {
        self.calls.iter().any(|(own, _)| *own == index)
    }

    /// The whole response.
    pub(crate) fn finish(&mut self) -> ModelResponse {
        let calls = std::mem::take(&mut self.calls);
        ModelResponse {
            text: std::mem::take(&mut self.text),
            tool_calls: calls.into_iter().map(|(_, call)| call).collect(),
            usage: self.usage.with_total(),
            stop: self.stop,
        }
    }

    fn grow(&mut self, bytes: usize) -> Result<(), BrokenStream> {
        self.bytes = self.bytes.saturating_add(bytes);
        // Counts text and arguments together, since both are in memory until the end.
        if self.bytes > MAX_ANSWER_BYTES {
            return Err(BrokenStream::TooLong);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part<'a>(id: &'a str, arguments: &'a str) -> CallPart<'a> {
        CallPart {
            id,
            arguments,
            ..CallPart::default()
        }
    }

    #[test]
    fn calls_grow_side_by_side() {
        let mut assembly = Assembly::default();
        assembly.call(1, part("b", "{")).unwrap();
        assembly.call(0, part("a", "[")).unwrap();
        assembly.call(1, part("", "}")).unwrap();
        assembly.call(0, part("a", "]")).unwrap();
        let calls = assembly.finish().tool_calls;
        let calls: Vec<_> = calls
            .iter()
            .map(|call| (call.id.as_str(), call.arguments.as_str()))
            .collect();
        assert_eq!(calls, [("b", "{}"), ("a", "[]")]);
    }

    #[test]
    fn two_calls_have_two_indexes() {
        let mut assembly = Assembly::default();
        assembly.call(0, part("a", "{}")).unwrap();
        assert_eq!(
            assembly.call(0, part("b", "{}")),
            Err(BrokenStream::CollidingIndex)
        );
    }

    #[test]
    fn an_answer_has_a_maximum_length_and_number_of_calls() {
        let mut assembly = Assembly::default();
        assembly.text(&"x".repeat(MAX_ANSWER_BYTES)).unwrap();
        assert_eq!(assembly.call(0, part("a", "")), Err(BrokenStream::TooLong));
        let mut assembly = Assembly::default();
        for index in 0..128 {
            assembly.call(index, part("", "{}")).unwrap();
        }
        assert_eq!(
            assembly.call(u64::MAX, part("", "")),
            Err(BrokenStream::TooLong)
        );
    }
}
