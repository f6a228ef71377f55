//! Packages that scripts declare.

use pep440_rs::VersionSpecifiers;
use toml::{Table, Value};

use crate::CLIENT;

/// Mark of requirements that are checked by their hashes.
const HASHED: &str = " --hash";

/// Inline metadata of a script (PEP 723), as its reader found them.
#[derive(Clone, Debug)]
pub struct DeclaredPackages {
    /// Text of the block (TOML), without comment signs.
    pub block: String,
    /// Requirements (PEP 508).
    pub dependencies: Vec<String>,
    /// Versions of Python that the script runs with.
    pub requires_python: VersionSpecifiers,
}

impl DeclaredPackages {
    /// Returns the packages of a file of requirements in pip's format, each with its version and hashes, for
    /// these versions of Python. They are installed as they stand there, and checked by their hashes.
    #[must_use]
    pub fn locked(requirements: &str, requires_python: VersionSpecifiers) -> Self {
        let lines = requirements.lines();
        let names =
            lines.filter(|line| line.starts_with(|first: char| first.is_ascii_alphanumeric()));
        Self {
            block: requirements.to_owned(),
            dependencies: names
                .map(|line| format!("{}{HASHED}", line.trim_end_matches(['\\', ' '])))
                .collect(),
            requires_python,
        }
    }

    /// Returns true for packages that are [locked](Self::locked); their block is the file of requirements.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        // No requirement of a script (PEP 508) ends so.
        self.has_dependencies() && self.dependencies.iter().all(|it| it.ends_with(HASHED))
    }

    /// Returns true if the script declares dependencies.
    #[must_use]
    pub fn has_dependencies(&self) -> bool {
        !self.dependencies.is_empty()
    }

    /// Returns true if the script itself declares the Python client as a dependency.
    #[must_use]
    pub fn names_client(&self) -> bool {
        let mut names = self.dependencies.iter().map(|it| package_name(it));
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
    words.join("-").to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declared(block: &str, dependencies: &[&str]) -> DeclaredPackages {
        DeclaredPackages {
            block: block.to_owned(),
            dependencies: dependencies.iter().map(|&it| it.to_owned()).collect(),
            requires_python: VersionSpecifiers::empty(),
        }
    }

    #[test]
    fn locked_packages_are_not_those_of_a_script() {
        let requirements = "# made by\nsix==1.17.0 \\\n    --hash=sha256:00\nattrs==26.1.0 ; python_version < '4' \\\n";
        let packages = DeclaredPackages::locked(requirements, VersionSpecifiers::empty());
        assert!(packages.is_locked() && !packages.names_client());
        assert_eq!(packages.dependencies.len(), 2, "{packages:?}");
        for scripts in [&[][..], &["six"], &["six", "attrs==26.1.0"]] {
            assert!(!declared("", scripts).is_locked(), "{scripts:?}");
        }
    }

    #[test]
    fn the_client_is_recognized_by_any_spelling_of_its_name() {
        for requirement in [
            "labdata-client",
            "Labdata_Client >= 0.1",
            "labdata.client[pandas,polars]",
            " labdata-client; python_version > '3.9'",
        ] {
            assert!(
                declared("", &["six", requirement]).names_client(),
                "{requirement}"
            );
        }
        for requirement in ["labdata", "labdata-client-extras", "httpx"] {
            assert!(
                !declared("", &[requirement]).names_client(),
                "{requirement}"
            );
        }
    }

    #[test]
    fn the_client_is_taken_from_the_url_and_the_rest_of_the_block_stays() {
        let url = "file:///data/labdata_client-0.1.0-py3-none-any.whl";
        let packages = declared(
            "requires-python = \">=3.10\"\ndependencies = [\"labdata-client\", \"six\"]\n\n\
             [tool.uv]\nexclude-newer = \"2026-01-01T00:00:00Z\"\n\
             constraint-dependencies = [\"six<2\"]",
            &["labdata-client", "six"],
        );
        let script = packages.script_with_client(url).unwrap();
        let lines = script.lines().filter(|line| !line.starts_with("# ///"));
        let changed: Vec<&str> = lines.map(|line| &line[2..]).collect();
        let changed: Table = toml::from_str(&changed.join("\n")).unwrap();
        let mut expected: Table = toml::from_str(&packages.block).unwrap();
        expected["tool"]["uv"]["constraint-dependencies"] =
            vec!["six<2".to_owned(), format!("labdata-client @ {url}")].into();
        assert_eq!(changed, expected);

        let reason = declared("tool = 1", &["six"]).script_with_client(url);
        assert!(reason.unwrap_err().contains("tool must be a table"));
    }
}
