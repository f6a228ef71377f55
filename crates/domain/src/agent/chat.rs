//! Chats: saved conversations with the agent.

use time::OffsetDateTime;

use super::{Attachment, ToolCall, ToolOutput, Usage, text::storable};
use crate::{
    ids::ChatId,
    refusal::{ErrorCode, Refuse},
};

/// Maximum number of characters of a prompt.
pub const MAX_PROMPT_LENGTH: usize = 32_768;

/// Maximum number of characters of a chat's title.
pub const MAX_TITLE_LENGTH: usize = 80;

/// Maximum number of messages of a chat.
pub const MAX_CHAT_MESSAGES: u64 = 2_000;

/// Maximum number of bytes of the messages of a chat.
pub const MAX_CHAT_BYTES: u64 = 16 << 20;

/// Maximum number of bytes of the files of a chat.
pub const MAX_CHAT_FILE_BYTES: u64 = 256 << 20;

/// A saved conversation of one user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chat {
    /// Its id.
    pub id: ChatId,
    /// Its title.
    pub title: String,
    /// When it was saved.
    pub created_at: OffsetDateTime,
    /// When it was last continued.
    pub updated_at: OffsetDateTime,
    /// Tokens of its runs, as far as they were reported.
    pub usage: Usage,
}

impl Chat {
    /// A new chat that begins with that prompt.
    #[must_use]
    pub fn new(id: ChatId, prompt: &str, now: OffsetDateTime) -> Self {
        Self {
            id,
            title: title_of(prompt),
            created_at: now,
            updated_at: now,
            usage: Usage::default(),
        }
    }
}

/// Author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChatRole {
    /// The user.
    User,
    /// The model.
    Assistant,
}

impl ChatRole {
    /// Both roles.
    pub const ALL: [Self; 2] = [Self::User, Self::Assistant];

    /// Returns its name in the API and the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }

    /// Returns the role of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == name)
    }
}

/// A message of a chat: a prompt, or one response of the model with the tool calls that it asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct ChatMessage {
    /// Its author.
    pub role: ChatRole,
    /// Its text.
    pub content: String,
    /// Its tool calls and their outputs; none in a prompt.
    pub tool_calls: Vec<CompletedCall>,
    /// When it was complete.
    pub created_at: OffsetDateTime,
}

/// A tool call and its output.
#[derive(Clone, Debug, PartialEq)]
pub struct CompletedCall {
    /// The call.
    pub call: ToolCall,
    /// Its output.
    pub output: ToolOutput,
}

impl ChatMessage {
    /// The prompt of a user.
    #[must_use]
    pub fn prompt(text: &str, now: OffsetDateTime) -> Self {
        Self {
            role: ChatRole::User,
            content: storable(text),
            tool_calls: Vec::new(),
            created_at: now,
        }
    }

    /// The attachments of its tool calls.
    pub fn attachments(&self) -> impl Iterator<Item = &Attachment> {
        let calls = self.tool_calls.iter();
        calls.flat_map(|completed| &completed.output.attachments)
    }

    /// The message as a chat stores it: files have the content of its attachments.
    #[must_use]
    pub fn without_content(mut self) -> Self {
        for completed in &mut self.tool_calls {
            for attachment in &mut completed.output.attachments {
                attachment.content = None;
            }
        }
        self
    }

    /// The message without its attachments.
    #[must_use]
    pub fn without_attachments(mut self) -> Self {
        for completed in &mut self.tool_calls {
            completed.output.attachments = Vec::new();
        }
        self
    }

    /// Its size in bytes without its attachments, roughly.
    #[must_use]
    pub fn size(&self) -> u64 {
        // Figures have a separate limit, because their bytes are stored as objects.
        let calls = self.tool_calls.iter().map(|completed| {
            let CompletedCall { call, output } = completed;
            call.id.len() + call.name.len() + call.input.size() + output.text.len()
        });
        u64::try_from(calls.sum::<usize>() + self.content.len()).unwrap_or(u64::MAX)
    }
}

/// Refusal of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPrompt {
    /// It says nothing.
    #[error("the prompt is empty")]
    Empty,
    /// It is too long.
    #[error("the prompt is longer than {MAX_PROMPT_LENGTH} characters")]
    TooLong,
}

impl Refuse for InvalidPrompt {
    fn code(&self) -> ErrorCode {
        ErrorCode::InvalidPrompt
    }
}

/// Checks a prompt.
///
/// # Errors
/// [`InvalidPrompt`].
pub fn check_prompt(prompt: &str) -> Result<(), InvalidPrompt> {
    if prompt.trim().is_empty() {
        return Err(InvalidPrompt::Empty);
    }
    if prompt.chars().nth(MAX_PROMPT_LENGTH).is_some() {
        return Err(InvalidPrompt::TooLong);
    }
    Ok(())
}

/// Makes the title of a chat from its first prompt: the first line, shortened.
#[must_use]
pub fn title_of(prompt: &str) -> String {
    let lines = prompt.lines().map(|line| {
        line.split(|letter: char| letter.is_whitespace() || letter.is_control())
            .filter(|word| !word.is_empty())
            .collect::<Vec<_>>()
            .join(" ")
    });
    let line = lines.into_iter().find(|line| !line.is_empty());
    let Some(line) = line else {
        return "Chat".to_owned();
    };
    if line.chars().nth(MAX_TITLE_LENGTH).is_none() {
        return line;
    }
    // One fewer, for the ellipsis.
    let start: String = line.chars().take(MAX_TITLE_LENGTH - 1).collect();
    let start = match start.rsplit_once(' ') {
        // At a word, unless that would lose half of the title.
        Some((words, _)) if words.len() >= start.len() / 2 => words,
        _ => start.as_str(),
    };
    format!("{start}…")
}

