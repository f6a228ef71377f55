//! Client of an `OpenID` provider: discovery, the code flow with PKCE, refreshes, ID tokens.
//!
//! **Invariants.** Tokens are signed by RS256, PS256, ES256 or `EdDSA`, never by `none` or a shared secret. Discovery
//! and keys are fetched with bounds and cached; an unknown key is searched for at most once a minute. Every URL of
//! the provider is https, or http on this machine where the issuer is. No token is logged.

mod jwt;
mod keys;
mod metadata;
mod provider;
mod published;
mod requests;
mod sealing;

pub use provider::{OidcProvider, OidcProviderSettings, check_issuer};
