//! Inline metadata of scripts (PEP 723). Used when a script is saved and when it is run, so that
//! both read the same.

use std::{ops::Range, str::FromStr as _};

use pep440_rs::VersionSpecifiers;
use serde::{Deserialize, de::IgnoredAny};
use toml::Spanned;

use super::{requirement::check_requirement, text::ScriptFlaw};

/// First line of the block.
const OPENING: &str = "# /// script";

/// Last line of a block of any type.
const CLOSING: &str = "# ///";

/// `script` block of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptMetadata {
    /// Text of the block (TOML), without comment signs.
    pub block: String,
    /// Requirements (PEP 508).
    pub dependencies: Vec<String>,
    /// Versions of Python that the script runs with.
    pub requires_python: VersionSpecifiers,
}

/// Fields of the block that concern the installation.
#[derive(Deserialize)]
struct Fields {
    #[serde(default)]
    dependencies: Vec<Spanned<String>>,
    #[serde(rename = "requires-python")]
    requires_python: Option<Spanned<String>>,
    /// An installation adds a constraint to the settings of uv, so they have their types.
    #[serde(default, rename = "tool")]
    _tool: Tool,
}

#[derive(Default, Deserialize)]
struct Tool {
    #[serde(default, rename = "uv")]
    _uv: UvSettings,
}

#[derive(Default, Deserialize)]
struct UvSettings {
    #[serde(default, rename = "constraint-dependencies")]
    _constraints: Vec<IgnoredAny>,
}

impl ScriptMetadata {
    /// Reads the block of a script whose lines end with `\n`, if it has one.
    ///
    /// # Errors
    /// [`ScriptFlaw`] if the block is not closed, if there are two, or if it is no TOML whose
    /// `dependencies` and `requires-python` can be used.
    pub fn read(code: &str) -> Result<Option<Self>, ScriptFlaw> {
        let Some(found) = find_block(code)? else {
            return Ok(None);
        };
        let block: String = code
            .get(found.content.clone())
            .unwrap_or_default()
            .split_inclusive('\n')
            .filter_map(|line| line.strip_prefix("# ").or_else(|| line.strip_prefix('#')))
            .collect();
        let flaw = |span: Option<Range<usize>>, message: String| {
            let within = ScriptFlaw::at(&block, span.map_or(0, |span| span.start), message);
            ScriptFlaw {
                // The content begins in the line behind the opening one.
                line: found.line + within.line,
                column: within.column + "# ".len(),
                ..within
            }
        };
        let fields: Fields = toml::from_str(&block).map_err(|error| {
            let message = format!("the script block cannot be used: {}", error.message());
            flaw(error.span(), message)
        })?;
        for requirement in &fields.dependencies {
            check_requirement(requirement.get_ref()).map_err(|reason| {
                let message = format!("dependencies cannot be used: {reason}");
                flaw(Some(requirement.span()), message)
            })?;
        }
        let requires_python = match &fields.requires_python {
            None => VersionSpecifiers::empty(),
            Some(wanted) => VersionSpecifiers::from_str(wanted.get_ref()).map_err(|_| {
                let message = format!("requires-python cannot be used: {:?}", wanted.get_ref());
                flaw(Some(wanted.span()), message)
            })?,
        };
        let dependencies = fields.dependencies.into_iter().map(Spanned::into_inner);
        Ok(Some(Self {
            dependencies: dependencies.collect(),
            requires_python,
            block,
        }))
    }
}

/// Position of a `script` block.
struct Found {
    /// Line of its opening, from 1.
    line: usize,
    /// Bytes of the lines between opening and closing.
    content: Range<usize>,
}

/// Line of a script.
#[derive(Clone, Copy)]
struct Line<'a> {
    /// Counted from 1.
    number: usize,
    /// Offset of its first byte.
    start: usize,
    text: &'a str,
}

impl Line<'_> {
    fn is_comment(self) -> bool {
        self.text == "#" || self.text.starts_with("# ")
    }

    /// Returns true for the first line of a block of any type.
    fn is_opening(self) -> bool {
        let is_type = |it: char| it.is_ascii_alphanumeric() || it == '-';
        self.text
            .strip_prefix("# /// ")
            .is_some_and(|name| !name.is_empty() && name.chars().all(is_type))
    }

    fn flaw(self, message: &str) -> ScriptFlaw {
        ScriptFlaw {
            line: self.number,
            column: 1,
            message: message.to_owned(),
        }
    }
}

/// Finds the `script` block as the reference expression of the PEP does:
/// `(?m)^# /// (?P<type>[a-zA-Z0-9-]+)$\s(?P<content>(^#(| .*)$\s)+)^# ///$`.
/// It does not tell literals from comments. A block ends with the last closing line of its comment, and
/// has at least one line of content.
fn find_block(code: &str) -> Result<Option<Found>, ScriptFlaw> {
    let mut start = 0;
    let lines = code.split('\n').zip(1..).map(|(text, number)| {
        let line = Line {
            number,
            start,
            text,
        };
        start += text.len() + 1;
        line
    });
    let lines: Vec<Line<'_>> = lines.collect();
    let mut found = None;
    for comment in lines.split(|line| !line.is_comment()) {
        // All openings of a comment would close here, so it is searched once: a comment can have
        // as many of them as the script has lines.
        let closing = comment.iter().rfind(|line| line.text == CLOSING);
        let mut last = 0;
        for opening in comment.iter().filter(|line| line.is_opening()) {
            // An opening inside a block is content.
            if opening.number < last {
                continue;
            }
            let is_script = opening.text == OPENING;
            match closing {
                Some(closing) if closing.number > opening.number + 1 => {
                    last = closing.number;
                    if !is_script {
                        continue;
                    }
                    if found.is_some() {
                        return Err(opening.flaw("a script has one `# /// script` block only"));
                    }
                    found = Some(Found {
                        line: opening.number,
                        content: opening.start + opening.text.len() + 1..closing.start,
                    });
                }
                // The expression does not match a block without content, which declares nothing.
                Some(closing) if closing.number == opening.number + 1 => {}
                _ if is_script => {
                    return Err(opening.flaw(
                        "this `# /// script` block is not closed: end it with a line `# ///`, and begin \
                         each line of it with `# `",
                    ));
                }
                _ => {}
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
