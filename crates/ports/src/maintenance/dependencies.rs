//! State of what the platform depends on.

use async_trait::async_trait;

/// Something that the platform depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dependency {
    /// The database.
    Database,
    /// The storage of files.
    Storage,
    /// The Python that runs scripts.
    Python,
    /// uv, which makes environments of scripts.
    Uv,
    /// The isolation of scripts from the machine.
    JobIsolation,
    /// The Ray clusters.
    Ray,
    /// The mail server.
    Smtp,
    /// The language model.
    Llm,
    /// The identity provider.
    OpenId,
}

impl Dependency {
    /// All, in the order in which people should fix what fails.
    pub const ALL: [Self; 9] = [
        Self::Database,
        Self::Storage,
        Self::Python,
        Self::Uv,
        Self::JobIsolation,
        Self::Ray,
        Self::Smtp,
        Self::Llm,
        Self::OpenId,
    ];

    /// Returns the name for people, which `labdata doctor` prints.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Database => "database",
            Self::Storage => "storage",
            Self::Python => "Python",
            Self::Uv => "uv",
            Self::JobIsolation => "job isolation",
            Self::Ray => "Ray",
            Self::Smtp => "SMTP",
            Self::Llm => "LLM",
            Self::OpenId => "OpenID",
        }
    }
}

/// State of a dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DependencyState {
    /// It works.
    Works,
    /// It is not set up, and need not be.
    Unused,
    /// It does not work.
    Fails,
}

impl DependencyState {
    /// All states.
    pub const ALL: [Self; 3] = [Self::Works, Self::Unused, Self::Fails];

    /// Returns the name in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Works => "ok",
            Self::Unused => "unused",
            Self::Fails => "failed",
        }
    }
}

/// Checks what this server depends on.
#[async_trait]
pub trait DependencyChecks: Send + Sync {
    /// Checks the dependency. MUST end within a minute, log the reason of a failure for the operator,
    /// and change nothing that outlives it. Several checks may run at once.
    async fn check(&self, dependency: Dependency) -> DependencyState;
}
