//! Facts of operations that are tools.

use labdata_application::Services;
use labdata_domain::people::{actor::Actor, run_key::GuardedAction};

/// Facts for a model about an operation that is a tool.
pub(crate) struct ToolFacts {
    /// The tool's name, if it is not the operation's.
    pub(crate) name: Option<&'static str>,
    /// Its purpose.
    pub(crate) description: &'static str,
    /// True if it may change or remove what is there.
    pub(crate) is_destructive: bool,
    /// Use that it makes of scripts, which not every key that writes may do.
    pub(crate) scripts: ScriptUse,
    /// A field of the body that the platform fills in.
    pub(crate) filled: Option<FilledField>,
}

/// Use that a tool makes of scripts.
#[derive(Clone, Copy)]
pub(crate) enum ScriptUse {
    /// It neither stores nor runs scripts.
    None,
    /// Runs them: for keys with all tables of their user.
    Runs,
    /// Changes them: besides, not for the key of a run.
    Changes,
}

impl ScriptUse {
    /// Returns true if no call of the actor would be refused for it.
    pub(crate) fn is_open_to(self, actor: &Actor) -> bool {
        let has_all_tables = actor.rights.require_all_tables().is_ok();
        match self {
            Self::None => true,
            Self::Runs => has_all_tables,
            Self::Changes => has_all_tables && actor.may(GuardedAction::ChangeJob).is_ok(),
        }
    }
}

/// A field that the platform fills in, and that the model does not know.
pub(crate) struct FilledField {
    /// Its name.
    pub(crate) name: &'static str,
    /// Its value.
    pub(crate) value: fn(&Services) -> String,
}

impl ToolFacts {
    /// A tool that reads, or only adds.
    pub(crate) const fn of(description: &'static str) -> Self {
        Self {
            name: None,
            description,
            is_destructive: false,
            scripts: ScriptUse::None,
            filled: None,
        }
    }
}
