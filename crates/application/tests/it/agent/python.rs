//! Calls of `run_python`, without a Python.

use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use labdata_application::{
    agent::{
        RunAgent,
        chats::{delete_chat, get_chat, get_chat_file},
    },
    executions::start_execution::{StartExecution, start_execution},
    files::{sweep_uploads::sweep_objects, upload_file::UploadFile},
};
use labdata_domain::{
    agent::{AttachmentType, ChatMessage, PythonEnd, PythonFigure, PythonOutcome, PythonOutput},
    files::FilePath,
    people::scope::Scope::{Read, Write},
};
use labdata_memory::ScriptedPython;
use labdata_ports::agent::PythonContent;
use serde_json::{Value, json};
use time::Duration;

use super::harness::{Scripted, calls, outputs, prompted, result, says};
use crate::files::upload_file;

/// Image of the figure.
const IMAGE: &[u8] = b"\x89PNG\r\n\x1a\n...";

fn outcome() -> PythonOutcome {
    PythonOutcome {
        end: PythonEnd::Completed,
        stdout: PythonOutput {
            start: "0.5\n".to_owned(),
            ..PythonOutput::default()
        },
        stderr: String::new(),
        value: None,
        figures: vec![PythonFigure {
            name: "Figure 1".to_owned(),
            kind: AttachmentType::Png,
            content: IMAGE.to_vec(),
        }],
        omitted_figures: Vec::new(),
    }
}

/// The agent calls `run_python` with these arguments; the snippet has that outcome.
async fn scripted(arguments: &[Value]) -> (Scripted, ScriptedPython) {
    let arguments = arguments.iter();
    let script = arguments.map(|arguments| calls("run_python", arguments));
    let mut scripted = Scripted::new(script.chain([says("Done.")]).collect()).await;
    let python = ScriptedPython::default();
    python.then(outcome());
    scripted.lab.services.python = Arc::new(python.clone());
    (scripted, python)
}

#[tokio::test]
async fn inputs_that_cannot_be_used_are_refused_before_anything_runs() {
    let input = |input: Value| json!({ "code": "1", "inputs": [input] });
    let two = json!({ "code": "1", "inputs": [
        { "name": "a", "file_id": "01890000-0000-7000-8000-000000000000" },
        { "name": "a", "file_id": "01890000-0000-7000-8000-000000000000" },
    ] });
    let unknown = "01890000-0000-7000-8000-000000000000";
    let (scripted, python) = scripted(&[
        input(json!({ "name": "../a", "query": "SELECT 1" })),
        two,
        input(json!({ "name": "a" })),
        input(json!({ "name": "a", "query": "SELECT 1", "file_id": unknown })),
        input(json!({ "name": "a", "file_id": unknown })),
        input(json!({ "name": "a", "series": { "table": "none", "parents": ["1"] } })),
        json!({ "code": "" }),
    ])
    .await;
    let result = scripted.result(&[Read], "Plot.").await;
    let expected = [
        "inputs[0].name: a name has up to 64 letters",
        "inputs[1].name: a name has up to 64 letters",
        "inputs[0]: give exactly one of query, series and file_id",
        "inputs[0]: give exactly one of query, series and file_id",
        "file not found",
        "inputs.a: table not found: none of \"1\"",
        "the arguments do not fit:\narguments.code",
    ];
    let outputs = outputs(&result);
    assert_eq!(outputs.len(), expected.len());
    for (output, start) in outputs.iter().zip(expected) {
        let text = &output.text;
        assert!(output.is_error && text.starts_with(start), "{text}");
    }
    assert_eq!(python.snippets().len(), 0);
}

