//! Checks signatures of Google Cloud Storage (GOOG4-RSA-SHA256), as its documentation has them.

use base64::{Engine, engine::general_purpose::STANDARD};
use percent_encoding::percent_decode_str;
use ring::signature::{RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use sha2::{Digest, Sha256};
use time::{Duration, OffsetDateTime, PrimitiveDateTime, macros::format_description};

/// The host that clients sign for; the request may go to another server.
const HOST: &str = "storage.googleapis.com";

/// A request: method, path, query as it was sent, and headers with names in lower case.
pub(crate) struct Signed<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) query: &'a str,
    pub(crate) headers: &'a [(String, String)],
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let pairs = (0..text.len() / 2).map(|at| text.get(at * 2..at * 2 + 2));
    pairs
        .map(|pair| u8::from_str_radix(pair?, 16).ok())
        .collect()
}

/// Checks signature and expiry with a public key (PKCS #1, base64); what is wrong otherwise, as
/// the code of the storage's answer.
pub(crate) fn verify(
    request: &Signed<'_>,
    public_key: &str,
    now: OffsetDateTime,
) -> Result<(), &'static str> {
    let mut pairs: Vec<&str> = request.query.split('&').collect();
    let parameter = |name: &str| {
        let raw = request
            .query
            .split('&')
            .find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        raw.map(|raw| percent_decode_str(raw).decode_utf8_lossy().into_owned())
            .ok_or("AccessDenied")
    };
    let (algorithm, credential) = (
        parameter("X-Goog-Algorithm")?,
        parameter("X-Goog-Credential")?,
    );
    let (date, expires) = (parameter("X-Goog-Date")?, parameter("X-Goog-Expires")?);
    let signature = from_hex(&parameter("X-Goog-Signature")?).ok_or("SignatureDoesNotMatch")?;
    let names = parameter("X-Goog-SignedHeaders")?;
    if algorithm != "GOOG4-RSA-SHA256" {
        return Err("AccessDenied");
    }
    pairs.retain(|pair| !pair.starts_with("X-Goog-Signature="));
    pairs.sort_unstable();
    let mut canonical = format!(
        "{}\n{}\n{}\n",
        request.method,
        request.path,
        pairs.join("&")
    );
    for name in names.split(';') {
        let value = match name {
            "host" => HOST,
            _ => request
                .headers
                .iter()
                .find_map(|(known, value)| (known == name).then_some(value.trim()))
                .ok_or("MalformedSecurityHeader")?,
        };
        canonical.push_str(&format!("{name}:{value}\n"));
    }
    canonical.push_str(&format!("\n{names}\nUNSIGNED-PAYLOAD"));
    let (_, scope) = credential.split_once('/').ok_or("AccessDenied")?;
    let digest = hex(&Sha256::digest(canonical.as_bytes()));
    let signed = format!("{algorithm}\n{date}\n{scope}\n{digest}");
    let key = UnparsedPublicKey::new(
        &RSA_PKCS1_2048_8192_SHA256,
        STANDARD.decode(public_key).unwrap(),
    );
    key.verify(signed.as_bytes(), &signature)
        .map_err(|_| "SignatureDoesNotMatch")?;
    let form = format_description!("[year][month][day]T[hour][minute][second]Z");
    let begins = PrimitiveDateTime::parse(&date, &form).map_err(|_| "AccessDenied")?;
    let ends =
        begins.assume_utc() + Duration::seconds(expires.parse().map_err(|_| "AccessDenied")?);
    if now > ends {
        Err("ExpiredToken")
    } else {
        Ok(())
    }
}

mod vectors {
    use time::format_description::well_known::Rfc3339;

    use super::*;

    /// The public half of the key with which Google published its examples.
    const KEY: &str = "MIIBCgKCAQEArD8zIqyKLbX0Nq8o0Jj1qHEhHhqO3+0OP7TEFx5Vxc6PdwBoFNrfnJRI/S+ZaDYS1avr5Pqpp8g8+UNOMvI1VsjGM8xjTaxkVv8mmKp6pSmQstTt25pzY1exA2wv4xNWSwWNFNx2kh35+kvTQ/DF3YA9P7pUU1sKur1PP8OoubWLFO59iy5UE5dX0O/3pjvZ2HAhSXsx2VWtB5nlrHR8FrKJNLJMEGEDSMz9yRfQaUeYCU9oDYHuiqKQ3rCXi6C82l+3FJw5/ggJ5y7iw8MErCFSslcYQRbBVz6ZYKWkEcJhs8BG3/16bfaqNusNlDIJ99I7DmipUngF/HEulYhfrQIDAQAB";

    #[test]
    fn the_published_signatures_are_valid_until_they_expire_and_no_other_is() {
        for (name, method, time, headers, url) in crate::goog4_vectors::VECTORS {
            let (path, query) = url
                .strip_prefix("https://storage.googleapis.com")
                .and_then(|rest| rest.split_once('?'))
                .unwrap();
            let headers: Vec<_> = headers
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect();
            let begins = OffsetDateTime::parse(time, &Rfc3339).unwrap();
            let signed = |method, path, query| Signed {
                method,
                path,
                query,
                headers: &headers,
            };
            let valid = verify(&signed(method, path, query), KEY, begins);
            assert_eq!(valid, Ok(()), "{name}");
            let late = begins + Duration::seconds(21);
            let expired = verify(&signed(method, path, query), KEY, late);
            assert_eq!(expired, Err("ExpiredToken"), "{name}");
            for other in [
                signed("DELETE", path, query),
                signed(method, "/test-bucket/other", query),
                signed(method, path, &query.replace("Expires=", "Expires=9")),
            ] {
                let refused = verify(&other, KEY, begins);
                assert_eq!(refused, Err("SignatureDoesNotMatch"), "{name}");
            }
        }
    }
}
