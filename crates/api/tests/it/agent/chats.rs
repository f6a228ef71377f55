//! Chats that are saved, listed, continued and deleted.

use labdata_test_llm::Reply;
use serde_json::{Value, json};

use super::lab::{AgentLab, CHATS, Events, fields, run};

fn path(chat: &Value) -> String {
    format!("{CHATS}/{}", chat.as_str().unwrap())
}

/// Saves a chat; returns its id.
async fn saved(lab: &AgentLab, prompt: &str, answer: &str) -> Value {
    lab.provider.will(Reply::text(answer));
    let body = json!({ "prompt": prompt, "save": true });
    let result = run(&lab.client, body).await.json(200);
    result["chat_id"].clone()
}

#[tokio::test]
async fn a_saved_run_is_a_chat() {
    let lab = AgentLab::start().await;
    lab.will_call("list_jobs", &json!({}), "None.");
    let body = json!({ "prompt": "Which jobs\nare there?", "save": true });
    let mut events = Events::of(&lab.client, body).await;
    let started = events.until("run_started").await;
    let result = events.until("result").await["result"].clone();
    assert_eq!(started["chat_id"], result["chat_id"]);

    let chats = lab.client.get(CHATS).await.json(200);
    assert_eq!(chats.as_array().unwrap().len(), 1);
    assert_eq!(
        fields(&chats[0]),
        ["created_at", "id", "title", "updated_at", "usage"]
    );
    assert_eq!(chats[0]["id"], result["chat_id"]);
    assert_eq!(chats[0]["title"], "Which jobs");
    assert_eq!(chats[0]["usage"], result["usage"]);

    let chat = lab.client.get(&path(&result["chat_id"])).await.json(200);
    assert_eq!(
        fields(&chat),
        [
            "created_at",
            "id",
            "messages",
            "title",
            "updated_at",
            "usage"
        ]
    );
    let messages = chat["messages"].as_array().unwrap();
    let message = |index: usize| {
        let message = &messages[index];
        assert_eq!(
            fields(message),
            ["content", "created_at", "role", "tool_calls"]
        );
        (message["role"].clone(), message["content"].clone())
    };
    assert_eq!(message(0), (json!("user"), json!("Which jobs\nare there?")));
    assert_eq!(message(1), (json!("assistant"), json!("")));
    assert_eq!(message(2), (json!("assistant"), json!("None.")));
    assert_eq!(messages[0]["tool_calls"], json!([]));
    assert_eq!(messages[1]["tool_calls"], result["tool_calls"]);
    assert_eq!(messages.len(), 3);
}

#[tokio::test]
async fn a_chat_is_continued_with_what_was_said() {
    let lab = AgentLab::start().await;
    let chat = saved(&lab, "My plate is P1.", "Noted.").await;
    lab.provider.will(Reply::text("P1."));
    let body = json!({ "prompt": "Which plate?", "chat_id": chat });
    let result = run(&lab.client, body).await.json(200);
    assert_eq!(result["chat_id"], chat);
    let sent = lab.provider.requests()[1].body["messages"].clone();
    let said: Vec<&str> = sent
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|message| message["content"].as_str())
        .collect();
    assert_eq!(said[1..], ["My plate is P1.", "Noted.", "Which plate?"]);
    let chat = lab.client.get(&path(&chat)).await.json(200);
    assert_eq!(chat["messages"].as_array().unwrap().len(), 4);
    assert_eq!(chat["title"], "My plate is P1.");
    let usage = json!({ "input_tokens": 24, "output_tokens": 10, "total_tokens": 34 });
    assert_eq!(chat["usage"], usage);
    assert_eq!(
        lab.client
            .get(CHATS)
            .await
            .json(200)
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test]
async fn runs_that_are_not_saved_leave_no_chat() {
    let lab = AgentLab::start().await;
    lab.provider.will(Reply::text("Hello."));
    assert_eq!(lab.run("Hello").await["chat_id"], Value::Null);
    assert_eq!(lab.client.get(CHATS).await.json(200), json!([]));
}

