//! Each use case has a span, so that an operator sees where the time of a request goes.

use std::{
    fs,
    path::{Path, PathBuf},
};

const SPAN: &str = r#"#[tracing::instrument(level = "debug", skip_all)]"#;

/// Source files below a directory.
fn sources(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let found = paths.flat_map(|path| {
        if path.is_dir() {
            sources(&path)
        } else {
            vec![path]
        }
    });
    found.collect()
}

#[test]
fn every_use_case_has_a_span_without_its_arguments() {
    let mut use_cases = 0;
    for path in sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")) {
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        for pair in lines.windows(2) {
            if pair[1].starts_with("pub async fn ") {
                use_cases += 1;
                assert_eq!(pair[0], SPAN, "{}: {}", path.display(), pair[1]);
            }
        }
    }
    assert!(use_cases > 100, "{use_cases}");
}
