//! Earlier messages of a chat that a model is reminded of.

use super::{AgentLimits, ChatMessage, ChatRole, Message};

/// Maximum number of bytes of earlier messages that a run begins with.
pub const MAX_HISTORY_BYTES: u64 = 256 << 10;

/// Returns the latest messages of a chat as a model gets them, at most `max_bytes`. They begin with a
/// prompt, so no tool result comes without its call.
#[must_use]
pub fn history(messages: &[ChatMessage], limits: &AgentLimits, max_bytes: u64) -> Vec<Message> {
    let mut bytes = 0_u64;
    let mut begin = messages.len();
    for (index, message) in messages.iter().enumerate().rev() {
        bytes = bytes.saturating_add(size_for_model(message, limits));
        if bytes > max_bytes {
            break;
        }
        // The history begins with a prompt: providers refuse a tool's result without its call.
        if message.role == ChatRole::User {
            begin = index;
        }
    }
    let latest = messages.get(begin..).unwrap_or_default();
    latest
        .iter()
        .flat_map(|message| for_model(message, limits))
        .collect()
}

/// The message as a model gets it, with the results of its tool calls.
pub(super) fn for_model(message: &ChatMessage, limits: &AgentLimits) -> Vec<Message> {
    if message.role == ChatRole::User {
        return vec![Message::User(message.content.clone())];
    }
    let calls = message.tool_calls.iter();
    let response = Message::Assistant {
        text: message.content.clone(),
        tool_calls: calls
            .clone()
            .map(|completed| completed.call.clone())
            .collect(),
    };
    let results = calls.map(|completed| Message::ToolResult {
        call_id: completed.call.id.clone(),
        output: completed.output.for_model(limits),
        is_error: completed.output.is_error,
    });
    std::iter::once(response).chain(results).collect()
}

fn size_for_model(message: &ChatMessage, limits: &AgentLimits) -> u64 {
    let most = u64::try_from(limits.model_output_bytes).unwrap_or(u64::MAX);
    let length = |length: usize| u64::try_from(length).unwrap_or(u64::MAX);
    let outputs = message.tool_calls.iter().map(|completed| {
        // The model gets at most this much of an output, however much is stored.
        length(completed.output.text.len()).min(most) + length(completed.call.input.size())
    });
    length(message.content.len()).saturating_add(outputs.sum())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use time::OffsetDateTime;

    use super::*;
    use crate::agent::{CompletedCall, ToolCall, ToolInput, ToolOutput};

    fn message(role: ChatRole, content: usize, outputs: &[usize]) -> ChatMessage {
        let calls = outputs.iter().enumerate();
        ChatMessage {
            role,
            content: "x".repeat(content),
            tool_calls: calls
                .map(|(index, length)| CompletedCall {
                    call: ToolCall {
                        id: format!("call {index}"),
                        name: "query_data".to_owned(),
                        input: ToolInput::parse(""),
                        provider_data: None,
                    },
                    output: ToolOutput::result("y".repeat(*length)),
                })
                .collect(),
            created_at: OffsetDateTime::UNIX_EPOCH,
        }
    }

    #[test]
    fn tool_results_follow_their_calls() {
        let chat = [
            message(ChatRole::User, 1, &[]),
            message(ChatRole::Assistant, 0, &[3, 4]),
            message(ChatRole::Assistant, 5, &[]),
        ];
        let messages = history(&chat, &AgentLimits::default(), MAX_HISTORY_BYTES);
        assert!(matches!(
            messages.as_slice(),
            [
                Message::User(_),
                Message::Assistant { .. },
                Message::ToolResult { call_id: first, .. },
                Message::ToolResult { call_id: second, .. },
                Message::Assistant { .. },
            ] if first == "call 0" && second == "call 1"
        ));
    }

    #[test]
    fn the_oldest_messages_are_left_out() {
        let turn = [
            message(ChatRole::User, 10, &[]),
            message(ChatRole::Assistant, 10, &[]),
        ];
        let chat = [turn.clone(), turn.clone(), turn].concat();
        for (budget, stored) in [
            (0, 0),
            (19, 0),
            (20, 2),
            (39, 2),
            (40, 4),
            (60, 6),
            (1_000, 6),
        ] {
            let messages = history(&chat, &AgentLimits::default(), budget);
            assert_eq!(messages.len(), stored, "{budget} bytes");
        }
    }

    proptest! {
        #[test]
        fn history_begins_with_a_prompt_within_its_budget(
            messages in proptest::collection::vec(
                (any::<bool>(), 0_usize..50, proptest::collection::vec(0_usize..50, 0..3)),
                0..20,
            ),
            budget in 0_u64..500,
        ) {
            let chat: Vec<ChatMessage> = messages
                .iter()
                .map(|(is_user, content, outputs)| match is_user {
                    true => message(ChatRole::User, *content, &[]),
                    false => message(ChatRole::Assistant, *content, outputs),
                })
                .collect();
            let limits = AgentLimits::default();
            let stored = history(&chat, &limits, budget);
            prop_assert!(stored.first().is_none_or(|first| matches!(first, Message::User(_))));
            let all: Vec<Message> = chat.iter().flat_map(|message| for_model(message, &limits)).collect();
            prop_assert!(all.ends_with(&stored));
            let bytes: usize = stored.iter().map(|message| match message {
                Message::User(text) | Message::Assistant { text, .. } => text.len(),
                Message::ToolResult { output, .. } => output.len(),
            }).sum();
            prop_assert!(u64::try_from(bytes).unwrap() <= budget);
        }
    }
}
