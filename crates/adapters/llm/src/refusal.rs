//! Refusals of a provider.

use ::http::{HeaderMap, StatusCode, header::RETRY_AFTER};
use labdata_domain::agent::{ModelFailure, provider_message};
use labdata_redacted::Secret;
use serde_json::Value;

/// The failure for a response with that status.
pub(crate) fn refusal(
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
    key: Option<&Secret>,
) -> ModelFailure {
    let message = message(body)
        .or_else(|| status.canonical_reason().map(str::to_owned))
        .unwrap_or_default();
    ModelFailure::Refused {
        status: status.as_u16(),
        retry_after: retry_after(headers),
        message: provider_message(&message, key.map(Secret::reveal)),
    }
}

/// The message of an error, in the forms that providers use.
fn message(body: &[u8]) -> Option<String> {
    const PLACES: [&str; 5] = [
        "/error/message",
        "/error",
        "/message",
        "/detail",
        "/0/error/message",
    ];
    // Proxies send HTML, of which nothing is passed on.
    let json: Value = serde_json::from_slice(body).ok()?;
    let found = PLACES
        .iter()
        .find_map(|place| json.pointer(place)?.as_str());
    found.filter(|text| !text.is_empty()).map(str::to_owned)
}

/// The seconds to wait, rounded up. A date is not read: the wait would be too long for a retry anyway.
fn retry_after(headers: &HeaderMap) -> Option<u32> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let (whole, part) = value.split_once('.').unwrap_or((value, ""));
    let seconds: u32 = whole.parse().ok()?;
    let is_whole = part.bytes().all(|digit| digit == b'0');
    Some(seconds.saturating_add(u32::from(!is_whole)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_is_found_in_every_form() {
        for body in [
            r#"{"error": {"message": "m", "type": "x"}}"#,
            r#"{"error": "m"}"#,
            r#"{"type": "error", "error": {"message": "m"}}"#,
            r#"{"message": "m"}"#,
            r#"[{"error": {"message": "m", "code": 400}}]"#,
        ] {
            assert_eq!(message(body.as_bytes()).as_deref(), Some("m"), "{body}");
        }
        for body in ["<html>m</html>", "", "{}", r#"{"error": {"message": ""}}"#] {
            assert_eq!(message(body.as_bytes()), None, "{body}");
        }
    }

    #[test]
    fn a_refusal_without_a_message_has_that_of_its_status() {
        let key = Secret::new("sk-1".to_owned());
        let refused = |status, body: &str| {
            refusal(status, &HeaderMap::new(), body.as_bytes(), Some(&key)).to_string()
        };
        assert_eq!(
            refused(StatusCode::BAD_GATEWAY, "<html>sk-1</html>"),
            "the provider of the model answered 502: Bad Gateway"
        );
        assert_eq!(
            refused(StatusCode::UNAUTHORIZED, r#"{"error": "wrong key sk-1"}"#),
            "the provider of the model answered 401: wrong key …"
        );
    }

    #[test]
    fn the_time_to_wait_is_whole_seconds() {
        for (value, seconds) in [
            ("5", Some(5)),
            ("0", Some(0)),
            ("1.2", Some(2)),
            ("1.0", Some(1)),
            ("Wed, 21 Oct 2026 07:28:00 GMT", None),
            ("-1", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, value.parse().unwrap());
            assert_eq!(retry_after(&headers), seconds, "{value}");
        }
    }
}
