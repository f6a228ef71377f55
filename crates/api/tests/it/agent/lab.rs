//! A server whose agent asks a scripted provider of models.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use labdata_application::{Services, agent::Agent};
use labdata_domain::agent::{AgentLimits, ModelChoice};
use labdata_llm::{LlmClient, LlmSettings, Provider as Dialect};
use labdata_ports::agent::PythonSandbox;
use labdata_postgres::DatabaseSettings;
use labdata_python_sandbox::{SnippetSandbox, SnippetSettings};
use labdata_redacted::Secret;
use labdata_sandbox::{Sandbox, Settings};
use labdata_test_llm::{Provider, Reply as Answer};
use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::{
    on_postgres::OnPostgres,
    server::{Client, Reply, send},
};

/// Path of runs.
pub(crate) const RUNS: &str = "/api/v1/agent/runs";

/// Path of chats.
pub(crate) const CHATS: &str = "/api/v1/agent/chats";

/// Key of the provider, which nothing may show.
pub(crate) const KEY: &str = "sk-of-the-provider";

/// A server on PostgreSQL, a client with every scope, and the provider of its models.
pub(crate) struct AgentLab {
    pub(crate) on: OnPostgres,
    pub(crate) client: Client,
    pub(crate) provider: Provider,
}

impl AgentLab {
    /// The provider speaks chat completions.
    pub(crate) async fn start() -> Self {
        Self::of(Dialect::OpenAi, |agent| agent).await
    }

    /// The same, waiting long for a provider that sends nothing.
    pub(crate) async fn patient() -> Self {
        Self::waiting(Dialect::OpenAi, Duration::from_hours(1), |agent| agent).await
    }

    /// Python snippets really run.
    pub(crate) async fn with_python() -> Self {
        let provider = Provider::start().await;
        let settings = llm_settings(&provider, Dialect::OpenAi, Duration::from_secs(2));
        let on = OnPostgres::start(
            DatabaseSettings::default(),
            |mut services| {
                services.python = snippets();
                services
            },
            |agent, services| on_provider(agent, services, &settings),
        )
        .await;
        Self {
            client: on.client.clone(),
            on,
            provider,
        }
    }

    /// The provider speaks that dialect; the test changes the agent.
    pub(crate) async fn of(dialect: Dialect, change: impl FnOnce(Agent) -> Agent) -> Self {
        Self::waiting(dialect, Duration::from_secs(2), change).await
    }

    async fn waiting(
        dialect: Dialect,
        timeout: Duration,
        change: impl FnOnce(Agent) -> Agent,
    ) -> Self {
        let provider = Provider::start().await;
        let settings = llm_settings(&provider, dialect, timeout);
        let on = OnPostgres::with_agent(|agent, services| {
            change(on_provider(agent, services, &settings))
        })
        .await;
        Self {
            client: on.client.clone(),
            on,
            provider,
        }
    }

    /// The result of a run without a stream.
    pub(crate) async fn run(&self, prompt: &str) -> Value {
        run(&self.client, json!({ "prompt": prompt }))
            .await
            .json(200)
    }

    /// The events of a run.
    pub(crate) async fn stream(&self, prompt: &str) -> Events {
        Events::of(&self.client, json!({ "prompt": prompt })).await
    }

    /// Defines the table `sample`.
    pub(crate) async fn define_sample(&self) {
        let definition = json!({ "semantic_category": "curated", "columns": [
            { "name": "name", "data_type": "string", "is_nullable": false, "is_unique": true },
        ] });
        self.on.define("sample", definition).await;
    }

    /// The provider calls this tool, and then says `text`.
    pub(crate) fn will_call(&self, tool: &str, arguments: &Value, text: &str) {
        self.provider.will(Answer::call("call_1", tool, arguments));
        self.provider.will(Answer::text(text));
    }
}

