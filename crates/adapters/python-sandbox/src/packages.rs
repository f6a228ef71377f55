//! The program of snippets, and the packages that it declares.

use labdata_domain::{
    agent::PythonUnavailable,
    jobs::{ScriptFlaw, ScriptMetadata},
};
use labdata_sandbox::{DeclaredPackages, PlatformProgram, ProgramDefinition, ProgramError};

/// The program that runs snippets. It declares their packages.
const SNIPPET_PROGRAM: &str = include_str!("harness/snippet.py");

/// Code that lists the fonts of this machine for matplotlib, which would do so in each process: that takes
/// it up to some seconds.
const FONT_LIST: &str = include_str!("harness/font_list.py");

/// Returns the program, not yet installed.
///
/// # Errors
/// If what it declares cannot be read.
pub(crate) fn snippet_program() -> Result<PlatformProgram, ScriptFlaw> {
    Ok(PlatformProgram::new(ProgramDefinition {
        name: "python-packages",
        script: SNIPPET_PROGRAM.to_owned(),
        packages: declared_packages(SNIPPET_PROGRAM)?,
        completion: Some(FONT_LIST),
    }))
}

/// Returns the packages that a script declares.
fn declared_packages(script: &str) -> Result<Option<DeclaredPackages>, ScriptFlaw> {
    let metadata = ScriptMetadata::read(script)?;
    Ok(metadata.map(|metadata| DeclaredPackages {
        block: metadata.block,
        dependencies: metadata.dependencies,
        requires_python: metadata.requires_python,
    }))
}

/// Returns what an error of the program means for a snippet.
pub(crate) fn unavailable(error: impl Into<ProgramError>) -> PythonUnavailable {
    match error.into() {
        ProgramError::Preparing => PythonUnavailable::Preparing,
        ProgramError::NotInstalled => PythonUnavailable::NotInstalled,
        ProgramError::Unavailable(reason) => PythonUnavailable::Unavailable(reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_declares_its_packages() {
        let packages = declared_packages(SNIPPET_PROGRAM).unwrap();
        assert!(packages.is_some_and(|packages| packages.has_dependencies()));
    }
}
