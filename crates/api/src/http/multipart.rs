//! Multipart forms.

use actix_multipart::{Field, Multipart};
use actix_web::{
    HttpRequest,
    http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, Charset, DispositionParam, HeaderMap},
};
use bytes::Bytes;
use futures::{StreamExt, stream};
use labdata_operations::MULTIPART;
use labdata_request_body::ProblemKind;
use sha2::{Digest, Sha256};

use super::ApiError;

/// More parts than this are no upload.
pub(super) const MOST_PARTS: usize = 100;

/// The parts of a form.
#[derive(Clone, Debug, Default)]
pub struct Form {
    parts: Vec<Part>,
}

/// A part of a form.
#[derive(Clone, Debug)]
pub struct Part {
    name: String,
    /// The file's name, where it is a file.
    pub file_name: Option<String>,
    /// Its type, where it states one that can be read.
    pub content_type: Option<String>,
    /// Its content.
    pub bytes: Bytes,
}

impl Form {
    /// Takes a whole body apart.
    ///
    /// # Errors
    /// What is wrong with its form.
    pub async fn parse(headers: &HeaderMap, body: Bytes) -> Result<Self, String> {
        // No part is longer than the body, so this limit never refuses a form that was accepted.
        let length = body.len();
        let mut multipart = Multipart::new(headers, stream::iter([Ok(body)]));
        let mut parts = Vec::new();
        while let Some(field) = multipart.next().await {
            let field = field.map_err(|error| error.to_string())?;
            // An empty part costs its sender a few bytes, but more memory here.
            if parts.len() == MOST_PARTS {
                return Err(format!("it has more than {MOST_PARTS} parts"));
            }
            let part = Part::read(field, length).await?;
            if part.file_name.is_some()
                && parts.iter().any(|other: &Part| other.is_file(&part.name))
            {
                return Err(several_files(&part.name));
            }
            parts.push(part);
        }
        Ok(Self { parts })
    }

    /// The part of that name; of several texts the last.
    #[must_use]
    pub fn part(&self, name: &str) -> Option<&Part> {
        self.parts.iter().rfind(|part| part.name == name)
    }

    /// SHA-256 of the parts without the boundaries between them.
    #[must_use]
    pub fn sha256(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        for part in &self.parts {
            let texts = [
                Some(&part.name),
                part.file_name.as_ref(),
                part.content_type.as_ref(),
            ];
            hash_texts(&mut hash, texts);
            update(&mut hash, &part.bytes);
        }
        hash.finalize().into()
    }

    /// The value of a field that is no file; one that is empty or `null` counts as absent.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<String> {
        let part = self.part(name)?;
        let text = String::from_utf8_lossy(&part.bytes);
        let text = text.trim();
        (!text.is_empty() && text != "null").then(|| text.to_owned())
    }
}

impl Part {
    fn is_file(&self, name: &str) -> bool {
        self.file_name.is_some() && self.name == name
    }