fn llm_settings(provider: &Provider, dialect: Dialect, timeout: Duration) -> LlmSettings {
    LlmSettings {
        provider: Some(dialect),
        base_url: Some(provider.base_url()),
        api_key: Some(Secret::new(KEY.to_owned())),
        timeout,
    }
}

/// The agent with the models `small` and `large` of that provider.
fn on_provider(agent: Agent, services: &Services, settings: &LlmSettings) -> Agent {
    Agent {
        model: Arc::new(LlmClient::new(settings, Arc::clone(&services.ids)).unwrap()),
        models: ModelChoice {
            default: Some("small".to_owned()),
            allowed: vec!["large".to_owned()],
        },
        limits: AgentLimits::default(),
        ..agent
    }
}

/// Data directory of the adapter's tests, so that the packages of snippets are installed once.
pub(super) fn python_data() -> PathBuf {
    let data = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("python-sandbox");
    fs::create_dir_all(&data).unwrap();
    fs::set_permissions(&data, PermissionsExt::from_mode(0o755)).unwrap();
    data
}

/// The sandbox of this machine.
fn snippets() -> Arc<dyn PythonSandbox> {
    let supervisor = vec![
        env!("CARGO_BIN_EXE_labdata").into(),
        "run-supervisor".into(),
    ];
    Arc::new(SnippetSandbox::new(
        Arc::new(Sandbox::new(Settings::new(python_data(), supervisor))),
        SnippetSettings {
            timeout: Duration::from_mins(10),
            ..SnippetSettings::default()
        },
    ))
}

/// Runs the agent without a stream.
pub(crate) async fn run(client: &Client, mut body: Value) -> Reply {
    body["stream"] = false.into();
    client.post(RUNS, &body).await
}

/// Events of a run that is streamed.
pub(crate) struct Events {
    pub(crate) response: Response,
    /// Received text that is not read yet.
    rest: String,
    /// Number of signs of life so far.
    pub(crate) pings: usize,
}

/// An event.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) id: u64,
    pub(crate) data: Value,
}

impl Events {
    /// Begins a run.
    pub(crate) async fn of(client: &Client, mut body: Value) -> Self {
        body["stream"] = true.into();
        let response = client.request(Method::POST, RUNS).json(&body).send();
        let response = response.await.unwrap();
        assert_eq!(response.status(), 200);
        Self {
            response,
            rest: String::new(),
            pings: 0,
        }
    }

    /// The next event; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            while let Some((block, rest)) = self.rest.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.rest = rest;
                if block == ": ping" {
                    self.pings += 1;
                    continue;
                }
                return Some(Event::read(&block));
            }
            let piece = self.response.chunk().await.unwrap()?;
            self.rest.push_str(std::str::from_utf8(&piece).unwrap());
        }
    }

    /// The data of the next event of that name; others before it are skipped.
    pub(crate) async fn until(&mut self, name: &str) -> Value {
        while let Some(event) = self.next().await {
            if event.name == name {
                return event.data;
            }
        }
        panic!("the stream ended without {name}");
    }

    /// All events to the end.
    pub(crate) async fn all(mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        events
    }
}

impl Event {
    /// Reads the lines of an event, which are in this order.
    fn read(block: &str) -> Self {
        let lines: Vec<&str> = block.lines().collect();
        let [name, id, data] = lines[..] else {
            panic!("{block}");
        };
        let event = Self {
            name: name.strip_prefix("event: ").unwrap().to_owned(),
            id: id.strip_prefix("id: ").unwrap().parse().unwrap(),
            data: serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap(),
        };
        assert_eq!(event.data["type"], event.name.as_str());
        event
    }
}

/// The names of events.
pub(crate) fn names(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.name.as_str()).collect()
}

/// The names of the fields of an object.
pub(crate) fn fields(object: &Value) -> Vec<&str> {
    let object = object.as_object().unwrap();
    object.keys().map(String::as_str).collect()
}

/// A request without a body.
pub(crate) async fn call(client: &Client, method: Method, path: &str) -> Reply {
    send(client.request(method, path)).await
}