#[tokio::test]
async fn a_figure_is_a_file_of_the_chat_until_it_is_deleted() {
    let (scripted, python) = scripted(&[json!({ "code": "plot()" })]).await;
    let actor = scripted.lab.actor(&[Read, Write]);
    let command = RunAgent {
        save: true,
        ..prompted("Plot.")
    };
    let result = result(scripted.events(&actor, command).await);
    assert_eq!(python.snippets()[0].code, "plot()");
    let output = outputs(&result)[0].clone();
    let displayed: Value = serde_json::from_str(&output.text).unwrap();
    let figure = json!({ "name": "Figure 1", "media_type": "image/png", "size": IMAGE.len() });
    assert_eq!(
        displayed,
        json!({ "stdout": "0.5\n", "figures": [figure], "inputs": [] })
    );

    let (services, agent) = (&scripted.lab.services, &scripted.agent);
    let chat = result.chat_id.unwrap();
    let saved = get_chat(services, agent, &actor, chat).await.unwrap();
    let stored = saved.messages.iter().flat_map(ChatMessage::attachments);
    let ids: Vec<_> = stored.map(|file| file.id).collect();
    assert_eq!(ids, [output.attachments[0].id]);
    let file = get_chat_file(services, agent, &actor, chat, ids[0])
        .await
        .unwrap();
    let bytes: Vec<_> = file.body.bytes.collect().await;
    assert_eq!(bytes.into_iter().next().unwrap().unwrap(), IMAGE);
    let used = services.files.used_bytes(actor.organization).await.unwrap();
    assert_eq!(used, u64::try_from(IMAGE.len()).unwrap());

    delete_chat(services, agent, &actor, chat).await.unwrap();
    assert!(
        get_chat_file(services, agent, &actor, chat, ids[0])
            .await
            .is_err()
    );
    let left: Vec<_> = services.blobs.objects().collect().await;
    assert_eq!(left.len(), 0);
    assert_eq!(sweep_objects(services).await.unwrap(), 0);
}

#[tokio::test]
async fn the_sweep_finds_figures_of_a_chat_that_was_deleted_as_its_server_died() {
    let (scripted, _python) = scripted(&[json!({ "code": "plot()" })]).await;
    let actor = scripted.lab.actor(&[Read]);
    let command = RunAgent {
        save: true,
        ..prompted("Plot.")
    };
    let chat = result(scripted.events(&actor, command).await)
        .chat_id
        .unwrap();
    let (services, agent) = (&scripted.lab.services, &scripted.agent);
    scripted.lab.clock.advance(Duration::days(3));
    assert_eq!(sweep_objects(services).await.unwrap(), 0, "the chat has it");
    let (organization, user) = (actor.organization, actor.user);
    agent.chats.delete(organization, user, chat).await.unwrap();
    assert_eq!(sweep_objects(services).await.unwrap(), 1);
    let left: Vec<_> = services.blobs.objects().collect().await;
    assert_eq!(left.len(), 0);
}

#[tokio::test]
async fn a_run_that_is_not_saved_leaves_no_file() {
    let (scripted, _python) = scripted(&[json!({ "code": "plot()" })]).await;
    let result = scripted.result(&[Read], "Plot.").await;
    let output = outputs(&result)[0];
    assert_eq!(output.attachments[0].content.as_deref(), Some(IMAGE));
    let left: Vec<_> = scripted.lab.services.blobs.objects().collect().await;
    assert_eq!(left.len(), 0);
}

#[tokio::test]
async fn a_file_reaches_the_snippet_whole() {
    let mut lab = Scripted::new(Vec::new()).await;
    let python = ScriptedPython::default();
    python.then(outcome());
    lab.lab.services.python = Arc::new(python.clone());
    let actor = lab.lab.actor(&[Read, Write]);
    let execution = StartExecution {
        job_name: Some("Upload".to_owned()),
        ..StartExecution::default()
    };
    let services = &lab.lab.services;
    let execution = start_execution(services, &actor, execution).await.unwrap();
    let upload = UploadFile {
        path: FilePath::parse("plates/1.csv").unwrap(),
        content_type: None,
        execution: Some(execution.id),
        instrument: None,
        source: None,
        bytes: Bytes::from_static(b"a,b\n1,2\n"),
    };
    let file = upload_file(services, &actor, upload).await.unwrap();
    let input = json!({ "name": "plate", "file_id": file.id.to_string() });
    let arguments = json!({ "code": "1", "inputs": [input] });
    lab.model.then(calls("run_python", &arguments));
    lab.model.then(says("Done."));
    result(lab.events(&actor, prompted("Read.")).await);
    let PythonContent::File { file_name, bytes } = &python.snippets()[0].inputs[0].content else {
        panic!("a file");
    };
    assert_eq!(
        (file_name.as_str(), &bytes[..]),
        ("1.csv", &b"a,b\n1,2\n"[..])
    );
}
