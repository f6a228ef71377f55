//! Inline metadata of scripts (PEP 723).

use serde::Deserialize;
use toml::{Table, Value};

use crate::CLIENT;

/// `script` block of a script.
#[derive(Clone, Debug)]
pub struct ScriptMetadata {
    /// Text of the block, without comment signs.
    block: String,
    fields: Fields,
}

/// Fields of the block that concern the installation.
#[derive(Clone, Debug, Default, Deserialize)]
struct Fields {
    #[serde(default)]
    dependencies: Vec<String>,
    #[serde(default, rename = "requires-python")]
    requires_python: String,
}

impl ScriptMetadata {
    /// Reads the block of a script, if it has one.
    ///
    /// # Errors
    /// The reason, for the script's author, if the block is invalid.
    pub fn read(script: &str) -> Result<Option<Self>, String> {
        let Some(block) = block(script) else {
            return Ok(None);
        };
        let fields = toml::from_str(&block).map_err(unreadable)?;
        Ok(Some(Self { block, fields }))
    }

    /// Returns the text of the block, without comment signs.
    #[must_use]
    pub fn block(&self) -> &str {
        &self.block
    }

    /// Returns the versions of Python that the script runs with; empty if it does not say.
    #[must_use]
    pub fn requires_python(&self) -> &str {
        &self.fields.requires_python
    }

    /// Returns true if the script declares dependencies.
    #[must_use]
    pub fn has_dependencies(&self) -> bool {
        !self.fields.dependencies.is_empty()
    }

    /// Returns true if the script itself declares the Python client as a dependency.
    #[must_use]
    pub fn names_client(&self) -> bool {
        let mut names = self.fields.dependencies.iter().map(|it| package_name(it));
        names.any(|name| name == CLIENT)
    }

    /// Returns a script with the same block, in which the Python client, wherever it is needed, is the
    /// one at that URL. The constraint also holds for dependencies of dependencies.
    ///
    /// # Errors
    /// The reason, for the script's author, if the settings of uv in the block are invalid.
    pub fn script_with_client(&self, url: &str) -> Result<String, String> {
        // The whole block: uv reads settings from it that have no field here.
        let mut table: Table = toml::from_str(&self.block).map_err(unreadable)?;
        let mut settings = &mut table;
        for name in ["tool", "uv"] {
            let inner = settings.entry(name).or_insert_with(|| Table::new().into());
            settings = inner
                .as_table_mut()
                .ok_or_else(|| unreadable(format_args!("{name} must be a table")))?;
        }
        let constraints = settings
            .entry("constraint-dependencies")
            .or_insert_with(|| Value::Array(Vec::new()))
            .as_array_mut()
            .ok_or_else(|| unreadable("constraint-dependencies must be an array"))?;
        // A constraint, not a dependency: scripts that do not use the client do not install it.
        constraints.push(format!("{CLIENT} @ {url}").into());
        let text = toml::to_string(&table).map_err(unreadable)?;
        let lines = text.trim_end().replace('\n', "\n# ");
        Ok(format!("# /// script\n# {lines}\n# ///\n"))
    }
}

fn unreadable(error: impl std::fmt::Display) -> String {
    format!("the script's metadata (PEP 723) cannot be read: {error}")
}

/// Returns the normalized name of the package that a requirement names.
fn package_name(requirement: &str) -> String {
    let requirement = requirement.trim_start();
    let end = requirement
        .find(|it: char| !it.is_ascii_alphanumeric() && !matches!(it, '-' | '_' | '.'))
        .unwrap_or(requirement.len());
    let words = requirement
        .get(..end)
        .unwrap_or_default()
        .split(['-', '_', '.']);
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    // Names are compared as PEP 503 says: `Labdata_Client` is the same package.
    words.join("-").to_ascii_lowercase()
}

