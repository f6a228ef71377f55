//! `labdata import`

use std::{env, fs, time::Duration};

use anyhow::{Context, bail};
use bytes::Bytes;
use http::{Request, StatusCode, header};
use http_body_util::Full;
use labdata_domain::files::disposition::attachment;
use labdata_http_client::{Authorities, HttpClient};
use labdata_operations::data::import::ImportTableBody;
use labdata_ports::IdSource as _;
use labdata_request_body::{Definitions, Shape as _};
use serde_json::Value;
use url::Url;

use super::{arguments::Import, output::say};
use crate::system::SystemIds;

/// Timeout of a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Timeout of the import, which the server bounds itself.
const TIMEOUT: Duration = Duration::from_mins(10);

/// Maximum size of a response in bytes.
const MAX_RESPONSE: usize = 16 << 20;

/// Sends a file to the platform that `LABDATA_BASE_URL` names, and prints what was written.
///
/// # Errors
/// What the platform refuses, line by line.
pub(super) async fn import(arguments: Import) -> anyhow::Result<()> {
    let given = |name: &str| env::var(name).ok().filter(|value| !value.trim().is_empty());
    let key = given("LABDATA_API_KEY").context("LABDATA_API_KEY is not set, or empty")?;
    let base = arguments.base_url.clone();
    let base = base
        .or_else(|| given("LABDATA_BASE_URL"))
        .context("neither --base-url nor LABDATA_BASE_URL is set")?;
    let boundary = SystemIds.next_id().simple().to_string();
    let request = Request::post(url(&base, &arguments.table)?.as_str())
        .header(header::AUTHORIZATION, format!("Bearer {}", key.trim()))
        .header(
            header::CONTENT_TYPE,
            format!("multipart/form-data; boundary={boundary}"),
        )
        .body(Full::new(Bytes::from(form(&arguments, &boundary)?)))
        .context("LABDATA_API_KEY cannot be sent: it has other characters than a key")?;
    // Platforms on the same machine have no TLS.
    let authorities = Authorities::of_machine().unwrap_or_else(|_| Authorities::none());
    let client = HttpClient::new(authorities, CONNECT_TIMEOUT)?;
    let response = client.exchange(request, TIMEOUT, MAX_RESPONSE).await;
    let response = response.with_context(|| format!("{base} did not respond"))?;
    let status = response.status();
    let body: Value = serde_json::from_slice(response.body()).unwrap_or_default();
    if status != StatusCode::OK {
        bail!("{}", refusal(status, &body));
    }
    if arguments.json {
        say(&serde_json::to_string_pretty(&body)?);
    } else {
        say(&summary(&body));
    }
    Ok(())
}

fn url(base: &str, table: &str) -> anyhow::Result<Url> {
    let wrong = || format!("\"{base}\" is no URL of a platform, such as http://127.0.0.1:8000");
    // As the Python client takes it: with the prefix of the API, or without.
    let host = base.trim().trim_end_matches('/');
    let host = host.strip_suffix("/api/v1").unwrap_or(host);
    let mut url = Url::parse(host).with_context(wrong)?;
    url.path_segments_mut()
        .map_err(|()| anyhow::anyhow!(wrong()))?
        .pop_if_empty()
        .extend(["api", "v1", "tables", table, "import"]);
    Ok(url)
}

