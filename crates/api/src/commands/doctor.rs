//! `labdata doctor`

use std::path::Path;

use anyhow::bail;
use labdata_ports::maintenance::Dependency;

use super::{arguments::Doctor, output::say};
use crate::{
    compose::{file_reader, has_file_readers, this_program},
    data_dir,
    dependencies::{Finding, check},
    private_files,
    settings::{Flags, Settings, SettingsError},
};

/// Name of the check of the readers of files.
const FILE_READERS: &str = "file readers";

/// Width of the names of checks.
const NAMES: usize = 13;

/// Loads the settings, which are the first check.
///
/// # Errors
/// [`SettingsError`], once it is printed.
pub(super) fn settings(config: Option<&Path>, flags: &Flags) -> Result<Settings, SettingsError> {
    let loaded = Settings::load(config, flags).and_then(|settings| {
        data_dir::check(&settings.data_dir)?;
        Ok(settings)
    });
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
pub(super) async fn doctor(settings: &Settings, arguments: &Doctor) -> anyhow::Result<()> {
    let mut failed = Vec::new();
    for dependency in Dependency::ALL {
        // One after the other: each line appears as soon as its check has ended.
        let finding = check(settings, dependency).await;
        say(&line(dependency.as_str(), &finding));
        if matches!(finding, Finding::Fails(_)) {
            failed.push(dependency.as_str());
        }
    }
    let finding = file_readers(settings, arguments.prepare_readers).await;
    say(&line(FILE_READERS, &finding));
    if matches!(finding, Finding::Fails(_)) {
        failed.push(FILE_READERS);
    }
    if !failed.is_empty() {
        bail!("to be fixed: {}", failed.join(", "));
    }
    Ok(())
}

/// Finds out whether the packages of the readers of files are installed; installs them if asked to.
async fn file_readers(settings: &Settings, prepare: bool) -> Finding {
    let prepared = || Finding::Works("their packages are installed".to_owned());
    if has_file_readers(&settings.data_dir) {
        return prepared();
    }
    if !prepare {
        return Finding::Unused(
            "the first file of an instrument with a reader installs their packages (250 MB); `labdata doctor \
             --prepare-readers` does it now"
                .to_owned(),
        );
    }
    let made = private_files::create(&settings.data_dir);
    let program = match (made, this_program()) {
        (Ok(()), Ok(program)) => program,
        (Err(error), _) => return Finding::Fails(error.to_string()),
        (_, Err(error)) => return Finding::Fails(error.to_string()),
    };
    let reader = file_reader(settings, program, &settings.public_url(settings.bind));
    match reader.prepare().await {
        Ok(()) => prepared(),
        Err(failure) => Finding::Fails(failure.to_string()),
    }
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
