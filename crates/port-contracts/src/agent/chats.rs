//! Contract of [`ChatRepository`].

use std::{cmp::Reverse, collections::BTreeSet};

use futures::future::join_all;
use labdata_domain::{
    agent::{
        Attachment, AttachmentType, Chat, ChatMessage, ChatRole, CompletedCall, MAX_CHAT_BYTES,
        MAX_CHAT_FILE_BYTES, ToolCall, ToolInput, ToolOutput, Usage,
    },
    files::ObjectKey,
    ids::{ChatFileId, ChatId, UserId},
};
use labdata_ports::{
    PortError,
    agent::{AppendError, ChatRepository, SavedChat},
    files::FileRepository,
};
use serde_json::json;
use time::OffsetDateTime;

use crate::{
    assertions::assert_not_found,
    given::{self, at},
    lab::lab,
    paging::{ALL, assert_pages},
};

lab!(
    /// Chats. Files of the same store, because the objects of figures are its.
    pub struct ChatsLab {
        /// Chats.
        pub chats: dyn ChatRepository,
        /// Files.
        pub files: dyn FileRepository,
    }
);

impl ChatsLab {
    /// Saves a chat of ada.
    async fn save(&self, chat: &Chat, messages: &[ChatMessage]) -> Result<(), AppendError> {
        self.chats
            .save(self.ours, self.ada.id, chat, messages)
            .await
    }

    /// Appends messages to a chat of ada that used no tokens.
    async fn append(
        &self,
        chat: ChatId,
        messages: &[ChatMessage],
        seconds: i64,
    ) -> Result<Chat, AppendError> {
        let (ada, none) = (self.ada.id, Usage::default());
        self.chats
            .append(self.ours, ada, chat, messages, none, at(seconds))
            .await
    }

    /// A chat of ada.
    async fn get(&self, chat: ChatId) -> Result<SavedChat, PortError> {
        self.chats.get(self.ours, self.ada.id, chat).await
    }

    /// Deletes a chat of ada.
    async fn delete(&self, chat: ChatId) -> Result<Vec<ChatFileId>, PortError> {
        self.chats.delete(self.ours, self.ada.id, chat).await
    }

    /// A file of a chat of ada.
    async fn file(&self, chat: ChatId, file: ChatFileId) -> Result<Attachment, PortError> {
        self.chats.file(self.ours, self.ada.id, chat, file).await
    }
}

fn chat(prompt: &str, now: OffsetDateTime) -> Chat {
    Chat::new(ChatId::new(given::uuid()), prompt, now)
}

/// A figure as a saved chat has it.
fn figure(kind: AttachmentType) -> Attachment {
    Attachment {
        content: None,
        ..Attachment::new(
            ChatFileId::new(given::uuid()),
            "Figure ä",
            kind,
            vec![1, 2, 3],
        )
    }
}

/// A prompt and a response with a tool call of each kind.
fn turn(text: &str, now: OffsetDateTime) -> Vec<ChatMessage> {
    let arguments = json!({ "query": "SELECT 'ä\"'", "params": [1, 2.5, null, { "a": [] }] });
    let good = CompletedCall {
        call: ToolCall {
            id: "call_1".to_owned(),
            name: "query_data".to_owned(),
            input: ToolInput::parse(&arguments.to_string()),
            provider_data: Some(json!({ "thought_signature": "abc" })),
        },
        output: ToolOutput::result("{\"data\": [[1]]}\n\u{1f9ea}".to_owned())
            .with_attachments(AttachmentType::ALL.map(figure).to_vec()),
    };
    let bad = CompletedCall {
        call: ToolCall {
            id: "call_2".to_owned(),
            name: "no such tool".to_owned(),
            input: ToolInput::parse("{\"broken\": "),
            provider_data: None,
        },
        output: ToolOutput {
            bytes: 100_000,
            ..ToolOutput::error("there is no tool of that name".to_owned())
        },
    };
    vec![
        ChatMessage::prompt(text, now),
        ChatMessage {
            role: ChatRole::Assistant,
            content: format!("An answer to {text}"),
            tool_calls: vec![good, bad],
            created_at: now + time::Duration::microseconds(7),
        },
    ]
}

