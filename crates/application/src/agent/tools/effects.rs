//! Answers of tools that change something.

use serde_json::Value;

/// Field of these answers: effects that reverting the execution does not undo, one sentence each.
const EFFECTS: &str = "effects";

/// Returns the answer of a tool that changes something: its fields, an object, and its effects.
pub(super) fn with_effects<E: Into<String>>(
    mut fields: Value,
    effects: impl IntoIterator<Item = E>,
) -> String {
    let effects: Vec<String> = effects.into_iter().map(Into::into).collect();
    if let Some(fields) = fields.as_object_mut() {
        fields.insert(EFFECTS.to_owned(), effects.into());
    }
    fields.to_string()
}

/// Effects of a tool that has none.
pub(super) const NONE: [&str; 0] = [];