/// Number and size of the messages of a chat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChatSize {
    /// Number of messages.
    pub messages: u64,
    /// Their size in bytes, roughly.
    pub bytes: u64,
    /// Size of their attachments in bytes.
    pub file_bytes: u64,
}

/// Refusal: the chat has no room for more messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this chat is full; start another one")]
pub struct ChatFull;

impl ChatSize {
    /// The size of a chat to which these messages are added.
    ///
    /// # Errors
    /// [`ChatFull`], if it would be above [`MAX_CHAT_MESSAGES`], [`MAX_CHAT_BYTES`] or
    /// [`MAX_CHAT_FILE_BYTES`].
    pub fn plus(self, messages: &[ChatMessage]) -> Result<Self, ChatFull> {
        let added = u64::try_from(messages.len()).unwrap_or(u64::MAX);
        let size = Self {
            messages: self.messages.saturating_add(added),
            bytes: messages.iter().fold(self.bytes, |bytes, message| {
                bytes.saturating_add(message.size())
            }),
            file_bytes: messages
                .iter()
                .flat_map(ChatMessage::attachments)
                .fold(self.file_bytes, |bytes, file| {
                    bytes.saturating_add(file.size)
                }),
        };
        if size.messages > MAX_CHAT_MESSAGES
            || size.bytes > MAX_CHAT_BYTES
            || size.file_bytes > MAX_CHAT_FILE_BYTES
        {
            return Err(ChatFull);
        }
        Ok(size)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{
        super::{AttachmentType, ToolInput},
        *,
    };

    #[test]
    fn a_title_is_the_first_line_of_the_prompt() {
        for (prompt, title) in [
            ("Plot the curves", "Plot the curves"),
            ("\n\n  Plot\tthe   curves \nof plate P1", "Plot the curves"),
            ("", "Chat"),
            ("\0", "Chat"),
        ] {
            assert_eq!(title_of(prompt), title);
        }
        let long = format!("{} end", "word ".repeat(30));
        assert_eq!(
            title_of(&long),
            format!("{}…", "word ".repeat(15).trim_end())
        );
        assert_eq!(title_of(&"x".repeat(81)), format!("{}…", "x".repeat(79)));
        assert_eq!(title_of(&"x".repeat(80)), "x".repeat(80));
    }

    #[test]
    fn a_prompt_says_something_and_has_an_end() {
        assert_eq!(check_prompt("x"), Ok(()));
        assert_eq!(check_prompt(" \n"), Err(InvalidPrompt::Empty));
        assert_eq!(check_prompt(&"ä".repeat(MAX_PROMPT_LENGTH)), Ok(()));
        let long = "ä".repeat(MAX_PROMPT_LENGTH + 1);
        assert_eq!(check_prompt(&long), Err(InvalidPrompt::TooLong));
    }

    #[test]
    fn a_chat_fills_up() {
        let message = ChatMessage::prompt(&"x".repeat(1 << 20), OffsetDateTime::UNIX_EPOCH);
        let many = vec![message; 16];
        let full = ChatSize::default().plus(&many).unwrap();
        assert_eq!((full.messages, full.bytes), (16, MAX_CHAT_BYTES));
        let one = [ChatMessage::prompt("x", OffsetDateTime::UNIX_EPOCH)];
        assert_eq!(full.plus(&one), Err(ChatFull));
        let most = ChatSize {
            messages: MAX_CHAT_MESSAGES,
            ..ChatSize::default()
        };
        assert_eq!(most.plus(&one), Err(ChatFull));
        assert_eq!(most.plus(&[]), Ok(most));
    }

    #[test]
    fn a_chat_fills_up_with_files() {
        let id = crate::ids::ChatFileId::new(uuid::Uuid::nil());
        let figure = Attachment::new(id, "Figure 1", AttachmentType::Png, vec![0; 10]);
        let call = ToolCall {
            id: "call_1".to_owned(),
            name: "run_python".to_owned(),
            input: ToolInput::parse("{}"),
            provider_data: None,
        };
        let output = ToolOutput::result(String::new()).with_attachments(vec![figure]);
        let message = ChatMessage {
            role: ChatRole::Assistant,
            tool_calls: vec![CompletedCall { call, output }],
            ..ChatMessage::prompt("", OffsetDateTime::UNIX_EPOCH)
        };
        let with_room = |left| ChatSize {
            file_bytes: MAX_CHAT_FILE_BYTES - left,
            ..ChatSize::default()
        };
        let messages = [message];
        let full = with_room(10).plus(&messages).unwrap();
        assert_eq!(full.file_bytes, MAX_CHAT_FILE_BYTES);
        assert_eq!(with_room(9).plus(&messages), Err(ChatFull));
    }

    #[test]
    fn roles_have_names_that_read_back() {
        for role in ChatRole::ALL {
            assert_eq!(ChatRole::from_name(role.as_str()), Some(role));
        }
        assert_eq!(ChatRole::from_name("system"), None);
    }

    proptest! {
        #[test]
        fn any_prompt_has_a_title(prompt in "(?s).{0,300}") {
            let title = title_of(&prompt);
            prop_assert!(!title.is_empty());
            prop_assert!(title.chars().count() <= MAX_TITLE_LENGTH);
            prop_assert!(!title.chars().any(char::is_control));
        }
    }
}
