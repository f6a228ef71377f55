//! Predicts with trained models, each in a warm process in the sandbox.
//!
//! A version of a model gets a process when it first predicts. The process installs nothing: its packages
//! are an environment that all models share. It fetches the artifact from the platform, compares its
//! SHA-256, loads it, and then responds to requests over pipes until it is idle for some time. Requests are
//! sent without waiting, and the process predicts those together that wait. The protocol is described in
//! the README of the trainer.
//!
//! **Invariants.** An artifact runs code, so nothing here loads one, and everything that a process sends is
//! checked before it is used: lengths, types, numbers of rows. A wrong response ends the process. There are
//! at most [`PredictorSettings::limit`] processes, and no organization has all of them.

mod arrow;
mod lists;
mod pool;
mod predictor;
mod process;
mod request;
mod response;
mod session;
mod settings;

pub use predictor::SandboxPredictor;
pub use settings::{PredictorScripts, PredictorSettings};
