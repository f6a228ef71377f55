//! The agent: its model, its limits, and where chats are stored.

use std::{sync::Arc, time::Duration};

use labdata_application::{
    Services,
    agent::{Agent, NoUsageObserver},
};
use labdata_domain::agent::{AgentLimits, ModelChoice};
use labdata_llm::{InvalidLlm, LlmClient, LlmSettings, Provider};
use labdata_ports::IdSource;
use labdata_postgres::{PgAgentRunRepository, PgChatRepository};
use labdata_redacted::Secret;
use time::Duration as Span;

use super::DatabaseServer;
use crate::settings::{LlmProvider, Settings};

/// Checks the key of a model's provider.
///
/// # Errors
/// The reason, in one line.
pub fn check_model_key(key: &str) -> Result<(), String> {
    LlmSettings::check_key(key).map_err(|error| error.to_string())
}

impl DatabaseServer {
    /// Creates the agent over this database and the configured provider of models.
    ///
    /// # Errors
    /// When a setting of the provider is wrong.
    pub fn agent(&self, settings: &Settings, services: &Services) -> anyhow::Result<Agent> {
        let llm = &settings.llm;
        let model = language_model(settings, Arc::clone(&services.ids))?;
        Ok(Agent {
            model: Arc::new(model),
            chats: Arc::new(PgChatRepository::new(self.database.clone())),
            runs: Arc::new(PgAgentRunRepository::new(self.database.clone())),
            tools: labdata_operations::tools::all(),
            models: ModelChoice {
                default: llm.model.clone(),
                allowed: llm.models.clone(),
            },
            limits: AgentLimits {
                steps: settings.agent.max_steps,
                tool_calls: settings.agent.max_tool_calls,
                duration: Span::minutes(settings.agent.timeout_minutes.into()),
                runs_per_organization: settings.agent.concurrency,
                monthly_tokens: settings.agent.monthly_tokens,
                ..AgentLimits::default()
            },
            observer: Arc::new(NoUsageObserver),
        })
    }
}

/// Creates the client of the configured provider of models.
///
/// # Errors
/// When a setting of the provider is wrong.
pub(crate) fn language_model(
    settings: &Settings,
    ids: Arc<dyn IdSource>,
) -> Result<LlmClient, InvalidLlm> {
    let llm = &settings.llm;
    let access = LlmSettings {
        provider: llm.provider.map(provider),
        base_url: llm.base_url.as_ref().map(Secret::reveal).map(str::to_owned),
        api_key: llm.api_key.clone(),
        timeout: Duration::from_secs(llm.timeout_seconds.into()),
    };
    LlmClient::new(&access, ids)
}

const fn provider(provider: LlmProvider) -> Provider {
    match provider {
        LlmProvider::OpenAi => Provider::OpenAi,
        LlmProvider::Anthropic => Provider::Anthropic,
        LlmProvider::Gemini => Provider::Gemini,
        LlmProvider::Ollama => Provider::Ollama,
    }
}
