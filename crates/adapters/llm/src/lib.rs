//! Language models behind the APIs of their providers.
//!
//! Two dialects of HTTP cover the providers: chat completions (`OpenAI`, Gemini, Ollama and every
//! compatible server) and messages (Anthropic). Responses are read as server-sent events.
//!
//! **Invariants.** No response of a provider is trusted: its length is bounded, its parts must say where
//! they belong, and it counts only with the mark of its end. A request is repeated only as long as
//! nothing of its response has arrived. The key is in no error and no log.

mod assembly;
mod client;
mod dialect;
mod frames;
mod http;
mod refusal;
mod settings;

pub use client::LlmClient;
pub use settings::{InvalidLlm, LlmSettings, Provider};
