use proptest::prelude::*;

use super::*;

const NOW: OffsetDateTime = OffsetDateTime::UNIX_EPOCH;

fn limits(steps: u32, tool_calls: u32) -> AgentLimits {
    AgentLimits {
        steps,
        tool_calls,
        ..AgentLimits::default()
    }
}

fn start(steps: u32, tool_calls: u32) -> Run {
    Run::start(limits(steps, tool_calls), Vec::new(), "How many?", NOW)
}

fn call(id: &str, arguments: &str) -> RequestedCall {
    RequestedCall {
        id: id.to_owned(),
        name: "query_data".to_owned(),
        arguments: arguments.to_owned(),
        provider_data: None,
    }
}

fn text(text: &str) -> ModelResponse {
    ModelResponse {
        text: text.to_owned(),
        ..ModelResponse::default()
    }
}

fn calls(text: &str, calls: &[RequestedCall]) -> ModelResponse {
    ModelResponse {
        text: text.to_owned(),
        tool_calls: calls.to_vec(),
        usage: Usage {
            input_tokens: Some(10),
            output_tokens: Some(1),
            total_tokens: None,
        },
        stop: StopReason::Complete,
    }
}

fn pending(next: Next) -> PendingCalls {
    match next {
        Next::Calls(pending) => *pending,
        Next::End(end) => panic!("the run ended: {end:?}"),
    }
}

fn ended(next: Next) -> RunResult {
    match next {
        Next::End(end) => *end,
        Next::Calls(calls) => panic!("the run continues: {calls:?}"),
    }
}

fn outputs(pending: &PendingCalls) -> Vec<ToolOutput> {
    let outputs = pending.calls().iter();
    outputs
        .map(|call| ToolOutput::result(call.id.clone()))
        .collect()
}

#[test]
fn a_failed_run_has_its_question_its_calls_and_why_it_failed() {
    let calls = calls("I look.", &[call("a", "{}")]);
    let pending = pending(start(25, 50).answered(calls, NOW));
    let outputs = outputs(&pending);
    let failure = ModelFailure::Timeout(60);
    let failed = pending.completed(outputs, NOW).fail(&failure, "", NOW);
    assert_eq!(failed.reason, EndReason::Failed);
    let [question, calls, end] = &failed.messages[..] else {
        panic!("{failed:?}");
    };
    assert_eq!(question.content, "How many?");
    assert_eq!(calls.tool_calls.len(), 1);
    assert_eq!(
        end.content,
        "I look.\n\n(The run failed: the provider of the model sent nothing for 60 s.)"
    );
}

#[test]
fn an_answer_without_calls_ends_the_run() {
    let end = ended(start(25, 50).answered(text(" 42 "), NOW));
    assert_eq!(
        (end.output.as_str(), end.reason),
        ("42", EndReason::Answered)
    );
    let contents: Vec<&str> = end
        .messages
        .iter()
        .map(|message| message.content.as_str())
        .collect();
    assert_eq!(contents, ["How many?", "42"]);
}

