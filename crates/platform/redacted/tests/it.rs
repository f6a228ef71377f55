//! Reads the sources of all crates: no type that derives `Debug` holds a secret as a plain value.
#![expect(
    clippy::unwrap_used,
    reason = "these are tests, their helpers included: what is not as expected fails them"
)]

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Parts of the names of fields that hold secrets.
const SECRET: [&str; 11] = [
    "nonce",
    "password",
    "secret",
    "token",
    "credential",
    "authorization",
    "cookie",
    "api_key",
    "private_key",
    "signature",
    "environment",
];

/// Names with one of these parts whose fields hold no secret.
const HARMLESS: [&str; 1] = ["api_key_id"];

/// Types that show a secret. Others are shown as they are, or redact themselves.
const PLAIN: [&str; 12] = [
    "String",
    "Option<String>",
    "Box<str>",
    "Arc<str>",
    "&str",
    "PathBuf",
    "Vec<u8>",
    "Bytes",
    "Url",
    "Option<Url>",
    "Vec<(String, String)>",
    "[u8; 32]",
];

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && !matches!(&*name, "tests" | "target" | "benches") {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// A field `name: type,` of that line.
fn field(line: &str) -> Option<(&str, &str)> {
    let line = line.trim().trim_end_matches(',');
    let line = line.strip_prefix("pub ").unwrap_or(line);
    let line = match line.strip_prefix("pub(") {
        Some(rest) => rest.split_once(") ")?.1,
        None => line,
    };
    let (name, of) = line.split_once(": ")?;
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    name.chars().all(is_name).then_some((name, of))
}

/// Fields of types that derive `Debug`, in the text of a file, that show a secret.
fn visible_secrets(text: &str) -> Vec<String> {
    let (mut derives, mut within, mut found) = (false, false, Vec::new());
    for line in text.lines() {
        let code = line.trim();
        if code.starts_with("#[derive(") || (derives && code.contains("Debug")) {
            derives |= code.contains("Debug");
        } else if code.contains("struct ") || code.contains("enum ") {
            within = derives && code.ends_with('{');
            derives = false;
        } else if line.starts_with('}') {
            within = false;
        } else if within && let Some((name, of)) = field(line) {
            let named = SECRET.iter().any(|part| name.contains(part));
            if named && !HARMLESS.contains(&name) && PLAIN.contains(&of) {
                found.push(format!("{name}: {of}"));
            }
        }
    }
    found
}

#[test]
fn no_derived_debug_shows_a_secret() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("crates");
    let mut files = Vec::new();
    sources(crates, &mut files);
    assert!(files.len() > 300, "{} files", files.len());
    let mut displayed = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for field in visible_secrets(&text) {
            displayed.push(format!("{}: {field}", file.display()));
        }
    }
    assert!(displayed.is_empty(), "{}", displayed.join("\n"));
}

#[test]
fn a_derived_debug_with_a_secret_is_found() {
    let plain = "#[derive(Clone, Debug)]\npub struct Login {\n    /// The user's.\n    \
                 pub(crate) password: String,\n    pub user: String,\n}\n";
    assert_eq!(visible_secrets(plain), ["password: String"]);
    for redacted in [
        plain.replace(", Debug", ""),
        plain.replace("password: String", "password: Secret"),
    ] {
        assert_eq!(visible_secrets(&redacted), Vec::<String>::new());
    }
}
