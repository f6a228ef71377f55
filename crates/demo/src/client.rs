//! An HTTP client as a lab's script has it: a key, JSON, and errors that quote the server.

use anyhow::{Context, bail};
use reqwest::{
    Method, RequestBuilder, Response, StatusCode,
    header::{HeaderMap, LINK},
    multipart::{Form, Part},
};
use serde_json::{Value, json};
use url::Url;

/// Rows per page.
const PAGE: u32 = 1000;

/// A client of the platform with one API key.
pub(crate) struct Client {
    http: reqwest::Client,
    base: String,
    key: String,
}

impl Client {
    /// Creates a client of the server at `base`.
    pub(crate) fn new(base: &str, key: &str) -> anyhow::Result<Self> {
        // The server is on this machine, which no proxy of the environment serves.
        let http = reqwest::Client::builder().no_proxy().build()?;
        Ok(Self {
            http,
            base: base.to_owned(),
            key: key.to_owned(),
        })
    }

    /// Sends JSON and reads the response's JSON.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        body: &Value,
    ) -> anyhow::Result<Value> {
        Ok(self.exchange(method, path, body).await?.0)
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: &Value,
    ) -> anyhow::Result<(Value, HeaderMap)> {
        let mut request = self.request(method, path);
        if !body.is_null() {
            request = request.json(body);
        }
        let response = checked(request, path).await?;
        let headers = response.headers().clone();
        Ok((
            response
                .json()
                .await
                .with_context(|| format!("{path}: no JSON"))?,
            headers,
        ))
    }

    /// Reads a resource.
    pub(crate) async fn get(&self, path: &str) -> anyhow::Result<Value> {
        self.send(Method::GET, path, &Value::Null).await
    }

    /// Posts JSON.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        self.send(Method::POST, path, body).await
    }

    /// Posts JSON to an operation that this platform may be unable to do: 503 yields its detail.
    pub(crate) async fn post_if_available(
        &self,
        path: &str,
        body: &Value,
    ) -> anyhow::Result<Result<Value, String>> {
        let request = self.request(Method::POST, path).json(body);
        let response = request
            .send()
            .await
            .with_context(|| format!("{path}: no response"))?;
        if response.status() != StatusCode::SERVICE_UNAVAILABLE {
            return Ok(Ok(successful(response, path).await?.json().await?));
        }
        let problem: Value = response.json().await.unwrap_or_default();
        let detail = problem.get("detail").and_then(Value::as_str);
        Ok(Err(detail.unwrap_or("it answers 503").to_owned()))
    }

    /// Uploads a file as a form.
    pub(crate) async fn upload(
        &self,
        name: &str,
        bytes: Vec<u8>,
        fields: &[(&'static str, &str)],
    ) -> anyhow::Result<Value> {
        let file = Part::bytes(bytes)
            .file_name(name.to_owned())
            .mime_str("text/plain")?;
        let form = fields
            .iter()
            .fold(Form::new(), |form, (field, value)| {
                form.text(*field, (*value).to_owned())
            })
            .part("file", file);
        let path = "/api/v1/files";
        let request = self.request(Method::POST, path).multipart(form);
        Ok(checked(request, path).await?.json().await?)
    }

    /// Reads text.
    pub(crate) async fn read_text(&self, path: &str) -> anyhow::Result<String> {
        let response = checked(self.request(Method::GET, path), path).await?;
        Ok(response.text().await?)
    }

    /// Downloads from a signed URL, which needs no key.
    pub(crate) async fn download(&self, url: &str) -> anyhow::Result<Vec<u8>> {
        Ok(checked(self.http.get(url), "download")
            .await?
            .bytes()
            .await?
            .to_vec())
    }

    /// Reads all rows that match the filters, page by page; returns them and the number of pages.
    pub(crate) async fn read_all(
        &self,
        table: &str,
        filters: &Value,
    ) -> anyhow::Result<(Vec<Value>, usize)> {
        let mut body = json!({
            "target_name": table,
            "target_type": "table",
            "filters": filters,
            "limit": PAGE,
        });
        let (mut rows, mut pages) = (Vec::new(), 0);
        loop {
            let (page, headers) = self
                .exchange(Method::POST, "/api/v1/tools/read", &body)
                .await?;
            let Value::Array(page) = page else {
                bail!("tools/read answers no array")
            };
            rows.extend(page);
            pages += 1;
            let Some(cursor) = next_cursor(&headers) else {
                return Ok((rows, pages));
            };
            if let Some(fields) = body.as_object_mut() {
                fields.insert("cursor".to_owned(), cursor.into());
            }
        }
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http
            .request(method, format!("{}{path}", self.base))
            .bearer_auth(&self.key)
    }
}

/// Extracts the next page's cursor from the `Link` header.
fn next_cursor(headers: &HeaderMap) -> Option<String> {
    let link = headers.get(LINK)?.to_str().ok()?;
    let (url, relation) = link.trim().strip_prefix('<')?.split_once('>')?;
    relation.contains("rel=\"next\"").then_some(())?;
    let url = Url::parse(url).ok()?;
    url.query_pairs()
        .find(|(name, _)| name == "cursor")
        .map(|(_, cursor)| cursor.into_owned())
}

async fn checked(request: RequestBuilder, what: &str) -> anyhow::Result<Response> {
    let response = request
        .send()
        .await
        .with_context(|| format!("{what}: no response"))?;
    successful(response, what).await
}

async fn successful(response: Response, what: &str) -> anyhow::Result<Response> {
    let status = response.status();
    if status == StatusCode::OK {
        return Ok(response);
    }
    let text: String = response
        .text()
        .await
        .unwrap_or_default()
        .chars()
        .take(2000)
        .collect();
    bail!("{what} answers {status}: {text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cursor(link: &'static str) -> Option<String> {
        next_cursor(&HeaderMap::from_iter([(
            LINK,
            reqwest::header::HeaderValue::from_static(link),
        )]))
    }

    #[test]
    fn follows_the_link_to_the_next_page_and_no_other() {
        let next = "<http://host/api/v1/tools/read?limit=5&cursor=a%2Bb>; rel=\"next\"";
        assert_eq!(cursor(next), Some("a+b".to_owned()));
        assert_eq!(cursor("<http://host/?cursor=a>; rel=\"prev\""), None);
        assert_eq!(cursor("http://host/?cursor=a"), None);
    }
}