    async fn read(mut field: Field, limit: usize) -> Result<Self, String> {
        let name = field.name().unwrap_or_default().to_owned();
        let file_name = file_name(&field);
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

/// Reason to refuse a form with a second file in one field: one of them would be lost without a word.
pub(super) fn several_files(field: &str) -> String {
    format!("`{field}` holds several files; send one request for each")
}

/// Adds what identifies a part besides its content.
pub(super) fn hash_texts(hash: &mut Sha256, texts: [Option<&String>; 3]) {
    for text in texts {
        hash.update([u8::from(text.is_some())]);
        update(hash, text.map_or(&[], |text| text.as_bytes()));
    }
}

/// Adds a value with its length, so that values cannot run into each other.
fn update(hash: &mut Sha256, bytes: &[u8]) {
    hash.update(u64::try_from(bytes.len()).unwrap_or(u64::MAX).to_be_bytes());
    hash.update(bytes);
}

/// Returns the name that a file was sent with. The extended form (`filename*`) wins, as RFC 6266 has it.
pub(super) fn file_name(part: &Field) -> Option<String> {
    let disposition = part.content_disposition()?;
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
    let quoted = || {
        let header = part.headers().get(CONTENT_DISPOSITION)?;
        quoted_file_name(std::str::from_utf8(header.as_bytes()).ok()?)
    };
    // The parser has removed the backslashes of a quoted name, so that one is read from the header itself.
    let name = extended.is_none().then(quoted).flatten();
    extended
        .or_else(|| name.map(|name| unescape(&name)))
        .or_else(|| disposition.get_filename().map(unescape))
}

/// Returns the quoted value of `filename` with its backslashes, which are separators of a Windows path unless they
/// precede a quotation mark or another backslash. A sender that escapes backslashes escapes all of them, so a single
/// one shows that none is escaped, as in `\\server\share\a.csv`.
fn quoted_file_name(header: &str) -> Option<String> {
    let mut rest = header;
    loop {
        let (_, parameter) = rest.split_once(';')?;
        let (name, value) = parameter.split_once('=')?;
        let Some(quoted) = value.trim_start().strip_prefix('"') else {
            rest = value;
            continue;
        };
        let (value, after) = split_quoted(quoted)?;
        if name.trim().eq_ignore_ascii_case("filename") {
            return Some(without_escapes(value));
        }
        rest = after;
    }
}

/// Splits a text at the quotation mark that ends a quotation.
fn split_quoted(text: &str) -> Option<(&str, &str)> {
    let mut is_escaped = false;
    let end = text.find(|char| {
        let is_end = char == '"' && !is_escaped;
        is_escaped = char == '\\' && !is_escaped;
        is_end
    })?;
    Some((text.get(..end)?, text.get(end + 1..)?))
}

fn without_escapes(quoted: &str) -> String {
    let unquoted = quoted.replace("\\\"", "\"");
    // Pairs are removed from the left, so what is left of them is a single backslash.
    let has_single = unquoted.replace("\\\\", "").contains('\\');
    if has_single {
        unquoted
    } else {
        unquoted.replace("\\\\", "\\")
    }
}

/// Decodes the three characters that browsers, curl and HTTP libraries escape in `filename=`, as HTML's
/// "multipart/form-data encoding algorithm" says. They escape nothing else, `%` included, so a name with a
/// literal `%22`, `%0A` or `%0D` cannot be distinguished from an escaped one, and is decoded as well.
fn unescape(name: &str) -> String {
    name.replace("%22", "\"")
        .replace("%0A", "\n")
        .replace("%0D", "\r")
}

/// Refuses a request whose body is no form with files.
///
/// # Errors
/// 415.
pub fn require_multipart(request: &HttpRequest) -> Result<(), ApiError> {
    let displayed = request
        .headers()
        .get(CONTENT_TYPE)
        .map(|value| value.to_str().unwrap_or_default());
    let essence = displayed
        .and_then(|value| value.split(';').next())
        .unwrap_or_default();
    if essence.trim().eq_ignore_ascii_case(MULTIPART) {
        return Ok(());
    }
    Err(ApiError::UnsupportedMediaType(match displayed {
        Some(other) => format!("this operation reads multipart/form-data, not {other:.100}"),
        None => "this operation reads multipart/form-data: the Content-Type header is missing"
            .to_owned(),
    }))
}

/// The problem of a form that cannot be taken apart.
#[must_use]
pub fn malformed(reason: &str) -> ProblemKind {
    let text = format!("the body is not well-formed multipart/form-data: {reason}");
    ProblemKind::value_error(&text)
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;

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
    async fn a_second_file_in_one_field_is_refused() {
        let file = |name: &str| {
            format!(
                "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\r\n1\r\n"
            )
        };
        let body = format!("{}{}--b--\r\n", file("a.csv"), file("b.csv"));
        let refused = parse(body.as_bytes()).await.err().unwrap();
        assert!(refused.contains("several files"), "{refused}");
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
            // curl and R send the backslashes of a path as they are.
            (
                r#"filename="D:\Exports\run 7\plate.txt""#,
                r"D:\Exports\run 7\plate.txt",
            ),
            (r#"filename="run\1.txt""#, r"run\1.txt"),
            (r#"filename="ru\n1.txt""#, r"ru\n1.txt"),
            (
                r#"filename="\\server\share\a.csv""#,
                r"\\server\share\a.csv",
            ),
            (
                r#"filename="\\\\server\\share\\a.csv""#,
                r"\\server\share\a.csv",
            ),
            (r#"filename="a \"b\".csv""#, "a \"b\".csv"),
            (r#"FileName = "c:\a;b=c.csv"; x="y""#, r"c:\a;b=c.csv"),
            (r#"x="filename=\"no"; filename="a\b.csv""#, r"a\b.csv"),
            ("filename=a.csv", "a.csv"),
            ("filename=\"a%22b%22.csv\"", "a\"b\".csv"),
            ("filename=\"new%0D%0Aline.csv\"", "new\r\nline.csv"),
            // Only what browsers escape.
            ("filename=\"50%25 a%20b %0a.csv\"", "50%25 a%20b %0a.csv"),
            ("filename*=UTF-8''a%2522.csv", "a%22.csv"),
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
