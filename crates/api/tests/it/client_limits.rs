//! Limits that the console and the Python client state themselves are those of the API.

use std::{fs, path::Path};

use labdata_domain::data::write::{MAX_ROWS, MAX_SERIES_VALUES};
use labdata_operations::BODY_LIMIT;
use serde_json::Value;

/// Forms of the console with lengths, by page: the schema of the body that each one sends, in the
/// order of the page, and the field with that length.
const FORMS: [(&str, &[(&str, &str)]); 8] = [
    ("pages/admin.js", &[("CreateApiKeyBody", "name")]),
    (
        "pages/people.js",
        &[("CreateUserBody", "name"), ("CreateGroupBody", "name")],
    ),
    (
        "pages/definition.js",
        &[("DefineColumnBody", "name"), ("DefineColumnBody", "name")],
    ),
    ("pages/jobs.js", &[("CreateJobBody", "name")]),
    (
        "pages/models.js",
        &[("CreateDatasetBody", "name"), ("TrainModelBody", "name")],
    ),
    ("pages/annotations.js", &[("NewAnnotationBody", "label")]),
    ("pages/integrations.js", &[("CreateSqlLoginBody", "name")]),
    ("assets/views.js", &[("CreateSavedViewBody", "name")]),
];

fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn text(path: &str) -> String {
    fs::read_to_string(repository().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn schemas() -> Value {
    let mut document: Value = serde_json::from_str(&text("docs/openapi.json")).unwrap();
    document["components"]["schemas"].take()
}

/// The numbers behind each such text, with `_` between digits.
fn numbers_behind(text: &str, start: &str) -> Vec<u64> {
    text.split(start)
        .skip(1)
        .map(|rest| {
            let digits = rest
                .chars()
                .take_while(|it| it.is_ascii_digit() || *it == '_');
            let digits: String = digits.filter(|it| *it != '_').collect();
            digits
                .parse()
                .unwrap_or_else(|_| panic!("no number behind {start:?}"))
        })
        .collect()
}

/// The greatest length of a field: stated, or that of its pattern `^[a-z][a-z0-9_]{0,N}$`.
fn greatest_length(body: &Value, field: &str) -> u64 {
    let field = &body["properties"][field];
    field["maxLength"].as_u64().unwrap_or_else(|| {
        let pattern = field["pattern"].as_str().unwrap();
        numbers_behind(pattern, "{0,")[0] + 1
    })
}

#[test]
fn texts_in_the_consoles_forms_have_the_lengths_of_the_api() {
    let assets = repository().join("crates/console/assets");
    let schemas = schemas();
    let pages = fs::read_dir(assets.join("pages")).unwrap();
    let files = fs::read_dir(&assets).unwrap().chain(pages);
    for file in files {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|it| it != "js") {
            continue;
        }
        let source = fs::read_to_string(&path).unwrap();
        let forms = FORMS.iter().find(|(page, _)| path.ends_with(page));
        let bodies = forms.map_or(&[][..], |(_, bodies)| bodies);
        let lengths = bodies
            .iter()
            .map(|(body, field)| greatest_length(&schemas[body], field));
        let lengths: Vec<u64> = lengths.collect();
        let stated = numbers_behind(&source, "maxlength: ");
        assert_eq!(stated, lengths, "{}", path.display());
        // In no other spelling, which would not be compared.
        let mentioned = source.to_ascii_lowercase().matches("maxlength").count();
        assert_eq!(mentioned, lengths.len(), "{}", path.display());
    }
}

#[test]
fn the_python_clients_requests_fit_the_limits_of_the_api() {
    let client = "clients/python/src/labdata_client";
    let batches = text(&format!("{client}/_batches.py"));
    let limit = |name: &str| numbers_behind(&batches, &format!("\n{name} = "))[0];
    let schemas = schemas();
    let rows = &schemas["TableWrite"]["properties"]["rows"]["maxItems"];
    let values =
        &schemas["SeriesWrite"]["properties"]["columns"]["additionalProperties"]["maxItems"];
    assert_eq!(rows.as_u64(), Some(limit("MAX_ROWS")));
    assert_eq!(values.as_u64(), Some(limit("MAX_VALUES")));
    assert_eq!(usize::try_from(limit("MAX_ROWS")), Ok(MAX_ROWS));
    assert_eq!(usize::try_from(limit("MAX_VALUES")), Ok(MAX_SERIES_VALUES));

    // Room for what surrounds the rows, and no more requests than needed.
    let room = u64::try_from(BODY_LIMIT).unwrap();
    let body = limit("MAX_BYTES");
    let fits = room / 10 * 9..room;
    assert!(fits.contains(&body), "{body}");
    let uploads = text(&format!("{client}/_uploads.py"));
    let factors = uploads.split("\nONE_REQUEST_BYTES = ").nth(1).unwrap();
    let factors = factors.lines().next().unwrap().split(" * ");
    let upload: u64 = factors.map(|it| it.parse::<u64>().unwrap()).product();
    assert!(upload < room, "{upload}");
}
