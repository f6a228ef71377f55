//! Forms of the bodies of deliveries.

/// Form of the bodies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WebhookFormat {
    /// Standard Webhooks 1.0: type, time and ids.
    #[default]
    Standard,
    /// A message of a Slack channel.
    Slack,
    /// A message of a Microsoft Teams channel.
    Teams,
}

impl WebhookFormat {
    /// All formats.
    pub const ALL: [Self; 3] = [Self::Standard, Self::Slack, Self::Teams];

    /// Its name in the API and the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Slack => "slack",
            Self::Teams => "teams",
        }
    }

    /// The format of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == name)
    }
}
