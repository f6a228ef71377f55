//! The program as a script of one file.

use labdata_domain::instruments::ReadingFailure;
use labdata_sandbox::{DeclaredPackages, PlatformProgram, ProgramDefinition, ProgramError};
use pep440_rs::VersionSpecifiers;

/// Packages of the program, by version and hash.
pub static REQUIREMENTS: &str = include_str!("../reader/requirements.txt");

/// Versions of Python for which the packages are locked.
const PYTHON: &str = ">=3.10";

/// Table of readers.
const READERS: &str = include_str!("../reader/readers.json");

/// Importer of the modules, and the call of the program.
const IMPORTER: &str = include_str!("../reader/embedded.py");

/// Name and text of a module.
macro_rules! module {
    ($name:literal) => {
        (
            concat!("labdata_reader.", $name),
            include_str!(concat!("../reader/labdata_reader/", $name, ".py")),
        )
    };
}

/// Names and texts of the package and all its modules.
const MODULES: &[(&str, &str)] = &[
    (
        "labdata_reader",
        include_str!("../reader/labdata_reader/__init__.py"),
    ),
    module!("exports"),
    module!("invalid"),
    module!("program"),
    module!("reading"),
    module!("registry"),
    module!("rows"),
    module!("times"),
    module!("units"),
];

/// Returns the program with its packages, not yet installed.
///
/// # Errors
/// If the versions of Python cannot be read.
pub(crate) fn reader_program() -> Result<PlatformProgram, ReadingFailure> {
    let python: VersionSpecifiers = PYTHON
        .parse()
        .map_err(|error| ReadingFailure::Unavailable(format!("{PYTHON}: {error}")))?;
    Ok(PlatformProgram::new(ProgramDefinition {
        name: "file-readers",
        script: program(),
        packages: Some(DeclaredPackages::locked(REQUIREMENTS, python)),
        completion: None,
    }))
}

/// Returns what an error of the program means for a reading.
pub(crate) fn unavailable(error: impl Into<ProgramError>) -> ReadingFailure {
    match error.into() {
        ProgramError::Preparing => ReadingFailure::Preparing,
        ProgramError::NotInstalled => ReadingFailure::NotInstalled,
        ProgramError::Unavailable(reason) => ReadingFailure::Unavailable(reason),
    }
}

/// Returns the script: some 40 KB of Python, the same on every call.
#[must_use]
pub fn program() -> String {
    let modules: Vec<String> = MODULES
        .iter()
        .map(|(name, text)| format!("    {}: {},", literal(name), literal(text)))
        .collect();
    format!(
        "READERS = {}\nSOURCES = {{\n{}\n}}\n\n{IMPORTER}",
        literal(READERS),
        modules.join("\n")
    )
}

/// Returns a text as a Python literal. JSON's escapes are a subset of Python's.
fn literal(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, path::Path};

    use labdata_domain::instruments::READERS as KNOWN;

    use super::*;

    #[test]
    fn every_module_of_the_package_is_embedded() {
        let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("reader/labdata_reader");
        let files: BTreeSet<String> = std::fs::read_dir(package)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_file())
            .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
            .collect();
        let embedded: BTreeSet<String> = MODULES
            .iter()
            .map(|(name, _)| match name.strip_prefix("labdata_reader.") {
                Some(module) => format!("{module}.py"),
                None => "__init__.py".to_owned(),
            })
            .collect();
        assert_eq!(embedded, files);
    }

    #[test]
    fn the_table_of_the_program_is_that_of_the_domain() {
        let readers: serde_json::Value = serde_json::from_str(READERS).unwrap();
        let known: Vec<serde_json::Value> = KNOWN
            .iter()
            .map(|reader| serde_json::json!([reader.name, reader.title, reader.extensions]))
            .collect();
        let readers = readers.as_array().unwrap().iter();
        let readers: Vec<serde_json::Value> = readers
            .map(|reader| {
                serde_json::json!([reader["name"], reader["title"], reader["extensions"]])
            })
            .collect();
        assert_eq!(readers, known);
    }

    #[test]
    fn every_package_has_a_version_and_hashes() {
        let is_package = |line: &&str| !line.starts_with('#') && line.contains("==");
        let packages = REQUIREMENTS.split('\n').filter(is_package);
        for package in packages.clone() {
            assert!(package.ends_with('\\'), "no hash follows {package}");
        }
        assert!(packages.count() > 20);
    }
}
