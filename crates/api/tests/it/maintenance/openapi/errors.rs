//! Codes of errors: in the document and in docs.

use std::{env, fs, path::Path};

use labdata_domain::refusal::ErrorCode;
use serde_json::Value;

use super::openapi;

const HEAD: &str = "\
# Error codes

Every error body but that of a 422 has a `code` beside `detail` or `errors`, and so has every entry of
`errors`. Programs branch on codes: messages may change, codes do not. A test writes this page from the codes
themselves (`UPDATE_OPENAPI=1 cargo test -p labdata-api --test it openapi`).

| code | meaning |
|---|---|
";

#[test]
fn docs_list_every_error_code() {
    let rows = ErrorCode::ALL
        .iter()
        .map(|code| format!("| `{code}` | {} |\n", code.meaning()));
    let fresh = HEAD.to_owned() + &rows.collect::<String>();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/ERRORS.md");
    if env::var_os("UPDATE_OPENAPI").is_some() {
        fs::write(&file, &fresh).unwrap();
    }
    assert_eq!(fs::read_to_string(&file).unwrap_or_default(), fresh);
}

#[test]
fn every_error_body_but_that_of_shape_has_a_code() {
    let document = serde_json::to_value(openapi()).unwrap();
    let mut bodies = 0;
    for (path, operations) in document["paths"].as_object().unwrap() {
        for operation in operations.as_object().unwrap().values() {
            let Some(responses) = operation["responses"].as_object() else {
                continue;
            };
            for (status, response) in responses {
                let schema = &response["content"]["application/json"]["schema"];
                if status.as_str() < "400" || status == "422" || schema.is_null() {
                    continue;
                }
                bodies += 1;
                assert!(has_code(&document, schema), "{path} {status}: {schema}");
            }
        }
    }
    assert!(bodies > 100, "{bodies}");
}

/// Returns true if every form of a body has a code.
fn has_code(document: &Value, schema: &Value) -> bool {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = document.pointer(reference.trim_start_matches('#'));
        return has_code(document, target.unwrap());
    }
    let forms = schema["oneOf"].as_array().or(schema["anyOf"].as_array());
    match forms {
        Some(forms) => forms.iter().all(|form| has_code(document, form)),
        None => {
            schema["properties"]["code"]["$ref"] == "#/components/schemas/ErrorCode"
                && schema["required"]
                    .as_array()
                    .unwrap()
                    .contains(&"code".into())
        }
    }
}
