//! A client of a scripted provider.

use std::{sync::Arc, time::Duration};

use futures::StreamExt;
use labdata_domain::agent::{Message, ModelFailure, ModelResponse};
use labdata_llm::{LlmClient, LlmSettings, Provider};
use labdata_ports::{
    IdSource,
    agent::{LanguageModel, ModelRequest, ResponsePart},
};
use labdata_redacted::Secret;
use labdata_test_llm::{Provider as Stub, Reply};

pub(crate) const KEY: &str = "sk-very-secret";

/// Random bytes that shorten every wait.
struct NoJitter;

impl IdSource for NoJitter {
    fn next_id(&self) -> uuid::Uuid {
        uuid::Uuid::nil()
    }

    fn fill_random(&self, buffer: &mut [u8]) {
        buffer.fill(0);
    }
}

pub(crate) fn client(provider: Provider, base_url: String) -> LlmClient {
    let settings = LlmSettings {
        provider: Some(provider),
        base_url: Some(base_url),
        api_key: Some(Secret::new(KEY.to_owned())),
        timeout: Duration::from_millis(400),
    };
    LlmClient::new(&settings, Arc::new(NoJitter)).unwrap()
}

/// A provider that speaks a dialect, and its client.
pub(crate) struct Server {
    pub(crate) stub: Stub,
    pub(crate) client: LlmClient,
}

impl Server {
    pub(crate) async fn speaking(provider: Provider) -> Self {
        let stub = Stub::start().await;
        let client = client(provider, stub.base_url());
        Self { stub, client }
    }

    /// Both dialects, each with these replies.
    pub(crate) async fn both(replies: &[Reply]) -> [Self; 2] {
        let servers = [
            Self::speaking(Provider::OpenAi).await,
            Self::speaking(Provider::Anthropic).await,
        ];
        for server in &servers {
            for reply in replies {
                server.stub.will(reply.clone());
            }
        }
        servers
    }

    /// Asks, and reads the answer to its end: its texts, and the end or the failure.
    pub(crate) async fn ask(&self) -> (String, Result<ModelResponse, ModelFailure>) {
        let mut text = String::new();
        let mut stream = match self.client.response(&request()).await {
            Ok(stream) => stream,
            Err(failure) => return (text, Err(failure)),
        };
        while let Some(part) = stream.next().await {
            match part {
                Ok(ResponsePart::Text(more)) => text.push_str(&more),
                Ok(ResponsePart::End(response)) => {
                    assert!(stream.next().await.is_none(), "the end is the last part");
                    return (text, Ok(response));
                }
                Err(failure) => {
                    assert!(stream.next().await.is_none(), "a failure is the last part");
                    return (text, Err(failure));
                }
            }
        }
        panic!("the answer has no end");
    }
}

pub(crate) fn request() -> ModelRequest {
    ModelRequest {
        model: "stub".to_owned(),
        instructions: "Answer.".to_owned(),
        messages: vec![Message::User("How many?".to_owned())],
        tools: Arc::new([]),
    }
}