#[tokio::test]
async fn chats_are_listed_by_pages_newest_first() {
    let lab = AgentLab::start().await;
    let mut expected = Vec::new();
    for prompt in ["one", "two", "three"] {
        expected.insert(0, saved(&lab, prompt, "Yes.").await);
        lab.on.server.clock.advance(time::Duration::SECOND);
    }
    let first = lab.client.get(&format!("{CHATS}?limit=2")).await;
    let second = lab.client.get(&first.next().unwrap()).await;
    assert_eq!(second.next(), None);
    let pages = [first.json(200), second.json(200)];
    let ids: Vec<Value> = pages
        .iter()
        .flat_map(|page| page.as_array().unwrap())
        .map(|chat| chat["id"].clone())
        .collect();
    assert_eq!(ids, expected);
    for (query, place) in [
        ("limit=0", "query.limit"),
        ("limit=1001", "query.limit"),
        ("limit=x", "query.limit"),
        ("cursor=x", "query.cursor"),
    ] {
        let reply = lab.client.get(&format!("{CHATS}?{query}")).await;
        assert_eq!(reply.problems()[0].1, place, "{query}");
    }
    let all = lab.client.get(&format!("{CHATS}?limit=1000")).await;
    assert_eq!(all.json(200).as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn chats_that_are_saved_or_deleted_between_two_pages_move_no_other() {
    let lab = AgentLab::start().await;
    let mut chats = Vec::new();
    for prompt in ["one", "two", "three", "four"] {
        chats.push(saved(&lab, prompt, "Yes.").await);
    }
    let first = lab.client.get(&format!("{CHATS}?limit=2")).await;
    let next = first.next().unwrap();
    saved(&lab, "five", "Yes.").await;
    lab.client.delete(&path(&chats[3])).await;
    let second = lab.client.get(&next).await;
    assert_eq!(second.next(), None);
    let ids: Vec<Value> = [first.json(200), second.json(200)]
        .iter()
        .flat_map(|page| page.as_array().unwrap())
        .map(|chat| chat["id"].clone())
        .collect();
    chats.reverse();
    assert_eq!(ids, chats);
}

#[tokio::test]
async fn a_run_that_continues_a_chat_saves_no_second_one() {
    let lab = AgentLab::start().await;
    let chat = saved(&lab, "one", "Yes.").await;
    lab.provider.will(Reply::text("Yes."));
    let body = json!({ "prompt": "two", "chat_id": chat, "save": true });
    let result = run(&lab.client, body).await.json(200);
    assert_eq!(result["chat_id"], chat);
    let list = lab.client.get(CHATS).await.json(200);
    assert_eq!(list.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_chat_is_its_users_alone() {
    let lab = AgentLab::start().await;
    let chat = saved(&lab, "Secret", "Yes.").await;
    for other in [
        lab.on.server.colleague().await,
        lab.on.server.stranger().await,
    ] {
        assert_eq!(other.get(CHATS).await.json(200), json!([]));
        assert_eq!(other.get(&path(&chat)).await.detail(404), "chat not found");
        assert_eq!(other.delete(&path(&chat)).await.status, 404);
        let body = json!({ "prompt": "x", "chat_id": chat });
        assert_eq!(run(&other, body).await.status, 404);
    }
    assert_eq!(lab.client.get(&path(&chat)).await.status, 200);
}

#[tokio::test]
async fn a_deleted_chat_is_gone() {
    let lab = AgentLab::start().await;
    let chat = saved(&lab, "Hello", "Yes.").await;
    let reply = lab.client.delete(&path(&chat)).await;
    assert_eq!((reply.status.as_u16(), reply.text.as_str()), (204, ""));
    assert_eq!(lab.client.delete(&path(&chat)).await.status, 404);
    assert_eq!(lab.client.get(&path(&chat)).await.status, 404);
    assert_eq!(lab.client.get(CHATS).await.json(200), json!([]));
}

#[tokio::test]
async fn a_chat_that_is_deleted_during_its_run_costs_no_answer() {
    let lab = AgentLab::start().await;
    let chat = saved(&lab, "Hello", "Yes.").await;
    let slow = Reply::text("still there").with_pace(std::time::Duration::from_millis(200));
    lab.provider.will(slow);
    let body = json!({ "prompt": "And now?", "chat_id": chat });
    let mut events = Events::of(&lab.client, body).await;
    events.until("text_delta").await;
    assert_eq!(lab.client.delete(&path(&chat)).await.status, 204);
    let result = events.until("result").await["result"].clone();
    assert_eq!(result["output"], "still there");
    assert_eq!(result["chat_id"], Value::Null);
}