/// Returns the text of the `script` block, without comment signs.
fn block(script: &str) -> Option<String> {
    let mut lines = script
        .lines()
        .skip_while(|line| line.trim_end() != "# /// script");
    lines.next()?;
    let mut text = String::new();
    let mut closed = None;
    // The block ends with the last closing line before the first line that is no comment.
    for line in lines {
        if line.trim_end() == "# ///" {
            closed = Some(text.len());
        }
        // PEP 723: a comment without a space after `#` ends the block, unless it is empty.
        let content = line
            .strip_prefix("# ")
            .or_else(|| line.strip_prefix('#').filter(|rest| rest.is_empty()));
        let Some(content) = content else { break };
        text.push_str(content);
        text.push('\n');
    }
    // Without its last line the block is an ordinary comment.
    text.truncate(closed?);
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(block: &str) -> ScriptMetadata {
        let block = block.replace('\n', "\n# ");
        let script = format!("import os\n# /// script\n# {block}\n# ///\nprint(1)\n");
        ScriptMetadata::read(&script).unwrap().unwrap()
    }

    #[test]
    fn dependencies_are_seen_however_the_block_is_written() {
        for script in [
            "# /// script\n# dependencies = [\"six\"]\n# ///\n",
            "import os\n# /// script\n# requires-python = \">=3.11\"\n# dependencies=[\n#   \"six\",\n# ]\n# ///\n",
        ] {
            let metadata = ScriptMetadata::read(script).unwrap().unwrap();
            assert!(metadata.has_dependencies(), "{script}");
        }
        for script in [
            "# /// script\n# dependencies = [ ]\n# ///\n",
            "# /// script\n# requires-python = \">=3.11\"\n# ///\n# dependencies = [\"six\"]\n",
        ] {
            let metadata = ScriptMetadata::read(script).unwrap().unwrap();
            assert!(!metadata.has_dependencies(), "{script}");
        }
        for script in [
            "",
            "print(1)",
            "# dependencies = [\"six\"]\n",
            "# /// other\n# dependencies = [\"httpx\"]\n# ///\n",
            "# /// script\n# dependencies = [\"httpx\"]\nprint(1)\n",
        ] {
            assert!(ScriptMetadata::read(script).unwrap().is_none(), "{script}");
        }
    }

    #[test]
    fn a_block_that_is_no_toml_is_refused() {
        let reason = ScriptMetadata::read("# /// script\n# dependencies = [\n# ///\n").unwrap_err();
        assert!(reason.contains("PEP 723"), "{reason}");
    }

    #[test]
    fn the_client_is_recognized_by_any_spelling_of_its_name() {
        for requirement in [
            "labdata-client",
            "Labdata_Client >= 0.1",
            "labdata.client[pandas,polars]",
            " labdata-client; python_version > '3.9'",
        ] {
            let metadata = metadata(&format!("dependencies = [\"six\", \"{requirement}\"]"));
            assert!(metadata.names_client(), "{requirement}");
        }
        for requirement in ["labdata", "labdata-client-extras", "httpx"] {
            let metadata = metadata(&format!("dependencies = [\"{requirement}\"]"));
            assert!(!metadata.names_client(), "{requirement}");
        }
    }

    #[test]
    fn the_client_is_taken_from_the_url_and_the_rest_of_the_block_stays() {
        let url = "file:///data/labdata_client-0.1.0-py3-none-any.whl";
        let declared = metadata(
            "requires-python = \">=3.10\"\ndependencies = [\"labdata-client\", \"six\"]\n\n\
             [tool.uv]\nexclude-newer = \"2026-01-01T00:00:00Z\"\n\
             constraint-dependencies = [\"six<2\"]",
        );
        let script = declared.script_with_client(url).unwrap();
        let changed: Table = toml::from_str(&block(&script).unwrap()).unwrap();
        let mut expected: Table = toml::from_str(declared.block()).unwrap();
        expected["tool"]["uv"]["constraint-dependencies"] =
            vec!["six<2".to_owned(), format!("labdata-client @ {url}")].into();
        assert_eq!(changed, expected);

        let reason = metadata("dependencies = [\"six\"]\ntool = 1").script_with_client(url);
        assert!(reason.unwrap_err().contains("tool must be a table"));
    }
}