/// The multipart form of an import.
fn form(arguments: &Import, boundary: &str) -> anyhow::Result<Vec<u8>> {
    let path = &arguments.file;
    let bytes = fs::read(path).with_context(|| format!("{} cannot be read", path.display()))?;
    let mut fields = vec![("mode", arguments.mode.as_str())];
    fields.extend(arguments.key.iter().map(|key| ("key", key.as_str())));
    if arguments.dry_run {
        fields.push(("dry_run", "true"));
    }
    let known = options();
    for option in &arguments.options {
        let field = option.split_once('=');
        let field =
            field.with_context(|| format!("\"{option}\" is no option: write NAME=VALUE"))?;
        // The platform ignores fields that it does not know.
        if !known.contains(&field.0) {
            let name = field.0.escape_default();
            bail!(
                "there is no option \"{name}\"; there are: {}",
                known.join(", ")
            );
        }
        fields.push(field);
    }
    let mut form = Vec::with_capacity(bytes.len() + 4096);
    let mut part = |disposition: &str, content: &[u8]| {
        let head = format!("--{boundary}\r\nContent-Disposition: {disposition}\r\n\r\n");
        form.extend_from_slice(head.as_bytes());
        form.extend_from_slice(content);
        form.extend_from_slice(b"\r\n");
    };
    for (name, value) in fields {
        part(&format!("form-data; name=\"{name}\""), value.as_bytes());
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let disposition = attachment(&name).replacen("attachment", "form-data; name=\"file\"", 1);
    part(&disposition, &bytes);
    form.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    Ok(form)
}

/// Parts of the form that have no argument.
fn options() -> Vec<&'static str> {
    let parts = ImportTableBody::properties(&mut Definitions::new(""));
    let names = parts.into_iter().map(|part| part.name);
    names
        .filter(|name| !["file", "mode", "key", "dry_run"].contains(name))
        .collect()
}

/// Problems of a refused import, one per line.
fn refusal(status: StatusCode, body: &Value) -> String {
    let problems = body["errors"]
        .as_array()
        .or_else(|| body["detail"].as_array());
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let lines: Vec<String> = problems
        .into_iter()
        .flatten()
        .map(|problem| {
            let message = text(&problem["message"]).or_else(|| text(&problem["msg"]));
            let message = message.unwrap_or_else(|| problem.to_string());
            match (text(&problem["path"]), problem["loc"].as_array()) {
                (Some(path), _) => format!("{path}: {message}"),
                (None, Some(loc)) => {
                    let parts = loc.iter().skip(1).filter_map(Value::as_str);
                    format!("{}: {message}", parts.collect::<Vec<_>>().join("."))
                }
                (None, None) => message,
            }
        })
        .collect();
    if lines.is_empty() {
        text(&body["detail"]).unwrap_or_else(|| format!("the platform responded {status}"))
    } else {
        format!("nothing was written:\n{}", lines.join("\n"))
    }
}

fn summary(body: &Value) -> String {
    let written = format!("{} created, {} updated", body["created"], body["updated"]);
    match body["job_execution_id"].as_str() {
        Some(execution) => format!("{written}; job execution {execution}"),
        None => format!("dry run: {written}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_url_may_end_in_a_slash_and_a_table_is_one_segment() {
        for base in [
            "http://lab:8000",
            "http://lab:8000/",
            "http://lab:8000/api/v1",
            " http://lab:8000/api/v1/ ",
        ] {
            let path = url(base, "a/b").unwrap();
            assert_eq!(path.as_str(), "http://lab:8000/api/v1/tables/a%2Fb/import");
        }
        assert!(url("lab", "a").is_err() && url("mailto:x", "a").is_err());
    }

    #[test]
    fn options_are_the_parts_of_the_form_without_an_argument() {
        let known = options();
        assert!(
            ["columns", "linked", "decimal", "null_values"].map(|name| known.contains(&name))
                == [true; 4]
        );
        assert!(!known.contains(&"file") && !known.contains(&"mode"));
    }

    #[test]
    fn a_refusal_is_a_line_per_problem() {
        let errors = json!({ "errors": [
            { "path": "rows[3].volume", "message": "must be a number" },
            { "path": null, "message": "and 2 more problems" },
        ] });
        let expected =
            "nothing was written:\nrows[3].volume: must be a number\nand 2 more problems";
        assert_eq!(refusal(StatusCode::BAD_REQUEST, &errors), expected);
        let detail = json!({ "detail": [{ "loc": ["body", "mode"], "msg": "unknown" }] });
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        assert!(refusal(status, &detail).ends_with("mode: unknown"));
        let text = json!({ "detail": "table not found" });
        assert_eq!(refusal(StatusCode::NOT_FOUND, &text), "table not found");
        assert!(refusal(StatusCode::BAD_GATEWAY, &Value::Null).contains("502"));
    }
}
