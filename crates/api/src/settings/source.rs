//! Gathers values from the file, the environment and the flags, each with the name under which it
//! was given.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::{SettingsError, list};

/// Settings file that is read from the working directory if it exists.
const FILE: &str = "labdata.toml";

/// Variables of the Python client, of scripts and of tests, which may stand in the environment of a server.
const VARIABLES_OF_OTHERS: [&str; 7] = [
    "LABDATA_BASE_URL",
    "LABDATA_API_KEY",
    "LABDATA_JOB_EXECUTION_ID",
    "LABDATA_SOURCE_JOB_EXECUTION_ID",
    "LABDATA_FILE_ID",
    "LABDATA_PARAMETERS",
    "LABDATA_TEST_",
];

/// Value of a setting from its source of highest precedence.
#[derive(Clone)]
pub(super) struct Given {
    /// Name for error messages: `LABDATA_BIND`, `bind in labdata.toml` or `--bind`.
    pub(super) name: String,
    /// Value; may be a secret.
    pub(super) value: String,
}

/// Gathers values from the file, then the environment, then the flags; later ones win (contract §1).
pub(super) fn gather(
    environment: &dyn Fn(&str) -> Option<String>,
    config: Option<&Path>,
    flags: &BTreeMap<&'static str, String>,
) -> Result<BTreeMap<&'static str, Given>, SettingsError> {
    let mut given = BTreeMap::new();
    let path = config.map_or_else(|| PathBuf::from(FILE), Path::to_owned);
    // The default file may be absent; one that was named must exist.
    if config.is_some() || path.exists() {
        for (key, value) in read_file(&path)? {
            given.insert(
                key,
                Given {
                    name: format!("{key} in {}", path.display()),
                    value,
                },
            );
        }
    }
    for setting in list::SETTINGS {
        // Shells and containers often pass an unset variable as an empty one.
        if let Some(value) = environment(setting.env).filter(|value| !value.is_empty()) {
            given.insert(
                setting.key,
                Given {
                    name: setting.env.to_owned(),
                    value,
                },
            );
        }
    }
    for (key, value) in flags {
        if let Some(setting) = list::find(key) {
            let name = format!("--{}", setting.flag);
            given.insert(
                setting.key,
                Given {
                    name,
                    value: value.clone(),
                },
            );
        }
    }
    Ok(given)
}

/// The variables that look like settings and are none. They are no error, as other programs may have their own, but a
/// misspelled one would leave a default in force without a word.
pub(crate) fn unknown_variables(names: impl Iterator<Item = String>) -> Vec<String> {
    let is_known = |name: &str| {
        VARIABLES_OF_OTHERS
            .iter()
            .any(|other| name.starts_with(other))
            || list::SETTINGS.iter().any(|setting| setting.env == name)
    };
    names
        .filter(|name| name.starts_with("LABDATA_") && !is_known(name))
        .collect()
}

fn read_file(path: &Path) -> Result<Vec<(&'static str, String)>, SettingsError> {
    let refused = |reason: String| SettingsError(format!("{}: {reason}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| refused(error.to_string()))?;
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        // The error's full text quotes the line, which may hold a secret.
        let line = error
            .span()
            .and_then(|span| text.get(..span.start))
            .map_or(1, |before| {
                1 + before.bytes().filter(|byte| *byte == b'\n').count()
            });
        refused(format!(
            "line {line}: {}",
            error.message().replace('\n', " ")
        ))
    })?;
    let mut values = Vec::with_capacity(table.len());
    for (key, value) in table {
        // A misspelled key would silently leave the default in force.
        let setting = list::find(&key).ok_or_else(|| {
            refused(format!(
                "there is no setting {key:?}; `labdata serve --help` lists them"
            ))
        })?;
        let value = match value {
            toml::Value::String(text) => text,
            toml::Value::Integer(number) => number.to_string(),
            // Elsewhere `true` is more likely a mistake than the text "true".
            toml::Value::Boolean(choice) if setting.value == list::BOOLEAN => choice.to_string(),
            toml::Value::Array(items) => {
                let texts: Option<Vec<&str>> = items.iter().map(toml::Value::as_str).collect();
                texts
                    .ok_or_else(|| refused(format!("{key} takes a list of strings")))?
                    .join(",")
            }
            other => {
                let kind = other.type_str();
                return Err(refused(format!(
                    "{key} takes a string or a number, not a {kind}"
                )));
            }
        };
        values.push((setting.key, value));
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelled_variable_is_found_and_those_of_others_are_left_alone() {
        let names = [
            "LABDATA_TRASHDAYS",
            "LABDATA_TRASH_DAYS",
            "LABDATA_API_KEY",
            "PATH",
        ];
        assert_eq!(
            unknown_variables(names.into_iter().map(str::to_owned)),
            ["LABDATA_TRASHDAYS"]
        );
    }
}
