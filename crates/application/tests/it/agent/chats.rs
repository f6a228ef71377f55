//! Runs that are saved as chats.

use labdata_application::agent::{RunAgent, chats::get_chat};
use labdata_domain::{
    agent::{ChatRole, Message},
    people::scope::Scope::Read,
};
use serde_json::json;

use super::harness::{Scripted, calls, prompted, result, says};

#[tokio::test]
async fn a_run_is_saved_as_a_chat_and_continued() {
    let script = vec![
        calls("list_jobs", &json!({})),
        says("None."),
        says("Still none."),
    ];
    let scripted = Scripted::new(script).await;
    let actor = scripted.lab.actor(&[Read]);
    let command = RunAgent {
        save: true,
        ..prompted("Which jobs?\nAll of them.")
    };
    let first = result(scripted.events(&actor, command).await);
    let id = first.chat_id.unwrap();
    let command = RunAgent {
        chat_id: Some(id),
        ..prompted("And now?")
    };
    let second = result(scripted.events(&actor, command).await);
    assert_eq!(second.chat_id, Some(id));
    let saved = get_chat(&scripted.lab.services, &scripted.agent, &actor, id)
        .await
        .unwrap();
    assert_eq!(saved.chat.title, "Which jobs?");
    let roles: Vec<ChatRole> = saved.messages.iter().map(|message| message.role).collect();
    let (user, assistant) = (ChatRole::User, ChatRole::Assistant);
    assert_eq!(roles, [user, assistant, assistant, user, assistant]);
    let asked = scripted.model.requests().pop().unwrap().messages;
    let kinds: Vec<&str> = asked
        .iter()
        .map(|message| match message {
            Message::User(_) => "user",
            Message::Assistant { .. } => "assistant",
            Message::ToolResult { .. } => "tool",
        })
        .collect();
    assert_eq!(kinds, ["user", "assistant", "tool", "assistant", "user"]);
}
