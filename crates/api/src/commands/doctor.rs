//! `labdata doctor`

use std::path::Path;

use anyhow::bail;
use labdata_ports::maintenance::Dependency;

use super::output::say;
use crate::{
    dependencies::{Finding, check},
    settings::{Flags, Settings, SettingsError},
};

/// Width of the names of checks.
const NAMES: usize = 13;

/// Loads the settings, which are the first check.
///
/// # Errors
/// [`SettingsError`], once it is printed.
pub(super) fn settings(config: Option<&Path>, flags: &Flags) -> Result<Settings, SettingsError> {
    let loaded = Settings::load(config, flags);
    let finding = match &loaded {
        Ok(_) => Finding::Works("every value can be used".to_owned()),
        Err(error) => Finding::Fails(error.to_string()),
    };
    say(&line("settings", &finding));
    loaded
}

/// Prints a line for each check.
///
/// # Errors
/// If a check fails.
pub(super) async fn doctor(settings: &Settings) -> anyhow::Result<()> {
    let mut failed = Vec::new();
    for dependency in Dependency::ALL {
        // One after the other: each line appears as soon as its check has ended.
        let finding = check(settings, dependency).await;
        say(&line(dependency.as_str(), &finding));
        if matches!(finding, Finding::Fails(_)) {
            failed.push(dependency.as_str());
        }
    }
    if !failed.is_empty() {
        bail!("to be fixed: {}", failed.join(", "));
    }
    Ok(())
}

fn line(name: &str, finding: &Finding) -> String {
    let (mark, text) = match finding {
        Finding::Works(text) => ("ok", text),
        Finding::Unused(text) => ("-", text),
        Finding::Fails(text) => ("FAIL", text),
    };
    // Messages of others may have several lines.
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{mark:<5}{name:<NAMES$}  {text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_one_line() {
        let finding = Finding::Fails("first\n  second".to_owned());
        assert_eq!(line("SMTP", &finding), "FAIL SMTP           first second");
        let finding = Finding::Unused("none".to_owned());
        assert_eq!(line("job isolation", &finding), "-    job isolation  none");
    }
}
