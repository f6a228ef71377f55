//! The contract of the port, in both dialects.

use std::sync::Arc;

use labdata_domain::agent::ModelResponse;
use labdata_llm::Provider;
use labdata_port_contracts::{Harness, Subject, agent::language_model::Scripted, async_trait};
use labdata_ports::agent::LanguageModel;
use labdata_test_llm::{Fault, Reply, Usage};

use crate::server::Server;

/// Makes a harness of a dialect.
macro_rules! dialect {
    ($name:ident, $provider:expr) => {
        struct $name(Server);

        #[async_trait]
        impl Harness for $name {
            async fn fresh() -> Self {
                Self(Server::speaking($provider).await)
            }
        }

        impl Subject<dyn LanguageModel> for $name {
            fn subject(&self) -> Arc<dyn LanguageModel> {
                Arc::new(self.0.client.clone())
            }
        }

        #[async_trait]
        impl Scripted for $name {
            async fn will_respond(&self, response: ModelResponse) {
                self.0.stub.will(reply(&response));
            }

            async fn will_refuse(&self) {
                self.0
                    .stub
                    .otherwise(|_| Reply::error(429, "slow down").with_header("retry-after", "30"));
            }

            async fn will_break_off(&self, text: &str) {
                self.0.stub.will(Reply::text(text).with_fault(Fault::NoEnd));
            }
        }
    };
}

fn reply(response: &ModelResponse) -> Reply {
    let reply = Reply {
        usage: Usage {
            input: response.usage.input_tokens.unwrap_or_default(),
            output: response.usage.output_tokens.unwrap_or_default(),
        },
        ..Reply::text(&response.text)
    };
    response.tool_calls.iter().fold(reply, |reply, call| {
        reply.and_call(&call.id, &call.name, &call.arguments)
    })
}

mod chat_completions {
    use super::*;

    dialect!(ChatCompletions, Provider::OpenAi);
    labdata_port_contracts::language_model!(ChatCompletions);
}

mod messages {
    use super::*;

    dialect!(Messages, Provider::Anthropic);
    labdata_port_contracts::language_model!(Messages);
}
