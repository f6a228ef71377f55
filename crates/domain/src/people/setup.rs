//! Features that a server has once its operator sets them up.

use crate::refusal::Refusal;

/// A feature that needs settings of the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// The agent, which needs a language model.
    Agent,
    /// SQL logins, which need an address.
    SqlLogins,
}

impl Feature {
    /// Every feature.
    pub const ALL: [Self; 2] = [Self::Agent, Self::SqlLogins];

    /// Returns its name in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::SqlLogins => "sql_logins",
        }
    }
}

/// A feature that is not set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingFeature {
    /// The feature.
    pub feature: Feature,
    /// The refusal that its requests get; names what the operator sets.
    pub refusal: Refusal,
}
