//! Everything that runs of the agent need besides the ports of the other use cases.

use std::{fmt, sync::Arc};

use labdata_domain::agent::{AgentLimits, ModelChoice};
use labdata_ports::agent::{ChatRepository, LanguageModel};

use super::{slots::RunSlots, tools::ToolRegistry};

/// The agent, made once by the composition root.
#[derive(Clone)]
pub struct Agent {
    /// The provider of models.
    pub model: Arc<dyn LanguageModel>,
    /// Saved chats.
    pub chats: Arc<dyn ChatRepository>,
    /// The tools.
    pub tools: ToolRegistry,
    /// The models that runs may use.
    pub models: ModelChoice,
    /// Limits of runs.
    pub limits: AgentLimits,
    /// Runs in progress; `RunSlots::default()`, shared by all of one process.
    pub slots: RunSlots,
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent").finish_non_exhaustive()
    }
}
