//! Everything that runs of the agent need besides the ports of the other use cases.

use std::{fmt, sync::Arc};

use labdata_domain::agent::{AgentLimits, ModelChoice, ModelFailure, Usage};
use labdata_ports::agent::{AgentRunRepository, ChatRepository, LanguageModel};

use super::tools::ToolRegistry;

/// The agent, made once by the composition root.
#[derive(Clone)]
pub struct Agent {
    /// The provider of models.
    pub model: Arc<dyn LanguageModel>,
    /// Saved chats.
    pub chats: Arc<dyn ChatRepository>,
    /// Runs in progress, and used tokens.
    pub runs: Arc<dyn AgentRunRepository>,
    /// The tools.
    pub tools: ToolRegistry,
    /// The models that runs may use.
    pub models: ModelChoice,
    /// Limits of runs.
    pub limits: AgentLimits,
    /// Hears of used tokens.
    pub observer: Arc<dyn UsageObserver>,
}

impl Agent {
    /// Checks that the operator has set a provider and a model. Sends nothing.
    ///
    /// # Errors
    /// [`ModelFailure::NotConfigured`], as every run would fail.
    pub fn check(&self) -> Result<(), ModelFailure> {
        self.model.check()?;
        if self.models.choose(None).is_err() {
            return Err(ModelFailure::NotConfigured("LABDATA_LLM_MODEL"));
        }
        Ok(())
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent").finish_non_exhaustive()
    }
}

/// Hears of the tokens that runs use on this server.
pub trait UsageObserver: Send + Sync {
    /// Tokens of one request and its response.
    fn used(&self, usage: Usage);
}

/// Observer that does nothing.
#[derive(Clone, Copy, Debug)]
pub struct NoUsageObserver;

impl UsageObserver for NoUsageObserver {
    fn used(&self, _: Usage) {}
}