#[test]
fn outputs_of_tools_go_to_the_model_in_order() {
    let response = calls("Let me look.", &[call("a", "{}"), call("b", r#"{"x": 1}"#)]);
    let pending = pending(start(25, 50).answered(response, NOW));
    let outputs = outputs(&pending);
    let run = pending.completed(outputs, NOW);
    let messages = run.messages();
    assert_eq!(messages[0], Message::User("How many?".to_owned()));
    assert!(
        matches!(&messages[1], Message::Assistant { text, tool_calls }
        if text == "Let me look." && tool_calls.len() == 2)
    );
    for (message, id) in messages[2..].iter().zip(["a", "b"]) {
        let expected = Message::ToolResult {
            call_id: id.to_owned(),
            output: id.to_owned(),
            is_error: false,
        };
        assert_eq!(*message, expected);
    }
    let end = ended(run.answered(calls("2", &[]), NOW));
    assert_eq!(end.usage.total_tokens, Some(22));
    assert_eq!(end.tool_calls().count(), 2);
}

#[test]
fn a_call_that_comes_twice_is_made_once() {
    let response = calls("", &[call("a", "{}"), call("a", "{}"), call("b", "{}")]);
    let pending = pending(start(25, 50).answered(response, NOW));
    let ids: Vec<&str> = pending
        .calls()
        .iter()
        .map(|call| call.id.as_str())
        .collect();
    assert_eq!(ids, ["a", "b"]);
}

#[test]
fn another_call_of_the_same_id_is_made_too() {
    let response = calls("", &[call("a", "{}"), call("a", "{\"n\": 1}")]);
    let pending = pending(start(25, 50).answered(response, NOW));
    let [first, second] = pending.calls() else {
        panic!("{pending:?}");
    };
    assert_eq!(first.id, "a");
    assert!(second.id != "a" && second.input != first.input);
}

#[test]
fn an_id_of_an_earlier_step_is_replaced_and_a_missing_one_made() {
    let run = start(25, 50);
    let first = pending(run.answered(calls("", &[call("call_0", "{}")]), NOW));
    let run = first.completed(Vec::new(), NOW);
    let again = [call("call_0", "{}"), call("", "{}"), call("", "{}")];
    let second = pending(run.answered(calls("", &again), NOW));
    let ids: BTreeSet<&str> = second.calls().iter().map(|call| call.id.as_str()).collect();
    assert_eq!(ids.len(), 3);
    assert!(!ids.contains("call_0"));
}

#[test]
fn arguments_that_are_no_object_are_an_error_of_the_call_alone() {
    let response = calls("", &[call("a", "{\"x\": "), call("b", "{}")]);
    let pending = pending(start(25, 50).answered(response, NOW));
    assert!(pending.calls()[0].input.object().is_err());
    assert!(pending.calls()[1].input.object().is_ok());
}

#[test]
fn the_last_step_calls_no_tool_and_says_why_it_ended() {
    let response = || calls("So far 3.", &[call("", "{}")]);
    let first = pending(start(2, 50).answered(response(), NOW));
    let run = first.completed(Vec::new(), NOW);
    let end = ended(run.answered(response(), NOW));
    assert_eq!(end.reason, EndReason::Steps(2));
    assert_eq!(
        end.output,
        "So far 3.\n\n(The run ended after 2 steps, the limit. This is the state that it had reached.)"
    );
    assert_eq!(end.tool_calls().count(), 1);
}

#[test]
fn no_call_is_made_beyond_their_limit() {
    let two = [call("a", "{}"), call("b", "{}")];
    let first = pending(start(25, 3).answered(calls("Step one.", &two), NOW));
    let run = first.completed(Vec::new(), NOW);
    let end = ended(run.answered(calls(" ", &two), NOW));
    assert_eq!(end.reason, EndReason::ToolCalls(3));
    assert!(
        end.output
            .starts_with("Step one.\n\n(The run ended at the limit of 3 tool calls.")
    );
    assert_eq!(end.tool_calls().count(), 2);
}

#[test]
fn a_run_out_of_time_ends_with_the_text_that_it_has() {
    let later = NOW + Duration::minutes(11);
    let run = start(25, 50);
    assert_eq!(run.time_left(later), Duration::ZERO);
    let end = run.clone().stop(run.out_of_time(), "Half of", later);
    assert!(
        end.output
            .starts_with("Half of\n\n(The run ended after 600 s")
    );
    let end = ended(run.answered(calls("Next: ", &[call("a", "{}")]), later));
    assert_eq!(end.reason, EndReason::Duration(Duration::minutes(10)));
}

#[test]
fn a_partly_made_round_of_calls_ends_with_errors_for_the_rest() {
    let response = calls("", &[call("a", "{}"), call("b", "{}")]);
    let pending = pending(start(25, 50).answered(response, NOW));
    let end = pending.stop(
        EndReason::Cancelled,
        vec![ToolOutput::result("1".to_owned())],
        NOW,
    );
    let errors: Vec<bool> = end.tool_calls().map(|call| call.output.is_error).collect();
    assert_eq!(errors, [false, true]);
}

#[test]
fn answers_that_are_cut_off_or_empty_say_so() {
    for (stop, content, reason, note) in [
        (StopReason::Length, "Half", EndReason::Length, "cut off"),
        (StopReason::Filtered, "", EndReason::Filtered, "withheld"),
        (StopReason::Complete, "", EndReason::Empty, "no response"),
    ] {
        let response = ModelResponse {
            stop,
            ..text(content)
        };
        let end = ended(start(25, 50).answered(response, NOW));
        assert_eq!(end.reason, reason);
        assert!(
            end.output.starts_with(content) && end.output.contains(note),
            "{}",
            end.output
        );
    }
}

#[test]
fn nothing_of_a_run_holds_nul() {
    let response = calls("a\0b", &[call("i\0d", r#"{"x": "\u0000"}"#)]);
    let pending = pending(start(25, 50).answered(response, NOW));
    let outputs = vec![ToolOutput::result("\0".to_owned())];
    let run = pending.completed(outputs, NOW);
    let displayed = format!("{:?}", run.transcript);
    assert!(
        !displayed.contains("\\0") && !displayed.contains("\\u0000"),
        "{displayed}"
    );
}

proptest! {
    /// For any responses of a model, a run ends within its limits, and no id occurs twice.
    #[test]
    fn every_run_ends_within_its_limits(
        steps in 1_u32..6,
        tool_calls in 0_u32..8,
        responses in proptest::collection::vec(
            proptest::collection::vec(("[abc]?", "\\PC{0,8}"), 0..5),
            0..8,
        ),
    ) {
        let mut run = start(steps, tool_calls);
        let (mut taken, mut made) = (0_u32, 0_u32);
        let mut ids = BTreeSet::new();
        let mut responses = responses.into_iter();
        let end = loop {
            let requested = responses.next().unwrap_or_default();
            let requested: Vec<RequestedCall> =
                requested.iter().map(|(id, arguments)| call(id, arguments)).collect();
            taken += 1;
            prop_assert!(taken <= steps);
            match run.answered(calls("text", &requested), NOW) {
                Next::End(end) => break end,
                Next::Calls(pending) => {
                    for call in pending.calls() {
                        made += 1;
                        prop_assert!(ids.insert(call.id.clone()), "{} is there twice", call.id);
                    }
                    let outputs = outputs(&pending);
                    run = pending.completed(outputs, NOW);
                }
            }
        };
        prop_assert!(made <= tool_calls);
        prop_assert!(!end.output.is_empty());
        prop_assert_eq!(end.usage.total_tokens, Some(u64::from(taken) * 11));
        let recorded: Vec<&str> = end.tool_calls().map(|call| call.call.id.as_str()).collect();
        prop_assert_eq!(recorded.len(), ids.len());
        for completed in end.tool_calls() {
            prop_assert_eq!(&completed.output.text, &completed.call.id);
        }
    }
}
