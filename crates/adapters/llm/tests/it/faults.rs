//! Every fault of a provider ends in a correct answer or a typed failure.

use std::time::Duration;

use futures::StreamExt;
use labdata_domain::agent::{BrokenStream, ModelFailure, StopReason};
use labdata_llm::Provider;
use labdata_ports::agent::{LanguageModel, ResponsePart};
use labdata_test_llm::{Fault, Reply};
use serde_json::json;
use tokio::time::{Instant, timeout};

use crate::server::{KEY, Server, client, request};

fn reply() -> Reply {
    Reply::text("Let me look. ")
        .and_call("a", "query_data", "{\"query\": \"SELECT 1\"}")
        .and_call("b", "query_data", "{\"query\": \"SELECT 2\"}")
}

/// Asks both dialects; checks text and failure of each.
async fn fails(fault: Fault, text: &str, is_expected: impl Fn(&ModelFailure) -> bool) {
    let replies = vec![reply().with_fault(fault); 3];
    for server in Server::both(&replies).await {
        let (read, end) = server.ask().await;
        assert_eq!(read, text, "{fault:?}");
        let failure = end.unwrap_err();
        assert!(is_expected(&failure), "{fault:?}: {failure:?}");
    }
}

#[tokio::test]
async fn no_fault_hangs() {
    let asked = Fault::ALL.into_iter().map(|(name, fault)| async move {
        for server in Server::both(&vec![reply().with_fault(fault); 3]).await {
            let asked = timeout(Duration::from_secs(10), server.ask()).await;
            assert!(asked.is_ok(), "{name}");
        }
    });
    futures::future::join_all(asked).await;
}

#[tokio::test]
async fn a_stream_without_its_end_is_broken() {
    fails(Fault::NoEnd, "Let me look. ", |failure| {
        *failure == ModelFailure::Broken(BrokenStream::NoEnd)
    })
    .await;
}

#[tokio::test]
async fn a_connection_that_breaks_is_a_broken_answer() {
    fails(Fault::Reset, "Let me look. ", |failure| {
        *failure == ModelFailure::Broken(BrokenStream::Connection)
    })
    .await;
}

#[tokio::test]
async fn an_event_that_is_no_json_is_a_broken_answer() {
    fails(Fault::Garbage, "Let me look. ", |failure| {
        matches!(failure, ModelFailure::Broken(BrokenStream::Malformed(_)))
    })
    .await;
}

#[tokio::test]
async fn an_event_without_an_end_is_too_long() {
    fails(Fault::EndlessEvent, "Let me look. ", |failure| {
        *failure == ModelFailure::Broken(BrokenStream::TooLong)
    })
    .await;
}

#[tokio::test]
async fn a_call_without_an_index_is_not_dropped_in_silence() {
    for server in Server::both(&[reply().with_fault(Fault::NoIndex)]).await {
        let (_, end) = server.ask().await;
        assert_eq!(end, Err(ModelFailure::Broken(BrokenStream::NoIndex)));
    }
}

#[tokio::test]
async fn calls_with_the_same_index_are_not_merged() {
    fails(Fault::CollidingIndex, "Let me look. ", |failure| {
        *failure == ModelFailure::Broken(BrokenStream::CollidingIndex)
    })
    .await;
}

#[tokio::test]
async fn an_error_in_the_stream_says_what_the_provider_says() {
    fails(Fault::ErrorEvent, "Let me look. ", |failure| {
        *failure == ModelFailure::Broken(BrokenStream::Reported("overloaded".to_owned()))
    })
    .await;
}

#[tokio::test]
async fn silence_ends_at_the_timeout() {
    for fault in [Fault::Silence, Fault::SilentBody] {
        fails(fault, "", |failure| {
            matches!(failure, ModelFailure::Timeout(_))
        })
        .await;
    }
    fails(Fault::SilentEnd, "Let me look. ", |failure| {
        matches!(failure, ModelFailure::Timeout(_))
    })
    .await;
}

#[tokio::test]
async fn an_answer_that_takes_longer_than_the_timeout_is_read_as_long_as_it_arrives() {
    let slow = Reply::text(&"word ".repeat(12)).with_pace(Duration::from_millis(60));
    for server in Server::both(&[slow]).await {
        let (text, end) = server.ask().await;
        assert_eq!(text, "word ".repeat(12));
        assert_eq!(end.unwrap().text, text);
    }
}

#[tokio::test]
async fn indexes_from_one_make_no_further_call() {
    for server in Server::both(&[reply().with_fault(Fault::IndexFromOne)]).await {
        let calls = server.ask().await.1.unwrap().tool_calls;
        let ids: Vec<&str> = calls.iter().map(|call| call.id.as_str()).collect();
        assert_eq!(ids, ["a", "b"]);
    }
}

#[tokio::test]
async fn calls_that_come_twice_have_the_same_id() {
    for server in Server::both(&[reply().with_fault(Fault::DuplicateCalls)]).await {
        let calls = server.ask().await.1.unwrap().tool_calls;
        let ids: Vec<&str> = calls.iter().map(|call| call.id.as_str()).collect();
        assert_eq!(ids, ["a", "a", "b", "b"]);
    }
}

#[tokio::test]
async fn arguments_that_are_no_json_reach_the_caller() {
    let reply = Reply::text("").and_call("a", "query_data", "{\"query\": ");
    for server in Server::both(&[reply]).await {
        let calls = server.ask().await.1.unwrap().tool_calls;
        assert_eq!(calls[0].arguments, "{\"query\": ");
    }
}

