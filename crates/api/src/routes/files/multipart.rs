//! Takes a multipart body apart.

use actix_multipart::{Field, Multipart};
use actix_web::http::header::{Charset, ContentDisposition, DispositionParam, HeaderMap};
use bytes::Bytes;
use futures::{StreamExt, stream};
use sha2::{Digest, Sha256};

/// More parts than this are no upload.
const MOST_PARTS: usize = 100;

/// The parts of a form.
#[derive(Clone, Debug, Default)]
pub(super) struct Form {
    parts: Vec<Part>,
}

/// A part of a form.
#[derive(Clone, Debug)]
pub(super) struct Part {
    name: String,
    /// The file's name, where it is a file.
    pub(super) file_name: Option<String>,
    /// Its type, where it states one that can be read.
    pub(super) content_type: Option<String>,
    pub(super) bytes: Bytes,
}

impl Form {
    /// Takes a whole body apart.
    ///
    /// # Errors
    /// What is wrong with its form.
    pub(super) async fn parse(headers: &HeaderMap, body: Bytes) -> Result<Self, String> {
        let length = body.len();
        let mut multipart = Multipart::new(headers, stream::iter([Ok(body)]));
        let mut parts = Vec::new();
        while let Some(field) = multipart.next().await {
            let field = field.map_err(|error| error.to_string())?;
            if parts.len() == MOST_PARTS {
                return Err(format!("it has more than {MOST_PARTS} parts"));
            }
            parts.push(Part::read(field, length).await?);
        }
        Ok(Self { parts })
    }

    /// The part of that name; of several the last.
    pub(super) fn part(&self, name: &str) -> Option<&Part> {
        self.parts.iter().rfind(|part| part.name == name)
    }

    /// SHA-256 of the parts, whatever boundary separated them.
    pub(super) fn sha256(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        for part in &self.parts {
            let texts = [
                Some(&part.name),
                part.file_name.as_ref(),
                part.content_type.as_ref(),
            ];
            for text in texts {
                hash.update([u8::from(text.is_some())]);
                update(&mut hash, text.map_or(&[], |text| text.as_bytes()));
            }
            update(&mut hash, &part.bytes);
        }
        hash.finalize().into()
    }

    /// The value of a field that is no file; one that is empty or `null` counts as absent.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        let part = self.part(name)?;
        let text = String::from_utf8_lossy(&part.bytes);
        let text = text.trim();
        (!text.is_empty() && text != "null").then(|| text.to_owned())
    }
}

impl Part {
    async fn read(mut field: Field, limit: usize) -> Result<Self, String> {
        let name = field.name().unwrap_or_default().to_owned();
        let file_name = field.content_disposition().and_then(file_name);
        let content_type = field.content_type().map(ToString::to_string);
        let bytes = match field.bytes(limit).await {
            Ok(Ok(bytes)) => bytes,
            Ok(Err(error)) => return Err(error.to_string()),
            Err(_) => return Err("a part is longer than the body".to_owned()),
        };
        Ok(Self {
            name,
            file_name,
            content_type,
            bytes,
        })
    }
}

/// Adds a value with its length, so that values cannot run into each other.
fn update(hash: &mut Sha256, bytes: &[u8]) {
    hash.update(u64::try_from(bytes.len()).unwrap_or(u64::MAX).to_be_bytes());
    hash.update(bytes);
}

/// The name that a file was sent with. The extended form (`filename*`) wins, as RFC 6266 has it.
fn file_name(disposition: &ContentDisposition) -> Option<String> {
    let extended = disposition
        .parameters
        .iter()
        .find_map(|parameter| match parameter {
            DispositionParam::FilenameExt(value) => match value.charset {
                Charset::Ext(ref name) if name.eq_ignore_ascii_case("utf-8") => {
                    String::from_utf8(value.value.clone()).ok()
                }
                Charset::Iso_8859_1 => Some(value.value.iter().copied().map(char::from).collect()),
                _ => None,
            },
            _ => None,
        });
    extended.or_else(|| disposition.get_filename().map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::{CONTENT_TYPE, HeaderValue};

    use super::*;

    async fn parse(body: &[u8]) -> Result<Form, String> {
        let mut headers = HeaderMap::new();
        let value = HeaderValue::from_static("multipart/form-data; boundary=b");
        headers.insert(CONTENT_TYPE, value);
        Form::parse(&headers, Bytes::copy_from_slice(body)).await
    }

    async fn name_of(disposition: &str) -> Option<String> {
        let body = format!(
            "--b\r\nContent-Disposition: form-data; name=\"file\"; {disposition}\r\n\r\nx\r\n--b--\r\n"
        );
        parse(body.as_bytes())
            .await
            .unwrap()
            .part("file")
            .unwrap()
            .file_name
            .clone()
    }

    #[actix_web::test]
    async fn a_file_and_fields_are_read() {
        let body = b"--b\r\nContent-Disposition: form-data; name=\"instrument_id\"\r\n\r\nabc\r\n\
            --b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.csv\"\r\n\
            Content-Type: text/csv\r\n\r\n1\r\n2\r\n\r\n--b--\r\n";
        let form = parse(body).await.unwrap();
        let file = form.part("file").unwrap();
        assert_eq!(file.bytes, "1\r\n2\r\n");
        assert_eq!(file.content_type.as_deref(), Some("text/csv"));
        assert_eq!(form.text("instrument_id").as_deref(), Some("abc"));
        assert_eq!(form.text("job_execution_id"), None);
    }

    #[actix_web::test]
    async fn names_are_read_in_every_form() {
        let cases = [
            ("filename=\"a b.csv\"", "a b.csv"),
            ("filename=\"Süd.csv\"", "Süd.csv"),
            (
                "filename=\"a.csv\"; filename*=UTF-8''S%C3%BCd%20%E2%82%AC.csv",
                "Süd €.csv",
            ),
            ("filename*=iso-8859-1''%B5.csv", "µ.csv"),
            ("filename=\"C:\\\\Data\\\\a.csv\"", "C:\\Data\\a.csv"),
            ("filename=\"a.csv\"; filename*=UTF-8''%FF", "a.csv"),
        ];
        for (disposition, expected) in cases {
            assert_eq!(
                name_of(disposition).await.as_deref(),
                Some(expected),
                "{disposition}"
            );
        }
    }

    #[actix_web::test]
    async fn a_body_in_another_form_is_refused() {
        let bodies: [&[u8]; 7] = [
            b"x",
            b"--b\r\n",
            b"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\ntorn",
            b"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\x00b\"\r\n\r\nx\r\n--b--\r\n",
            b"--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--\r\n",
            b"--b\r\n\r\nx\r\n--b--\r\n",
            b"--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"\xff\"\r\n\r\nx\r\n--b--\r\n",
        ];
        for body in bodies {
            assert!(
                parse(body).await.is_err(),
                "{}",
                String::from_utf8_lossy(body)
            );
        }
        let part = "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nx\r\n";
        assert!(
            parse(format!("{}--b--\r\n", part.repeat(101)).as_bytes())
                .await
                .is_err()
        );
        assert!(
            parse(format!("{}--b--\r\n", part.repeat(100)).as_bytes())
                .await
                .is_ok()
        );
    }
}
