use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use super::*;

fn trainer() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("trainer")
}

/// Runs the script in a fresh directory, with only the standard library.
fn run(
    name: &str,
    script: &str,
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> (PathBuf, Output) {
    let directory =
        std::env::temp_dir().join(format!("labdata-trainer-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let file = directory.join("script.py");
    std::fs::write(&file, script).unwrap();
    let output = Command::new("python3")
        .args(["-I", "-S"])
        .arg(&file)
        .args(arguments)
        .current_dir(&directory)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    (directory, output)
}

#[test]
fn every_module_of_the_package_is_embedded() {
    let files: BTreeSet<String> = std::fs::read_dir(trainer().join("labdata_trainer"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    let embedded: BTreeSet<String> = MODULES
        .iter()
        .map(|(name, _)| match name.strip_prefix("labdata_trainer.") {
            Some(module) => format!("{module}.py"),
            None => "__init__.py".to_owned(),
        })
        .collect();
    assert_eq!(embedded, files);
}

#[test]
fn every_entry_point_keeps_its_metadata() {
    for (entry, file) in [
        (EntryPoint::Tabular, "tabular.py"),
        (EntryPoint::Multimodal, "multimodal.py"),
    ] {
        let source = std::fs::read_to_string(trainer().join(file)).unwrap();
        let (block, _) = source.split_once("# ///\n").unwrap();
        let script = script(entry);
        assert!(block.contains("# dependencies = ["), "{block}");
        assert!(
            script.starts_with(&format!("{block}# ///\n")),
            "{script:.400}"
        );
        assert_eq!(script.matches("# /// script").count(), 1);
    }
}

#[test]
fn a_script_runs_the_program_from_its_one_file() {
    let (directory, output) = run(
        "arguments",
        &script(EntryPoint::Tabular),
        &["train", "."],
        &[],
    );
    assert_eq!(output.status.code(), Some(20), "{output:?}");
    let error = std::fs::read_to_string(directory.join("error.json")).unwrap();
    assert!(error.contains("manifest_invalid"), "{error}");
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(
        log.contains("<embedded>/labdata_trainer/run_directory.py")
            && log.contains("raw = json.loads"),
        "{log}"
    );
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn variables_replace_the_arguments() {
    let manifest = r#"{"training_id": "7"}"#;
    let (directory, output) = run(
        "variables",
        &script(EntryPoint::Tabular),
        &[],
        &[
            (variables::COMMAND, "train"),
            (variables::MANIFEST, manifest),
        ],
    );
    assert_eq!(output.status.code(), Some(20), "{output:?}");
    let written = std::fs::read_to_string(directory.join("manifest.json")).unwrap();
    assert_eq!(written, manifest);
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_training_script_carries_a_manifest_of_any_length() {
    let columns = "ü \"quoted\" # /// script\\n".repeat(20_000);
    let manifest = serde_json::json!({ "feature_columns": [columns] }).to_string();
    let script = training_script(EntryPoint::Tabular, &manifest);
    let (directory, output) = run("manifest", &script, &[], &[]);
    assert_eq!(output.status.code(), Some(20), "{output:?}");
    let written = std::fs::read_to_string(directory.join("manifest.json")).unwrap();
    assert_eq!(written, manifest);
    let block = |script: &str| {
        let blocks = script.match_indices("\n# /// script\n").count();
        let start = script.find("# /// script\n").unwrap();
        (
            blocks,
            script[start..]
                .lines()
                .take(12)
                .collect::<Vec<_>>()
                .join("\n"),
        )
    };
    let plain = super::script(EntryPoint::Tabular);
    assert_eq!(block(&script), (1, block(&plain).1));
    std::fs::remove_dir_all(directory).unwrap();
}