#[tokio::test]
async fn an_answer_may_be_cut_into_pieces_anywhere() {
    for bytes in [1, 2, 7, 64] {
        let reply = Reply::text("Größe: 5 µL \u{1f9ea}")
            .and_call("a", "b", "{\"ä\": 1}")
            .with_split(bytes);
        for server in Server::both(&[reply]).await {
            let (text, end) = server.ask().await;
            assert_eq!(text, "Größe: 5 µL \u{1f9ea}");
            assert_eq!(end.unwrap().tool_calls[0].arguments, "{\"ä\": 1}");
        }
    }
}

#[tokio::test]
async fn the_reason_of_the_end_is_known() {
    for (reason, stop) in [
        ("stop", StopReason::Complete),
        ("length", StopReason::Length),
        ("content_filter", StopReason::Filtered),
    ] {
        let reply = Reply {
            finish_reason: reason,
            ..Reply::text("x")
        };
        for server in Server::both(&[reply]).await {
            assert_eq!(server.ask().await.1.unwrap().stop, stop);
        }
    }
}

#[tokio::test]
async fn a_refusal_for_the_moment_is_tried_three_times() {
    let busy = Reply::error(503, "busy");
    for server in Server::both(&[busy.clone(), busy.clone(), Reply::text("42")]).await {
        assert_eq!(server.ask().await.1.unwrap().text, "42");
        assert_eq!(server.stub.requests().len(), 3);
    }
    for server in Server::both(&[busy.clone(), busy.clone(), busy.clone(), busy]).await {
        let failure = server.ask().await.1.unwrap_err();
        assert!(matches!(failure, ModelFailure::Refused { status: 503, .. }));
        assert_eq!(server.stub.requests().len(), 3);
    }
}

#[tokio::test]
async fn what_is_no_stream_is_named_at_once() {
    for media_type in ["text/html", "application/json"] {
        let page =
            Reply::text("x").with_header("content-type", &format!("{media_type}; charset=x"));
        for server in Server::both(&[page, Reply::text("42")]).await {
            let failure = server.ask().await.1.unwrap_err();
            assert_eq!(failure, ModelFailure::NoStream(media_type.to_owned()));
            let said = failure.to_string();
            assert!(
                said.contains(media_type) && said.contains("LABDATA_LLM_BASE_URL"),
                "{said}"
            );
            assert_eq!(server.stub.requests().len(), 1);
        }
    }
}

#[tokio::test]
async fn a_connection_that_gives_no_answer_is_tried_again() {
    let none = Reply::text("").with_fault(Fault::NoResponse);
    for server in Server::both(&[none, Reply::text("42")]).await {
        assert_eq!(server.ask().await.1.unwrap().text, "42");
    }
}

#[tokio::test]
async fn the_provider_says_when_to_try_again() {
    let busy = Reply::error(429, "busy").with_header("retry-after", "1");
    for server in Server::both(&[busy, Reply::text("42")]).await {
        let start = Instant::now();
        assert_eq!(server.ask().await.1.unwrap().text, "42");
        assert!(start.elapsed() >= Duration::from_secs(1));
    }
}

#[tokio::test]
async fn a_refusal_for_good_is_not_repeated() {
    for status in [400, 401, 404, 422] {
        for server in Server::both(&[Reply::error(status, "no"), Reply::text("42")]).await {
            let failure = server.ask().await.1.unwrap_err();
            let expected = ModelFailure::Refused {
                status,
                retry_after: None,
                message: "no".to_owned(),
            };
            assert_eq!(failure, expected);
            assert_eq!(server.stub.requests().len(), 1);
        }
    }
}

#[tokio::test]
async fn nothing_is_repeated_after_the_first_part() {
    for fault in [Fault::Reset, Fault::NoEnd, Fault::ErrorEvent] {
        for server in Server::both(&[reply().with_fault(fault), Reply::text("42")]).await {
            assert!(server.ask().await.1.is_err());
            assert_eq!(server.stub.requests().len(), 1, "{fault:?}");
        }
    }
}

#[tokio::test]
async fn an_unreachable_provider_is_named_as_such() {
    // Port 9 of this machine answers nothing.
    for provider in [Provider::OpenAi, Provider::Anthropic] {
        let client = client(provider, "http://127.0.0.1:9/v1".to_owned());
        let failure = client.response(&request()).await.err().unwrap();
        assert!(
            matches!(failure, ModelFailure::Unreachable(_)),
            "{failure:?}"
        );
    }
}

#[tokio::test]
async fn a_caller_that_leaves_ends_the_request() {
    let slow = Reply::text(&"word ".repeat(10_000)).with_pace(Duration::from_millis(20));
    for server in Server::both(&[slow]).await {
        let mut stream = server.client.response(&request()).await.unwrap();
        assert!(matches!(
            stream.next().await,
            Some(Ok(ResponsePart::Text(_)))
        ));
        drop(stream);
        timeout(Duration::from_secs(5), server.stub.idle())
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn the_key_is_in_no_failure() {
    let message = format!("Incorrect API key provided: {KEY}");
    for server in Server::both(&[Reply::error(401, &message)]).await {
        let failure = server.ask().await.1.unwrap_err();
        let displayed = format!("{failure} {failure:?} {:?}", server.client);
        assert!(!displayed.contains(KEY), "{displayed}");
        assert!(
            displayed.contains("Incorrect API key provided: …"),
            "{displayed}"
        );
    }
}

#[tokio::test]
async fn an_answer_of_calls_alone_has_no_text() {
    let reply = Reply::call("a", "get_schema", &json!({}));
    for server in Server::both(&[reply]).await {
        let (text, end) = server.ask().await;
        assert_eq!((text.as_str(), end.unwrap().tool_calls.len()), ("", 1));
    }
}
