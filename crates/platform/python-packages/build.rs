//! Builds the wheel of the Python client from the sources in the tree. The same sources give the same bytes.
//!
//! The wheel is not compressed: a Ray cluster gets it inside of a message that is compressed as a whole.

use std::{
    env,
    error::Error,
    fmt::Write as _,
    fs,
    io::{Cursor, Write as _},
    path::{Path, PathBuf},
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest, Sha256};
use toml::{Table, Value};
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let project = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../../clients/python");
    let description = fs::read_to_string(project.join("pyproject.toml"))?;
    let description: Table = toml::from_str(&description)?;
    let about = table(&description, "project")?;
    let version = text(about, "version")?;
    let distribution = text(about, "name")?.replace('-', "_");

    let mut files = Vec::new();
    collect(&project.join("src"), "", &mut files)?;
    // A generated module follows its original: a compressor then finds the one in the other.
    files.sort_by_key(|(path, _)| (path.rsplit('/').next().map(str::to_owned), path.clone()));
    let info = format!("{distribution}-{version}.dist-info");
    files.push((format!("{info}/METADATA"), metadata(about)?));
    files.push((
        format!("{info}/WHEEL"),
        "Wheel-Version: 1.0\nGenerator: labdata\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            .to_owned(),
    ));
    files.push((format!("{info}/entry_points.txt"), entry_points(about)?));
    let record = format!("{info}/RECORD");
    let listed = files
        .iter()
        .fold(String::new(), |mut listed, (path, text)| {
            let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(text));
            // Writing to a string cannot fail.
            let _ = writeln!(listed, "{path},sha256={hash},{}", text.len());
            listed
        });
    files.push((record.clone(), format!("{listed}{record},,\n")));

    let wheel = pack(&files)?;
    let digest = base16ct::lower::encode_string(&Sha256::digest(&wheel));
    fs::write(Path::new(&env::var("OUT_DIR")?).join("client.whl"), wheel)?;
    let instructions = format!(
        "cargo:rerun-if-changed={project}/pyproject.toml\ncargo:rerun-if-changed={project}/src\n\
         cargo:rustc-env=CLIENT_WHEEL_NAME={distribution}-{version}-py3-none-any.whl\n\
         cargo:rustc-env=CLIENT_WHEEL_SHA256={digest}\n",
        project = project.display(),
    );
    // Cargo reads instructions from the standard output.
    std::io::stdout().write_all(instructions.as_bytes())?;
    Ok(())
}

/// Collects the modules below a directory, with their paths in the wheel.
fn collect(directory: &Path, above: &str, files: &mut Vec<(String, String)>) -> Outcome<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            continue;
        };
        if path.is_dir() && name != "__pycache__" {
            collect(&path, &format!("{above}{name}/"), files)?;
        } else if name == "py.typed" || path.extension().is_some_and(|it| it == "py") {
            files.push((format!("{above}{name}"), fs::read_to_string(&path)?));
        }
    }
    Ok(())
}

/// Writes the core metadata of the package.
fn metadata(about: &Table) -> Outcome<String> {
    let mut lines = String::from("Metadata-Version: 2.4\n");
    for (field, name) in [
        ("Name", "name"),
        ("Version", "version"),
        ("Summary", "description"),
        ("License-Expression", "license"),
        ("Requires-Python", "requires-python"),
    ] {
        writeln!(lines, "{field}: {}", text(about, name)?)?;
    }
    for requirement in texts(about.get("dependencies"))? {
        writeln!(lines, "Requires-Dist: {requirement}")?;
    }
    for (extra, requirements) in table(about, "optional-dependencies")? {
        writeln!(lines, "Provides-Extra: {extra}")?;
        for requirement in texts(Some(requirements))? {
            if requirement.contains(';') {
                return Err(format!("{requirement}: a marker in an extra is not supported").into());
            }
            writeln!(lines, "Requires-Dist: {requirement}; extra == '{extra}'")?;
        }
    }
    Ok(lines)
}

fn entry_points(about: &Table) -> Outcome<String> {
    let mut lines = String::from("[console_scripts]\n");
    for (name, target) in table(about, "scripts")? {
        writeln!(lines, "{name} = {}", target.as_str().ok_or("no text")?)?;
    }
    Ok(lines)
}

/// Writes an archive whose entries all have the same time.
fn pack(files: &[(String, String)]) -> Outcome<Vec<u8>> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Stored)
        .last_modified_time(zip::DateTime::default())
        .unix_permissions(0o644);
    for (path, text) in files {
        archive.start_file(path.as_str(), options)?;
        archive.write_all(text.as_bytes())?;
    }
    Ok(archive.finish()?.into_inner())
}

fn table<'a>(of: &'a Table, name: &str) -> Outcome<&'a Table> {
    let found = of.get(name).and_then(Value::as_table);
    Ok(found.ok_or_else(|| format!("pyproject.toml has no table {name}"))?)
}

fn text<'a>(of: &'a Table, name: &str) -> Outcome<&'a str> {
    let found = of.get(name).and_then(Value::as_str);
    Ok(found.ok_or_else(|| format!("pyproject.toml has no text {name}"))?)
}

fn texts(value: Option<&Value>) -> Outcome<Vec<&str>> {
    let values = value.and_then(Value::as_array).ok_or("no list of texts")?;
    let texts: Option<Vec<&str>> = values.iter().map(Value::as_str).collect();
    Ok(texts.ok_or("no list of texts")?)
}
