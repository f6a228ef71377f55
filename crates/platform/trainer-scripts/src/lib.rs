//! Trainer and predictor of ML models as scripts of one file each.
//!
//! The program is the Python package in `trainer/`. A backend runs one script file, so [`script`] puts
//! the metadata of an entry point (PEP 723), the modules of the package as texts, and an importer for
//! them into one. `trainer/README.md` describes the interface.
//!
//! **Invariants.** No port, no domain, no I/O. A script is the same on every call, so all trainings and
//! predictions of an entry point share one environment.

mod package;

use package::MODULES;

/// Environment variables that replace the arguments of a script, for backends that pass none.
pub mod variables {
    /// `train` or `predict`.
    pub const COMMAND: &str = "LABDATA_TRAINER_COMMAND";
    /// Run directory. The working directory, if it is not set.
    pub const RUN_DIRECTORY: &str = "LABDATA_TRAINER_DIRECTORY";
    /// JSON that becomes `manifest.json` of the run directory.
    pub const MANIFEST: &str = "LABDATA_TRAINER_MANIFEST";
}

/// Set of dependencies of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntryPoint {
    /// Tabular models: 550 MB, no torch.
    Tabular,
    /// Models of images, texts and tables, and segmentation: 5.6 GB.
    Multimodal,
}

/// Importer, and the call of the program.
const IMPORTER: &str = include_str!("embedded.py");

/// Returns the script of an entry point: some 120 KB of Python.
///
/// Its arguments are a command (`train` or `predict`) and the run directory. Without arguments it
/// reads them from [`variables`].
#[must_use]
pub fn script(entry: EntryPoint) -> String {
    let source = match entry {
        EntryPoint::Tabular => include_str!("../trainer/tabular.py"),
        EntryPoint::Multimodal => include_str!("../trainer/multimodal.py"),
    };
    let modules = MODULES
        .iter()
        .map(|(name, text)| format!("    {}: {},", literal(name), literal(text)))
        .collect::<Vec<_>>()
        .join("\n");
    format!(
        "{}\nSOURCES = {{\n{modules}\n}}\n\n{IMPORTER}",
        metadata(source)
    )
}

/// Returns the script of an entry point that trains with that manifest (JSON). The manifest is part of the
/// script, because environment variables are limited to 128 KiB.
#[must_use]
pub fn training_script(entry: EntryPoint, manifest: &str) -> String {
    let set =
        |name: &str, value: &str| format!("os.environ[{}] = {}\n", literal(name), literal(value));
    let order = [
        set(variables::COMMAND, "train"),
        set(variables::MANIFEST, manifest),
    ];
    format!("import os\n\n{}\n{}", order.concat(), script(entry))
}

/// Returns the metadata block at the start of an entry point.
fn metadata(source: &str) -> String {
    source
        .lines()
        .take_while(|line| line.starts_with('#'))
        .flat_map(|line| [line, "\n"])
        .collect()
}

/// Returns a text as a Python literal. JSON's escapes are a subset of Python's.
fn literal(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests;