fn port<T>(result: Result<T, AppendError>) -> Result<T, PortError> {
    result.map_err(|error| match error {
        AppendError::Port(error) => error,
        AppendError::Full(full) => panic!("{full}"),
    })
}

crate::suite!(
    use agent::chats;

    /// Title, times and messages are stored, with every kind of tool call.
    async fn a_chat_reads_back_as_it_was_saved(lab: &ChatsLab) {
        let chat = chat("Wie viele \"Proben\"? – 2", at(0));
        let messages = turn("Wie viele?", at(0));
        lab.save(&chat, &messages).await.unwrap();
        let saved = lab.get(chat.id).await.unwrap();
        assert_eq!(saved.chat, chat);
        assert_eq!(saved.messages, messages);
    }

    /// A continued chat has all its messages in order, the usage of all its runs, and a later time of update.
    async fn messages_are_added_at_the_end(lab: &ChatsLab) {
        let used = Usage {
            input_tokens: Some(10),
            output_tokens: None,
            total_tokens: Some(12),
        };
        let chat = Chat {
            usage: used,
            ..chat("first", at(0))
        };
        let mut messages = turn("first", at(0));
        lab.save(&chat, &messages).await.unwrap();
        let more = turn("second", at(60));
        let continued = lab
            .chats
            .append(lab.ours, lab.ada.id, chat.id, &more, used, at(60))
            .await
            .unwrap();
        let expected = Chat {
            updated_at: at(60),
            usage: used.plus(used),
            ..chat
        };
        assert_eq!(continued, expected);
        messages.extend(more);
        let saved = lab.get(continued.id).await.unwrap();
        assert_eq!((saved.chat, saved.messages), (expected, messages));
    }

    /// An id that no chat has is not found.
    async fn an_unknown_chat_is_not_found(lab: &ChatsLab) {
        let unknown = ChatId::new(given::uuid());
        assert_not_found(lab.get(unknown).await);
        assert_not_found(lab.delete(unknown).await);
        let turn = turn("x", at(0));
        assert_not_found(port(lab.append(unknown, &turn, 0).await));
    }

    /// A colleague's chat is answered like one that does not exist, and stays as it is.
    async fn a_chat_of_another_user_is_not_found(lab: &ChatsLab) {
        let bob = lab.user(lab.ours, "bob@example.org").await;
        let (chat, messages) = (chat("hers", at(0)), turn("hers", at(0)));
        lab.save(&chat, &messages).await.unwrap();
        assert_not_found(lab.chats.get(lab.ours, bob.id, chat.id).await);
        assert_not_found(lab.chats.delete(lab.ours, bob.id, chat.id).await);
        assert_not_found(port(
            lab.chats
                .append(
                    lab.ours,
                    bob.id,
                    chat.id,
                    &messages,
                    Usage::default(),
                    at(1),
                )
                .await,
        ));
        assert_eq!(lab.get(chat.id).await.unwrap().messages, messages);
    }

    /// Another organization's chat is answered like one that does not exist.
    async fn a_chat_of_another_organization_is_not_found(lab: &ChatsLab) {
        let (chat, messages) = (chat("theirs", at(0)), turn("theirs", at(0)));
        lab.chats
            .save(lab.theirs, lab.eve.id, &chat, &messages)
            .await
            .unwrap();
        for user in [lab.ada.id, lab.eve.id] {
            assert_not_found(lab.chats.get(lab.ours, user, chat.id).await);
            assert_not_found(lab.chats.delete(lab.ours, user, chat.id).await);
            let appended = lab
                .chats
                .append(lab.ours, user, chat.id, &messages, Usage::default(), at(1))
                .await;
            assert_not_found(port(appended));
        }
    }

    /// A user of another organization, or of none, has no chat.
    async fn a_chat_needs_a_user_of_its_organization(lab: &ChatsLab) {
        for user in [lab.eve.id, UserId::new(given::uuid())] {
            let chat = chat("x", at(0));
            let saved = lab
                .chats
                .save(lab.ours, user, &chat, &turn("x", at(0)))
                .await;
            assert_not_found(port(saved));
            assert_not_found(lab.chats.get(lab.ours, user, chat.id).await);
        }
    }

    /// Messages beyond the size of a chat are refused as a whole, when it is saved and later.
    async fn a_full_chat_takes_no_message(lab: &ChatsLab) {
        let half = usize::try_from(MAX_CHAT_BYTES / 2).unwrap();
        let large = [ChatMessage::prompt(&"x".repeat(half + 1), at(0))];
        let twice = [large[0].clone(), large[0].clone()];
        let too_large = chat("too large", at(0));
        let saved = lab.save(&too_large, &twice).await;
        assert!(matches!(saved, Err(AppendError::Full(_))), "{saved:?}");
        assert_not_found(lab.get(too_large.id).await);

        let chat = chat("large", at(0));
        lab.save(&chat, &large).await.unwrap();
        let appended = lab.append(chat.id, &large, 1).await;
        assert!(
            matches!(appended, Err(AppendError::Full(_))),
            "{appended:?}"
        );
        let small = turn("small", at(2));
        lab.append(chat.id, &small, 2).await.unwrap();
        let saved = lab.get(chat.id).await.unwrap();
        assert_eq!((saved.messages.len(), saved.chat.updated_at), (3, at(2)));
    }

    /// Each of several runs that continue one chat at once adds its messages side by side.
    async fn messages_of_racing_runs_do_not_mix(lab: &ChatsLab) {
        let chat = chat("race", at(0));
        lab.save(&chat, &[]).await.unwrap();
        let turns: Vec<_> = (0..4)
            .map(|run| turn(&format!("run {run}"), at(run)))
            .collect();
        let appends = turns.iter().map(|turn| lab.append(chat.id, turn, 9));
        for appended in join_all(appends).await {
            appended.unwrap();
        }
        let saved = lab.get(chat.id).await.unwrap();
        assert_eq!(saved.messages.len(), 8);
        for pair in saved.messages.chunks(2) {
            assert_eq!(pair[1].content, format!("An answer to {}", pair[0].content));
        }
    }

    /// The list is ordered by creation time, then id, newest first, with any page size, and has no
    /// chat of others.
    async fn the_list_is_newest_first_and_of_one_user(lab: &ChatsLab) {
        let bob = lab.user(lab.ours, "bob@example.org").await;
        lab.chats
            .save(lab.ours, bob.id, &chat("his", at(5)), &[])
            .await
            .unwrap();
        let mut expected = Vec::new();
        for seconds in [20, 10, 30, 10] {
            let chat = chat("hers", at(seconds));
            lab.save(&chat, &turn("hers", at(seconds))).await.unwrap();
            expected.push(chat);
        }
        expected.sort_by_key(|chat| Reverse((chat.created_at, chat.id)));
        assert_eq!(
            lab.chats
                .list(lab.ours, lab.ada.id, ALL)
                .await
                .unwrap()
                .items,
            expected
        );
        let read = async |page| lab.chats.list(lab.ours, lab.ada.id, page).await;
        assert_pages([1, 3, 4], &expected, read).await;
    }

    /// After its deletion a chat is in no list and can be deleted no second time.
    async fn a_deleted_chat_is_gone_with_its_messages(lab: &ChatsLab) {
        let (deleted, stays) = (chat("gone", at(0)), chat("stays", at(1)));
        for chat in [&deleted, &stays] {
            lab.save(chat, &turn("x", at(0))).await.unwrap();
        }
        lab.delete(deleted.id).await.unwrap();
        assert_not_found(lab.get(deleted.id).await);
        assert_not_found(lab.delete(deleted.id).await);
        assert_eq!(
            lab.chats
                .list(lab.ours, lab.ada.id, ALL)
                .await
                .unwrap()
                .items,
            [stays]
        );
    }

    /// The files are there as the messages name them, for the user of the chat and in this chat alone. They go
    /// with it.
    async fn figures_of_messages_are_files_of_the_chat(lab: &ChatsLab) {
        let (first, other) = (chat("first", at(0)), chat("other", at(0)));
        let content = |mut message: ChatMessage| {
            for completed in &mut message.tool_calls {
                for file in &mut completed.output.attachments {
                    file.content = Some(vec![1, 2, 3].into());
                }
            }
            message
        };
        let messages = turn("first", at(0));
        let files: Vec<Attachment> = messages
            .iter()
            .flat_map(ChatMessage::attachments)
            .cloned()
            .collect();
        assert_eq!(files.len(), 2);
        let with_content: Vec<ChatMessage> = messages.iter().cloned().map(content).collect();
        lab.save(&first, &with_content).await.unwrap();
        let saved = lab.get(first.id).await.unwrap();
        assert_eq!(saved.messages, messages, "the content is not stored");
        let more = turn("second", at(1));
        lab.append(first.id, &more, 1).await.unwrap();
        lab.save(&other, &turn("other", at(0))).await.unwrap();
        for file in &files {
            let found = lab.file(first.id, file.id).await;
            assert_eq!(&found.unwrap(), file);
            let elsewhere = lab.file(other.id, file.id).await;
            assert_not_found(elsewhere);
        }
        let bob = lab.user(lab.ours, "bob@example.org").await;
        for stranger in [&bob, &lab.eve] {
            let found = lab
                .chats
                .file(stranger.organization, stranger.id, first.id, files[0].id)
                .await;
            assert_not_found(found);
        }
        let mut deleted = lab.delete(first.id).await.unwrap();
        deleted.sort_unstable();
        let own = messages.iter().chain(&more);
        let mut expected: Vec<ChatFileId> = own
            .flat_map(ChatMessage::attachments)
            .map(|file| file.id)
            .collect();
        expected.sort_unstable();
        assert_eq!(deleted, expected);
        let found = lab.file(first.id, files[0].id).await;
        assert_not_found(found);
    }

    /// The sweep of objects spares those of a chat's figures, and takes them once the chat is deleted, even if
    /// the program died before it removed them. Their bytes count for the organization as long.
    async fn objects_of_figures_are_referenced_until_their_chat_is_deleted(lab: &ChatsLab) {
        let (chat, messages) = (chat("x", at(0)), turn("x", at(0)));
        lab.save(&chat, &messages).await.unwrap();
        let attachments: Vec<&Attachment> =
            messages.iter().flat_map(ChatMessage::attachments).collect();
        let own: Vec<_> = attachments
            .iter()
            .map(|file| (lab.ours, file.object()))
            .collect();
        let stray = (lab.ours, ObjectKey::new(given::uuid()));
        let foreign = (lab.theirs, own[0].1);
        let all: Vec<_> = own.iter().copied().chain([stray, foreign]).collect();
        let unreferenced = async || {
            let found = lab.files.unreferenced(&all).await.unwrap();
            found.into_iter().collect::<BTreeSet<_>>()
        };
        assert_eq!(unreferenced().await, BTreeSet::from([stray, foreign]));
        let size: u64 = attachments.iter().map(|file| file.size).sum();
        assert!(size > 0);
        assert_eq!(lab.files.used_bytes(lab.ours).await.unwrap(), size);
        assert_eq!(lab.files.used_bytes(lab.theirs).await.unwrap(), 0);

        lab.delete(chat.id).await.unwrap();
        assert_eq!(unreferenced().await, all.iter().copied().collect());
        assert_eq!(lab.files.used_bytes(lab.ours).await.unwrap(), 0);
    }

    /// The sizes of all files of a chat count.
    async fn a_chat_has_room_for_so_many_bytes_of_files(lab: &ChatsLab) {
        let chat = chat("large", at(0));
        let sized = |size| {
            let mut messages = turn("large", at(0));
            for completed in messages
                .iter_mut()
                .flat_map(|message| &mut message.tool_calls)
            {
                for file in &mut completed.output.attachments {
                    file.size = size;
                }
            }
            messages
        };
        let half = sized(MAX_CHAT_FILE_BYTES / 4);
        lab.save(&chat, &half).await.unwrap();
        for (messages, fits) in [
            (sized(MAX_CHAT_FILE_BYTES / 4 + 1), false),
            (sized(MAX_CHAT_FILE_BYTES / 4), true),
            (sized(1), false),
        ] {
            let added = lab.append(chat.id, &messages, 1).await;
            assert_eq!(added.is_ok(), fits);
        }
    }
);
