//! Facts of operations that are tools.

use labdata_application::Services;

/// Facts for a model about an operation that is a tool.
pub(crate) struct ToolFacts {
    /// The tool's name, if it is not the operation's.
    pub(crate) name: Option<&'static str>,
    /// Its purpose.
    pub(crate) description: &'static str,
    /// True if it may change or remove what is there.
    pub(crate) is_destructive: bool,
    /// A field of the body that the platform fills in.
    pub(crate) filled: Option<FilledField>,
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
            filled: None,
        }
    }
}
