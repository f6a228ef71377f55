//! The client: requests, retries and responses as streams.

use std::{collections::VecDeque, fmt, sync::Arc, time::Duration};

use ::http::{HeaderMap, HeaderName, HeaderValue, header::CONTENT_TYPE};
use async_trait::async_trait;
use futures::{StreamExt, stream};
use labdata_domain::agent::{BrokenStream, ModelFailure, provider_message, retry_delay};
use labdata_ports::{
    IdSource,
    agent::{LanguageModel, ModelRequest, ResponsePart, ResponseStream},
};
use labdata_redacted::Secret;
use tokio::time::sleep;

use crate::{
    assembly::Read,
    dialect::{Dialect, Reader},
    frames::FrameReader,
    http::{Body, Http, add_secret},
    refusal::refusal,
    settings::{InvalidLlm, LlmSettings},
};

/// Models of one provider.
#[derive(Clone)]
pub struct LlmClient {
    /// The access, or the name of the setting that is missing.
    access: Result<Access, &'static str>,
    ids: Arc<dyn IdSource>,
}

#[derive(Clone)]
struct Access {
    http: Http,
    dialect: Dialect,
    key: Option<Secret>,
}

impl fmt::Debug for LlmClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LlmClient").finish_non_exhaustive()
    }
}

impl LlmClient {
    /// Creates a client. The provider need not be reachable yet. If a setting is missing, each request
    /// fails as [`ModelFailure::NotConfigured`]. The ids are a source of random bytes, for the spread
    /// of retries.
    ///
    /// # Errors
    /// [`InvalidLlm`], if a setting is wrong.
    pub fn new(settings: &LlmSettings, ids: Arc<dyn IdSource>) -> Result<Self, InvalidLlm> {
        let access = match settings.complete() {
            // A server without a model still starts; only requests for a model fail.
            Err(missing) => Err(missing),
            Ok(provider) => {
                let dialect = Dialect::from(provider);
                let url = settings.endpoint(provider)?;
                let headers = headers(dialect, settings.api_key.as_ref())?;
                Ok(Access {
                    http: Http::new(url, headers, settings.timeout)?,
                    dialect,
                    key: settings.api_key.clone(),
                })
            }
        };
        Ok(Self { access, ids })
    }

    fn jitter(&self) -> u16 {
        let mut bytes = [0; 2];
        self.ids.fill_random(&mut bytes);
        u16::from_be_bytes(bytes)
    }
}

fn headers(dialect: Dialect, key: Option<&Secret>) -> Result<HeaderMap, InvalidLlm> {
    let mut headers = HeaderMap::new();
    for (name, value) in dialect.headers() {
        headers.insert(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
    }
    if let Some(key) = key {
        let (name, value) = dialect.key_header();
        if !add_secret(&mut headers, name, &value.replace("{}", key.reveal())) {
            return Err(InvalidLlm::Key);
        }
    }
    Ok(headers)
}

#[async_trait]
impl LanguageModel for LlmClient {
    fn check(&self) -> Result<(), ModelFailure> {
        match &self.access {
            Ok(_) => Ok(()),
            Err(missing) => Err(ModelFailure::NotConfigured(missing)),
        }
    }

    async fn response(&self, request: &ModelRequest) -> Result<ResponseStream, ModelFailure> {
        let access = match &self.access {
            Ok(access) => access,
            Err(missing) => return Err(ModelFailure::NotConfigured(missing)),
        };
        // Once: a retry sends the same bytes.
        let body = access.dialect.body(request).to_string().into_bytes();
        let mut tries = 0;
        loop {
            tries += 1;
            let failure = match access.begin(body.clone()).await {
                // A retry is possible until here: after its first part, a response has been passed on.
                Ok(reading) => return Ok(reading.into_stream()),
                Err(failure) => failure,
            };
            let Some(delay) = retry_delay(tries, &failure, self.jitter()) else {
                return Err(failure);
            };
            tracing::info!(%failure, tries, "asking the provider of the model again");
            sleep(Duration::try_from(delay).unwrap_or_default()).await;
        }
    }
}

impl Access {
    /// Sends a request and reads until something of the response has arrived.
    async fn begin(&self, body: Vec<u8>) -> Result<Reading, ModelFailure> {
        let response = self.http.send(body).await?;
        if !response.status.is_success() {
            let body = response.body.start().await;
            return Err(refusal(
                response.status,
                &response.headers,
                &body,
                self.key.as_ref(),
            ));
        }
        if let Some(other) = other_than_stream(&response.headers) {
            return Err(ModelFailure::NoStream(other));
        }
        let mut reading = Reading {
            body: response.body,
            frames: FrameReader::default(),
            reader: self.dialect.reader(),
            key: self.key.clone(),
            parts: VecDeque::new(),
            failure: None,
            has_begun: false,
            has_ended: false,
        };
        while !reading.has_begun && !reading.has_ended {
            let Err(failure) = reading.advance().await else {
                continue;
            };
            // Parts that have arrived are delivered before the failure.
            if reading.has_begun {
                reading.failure = Some(failure);
                break;
            }
            return Err(match failure {
                // Nothing has arrived, so it is as good as no connection.
                ModelFailure::Broken(broken @ (BrokenStream::Connection | BrokenStream::NoEnd)) => {
                    ModelFailure::Unreachable(broken.to_string())
                }
                other => other,
            });
        }
        Ok(reading)
    }
}

/// The media type of a response that is no stream of events; `None` also where the server names none.
fn other_than_stream(headers: &HeaderMap) -> Option<String> {
    let named = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    let named = named.split(';').next().unwrap_or_default().trim();
    // The server may be any: what it sends becomes part of a sentence.
    (!named.eq_ignore_ascii_case("text/event-stream")).then(|| provider_message(named, None))
}

/// A response that is being read.
struct Reading {
    body: Body,
    frames: FrameReader,
    reader: Reader,
    key: Option<Secret>,
    /// Parts that have arrived and are not passed on yet.
    parts: VecDeque<ResponsePart>,
    /// Failure that follows them.
    failure: Option<ModelFailure>,
    /// True once a part of the response has arrived, be it of a tool call.
    has_begun: bool,
    /// True once the whole response has arrived.
    has_ended: bool,
}

impl Reading {
    /// Reads the next bytes into parts.
    async fn advance(&mut self) -> Result<(), ModelFailure> {
        let Some(bytes) = self.body.next().await? else {
            return Err(ModelFailure::Broken(BrokenStream::NoEnd));
        };
        for frame in self.frames.push(&bytes).map_err(ModelFailure::Broken)? {
            for read in self.reader.read(&frame).map_err(ModelFailure::Broken)? {
                self.take(read)?;
                if self.has_ended {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, read: Read) -> Result<(), ModelFailure> {
        match read {
            Read::Nothing => {}
            Read::CallPart => self.has_begun = true,
            Read::Text(text) => {
                self.has_begun = true;
                self.parts.push_back(ResponsePart::Text(text));
            }
            Read::End(response) => {
                self.has_ended = true;
                self.parts.push_back(ResponsePart::End(response));
            }
            Read::Error { status, message } => {
                // Providers quote the key in some messages, so it is removed.
                let message = provider_message(&message, self.key.as_ref().map(Secret::reveal));
                return Err(match status {
                    // An overloaded provider may say so within a stream of status 200.
                    Some(status) if !self.has_begun => ModelFailure::Refused {
                        status,
                        retry_after: None,
                        message,
                    },
                    _ => ModelFailure::Broken(BrokenStream::Reported(message)),
                });
            }
        }
        Ok(())
    }

    /// The parts of the response. The connection is closed with it.
    fn into_stream(self) -> ResponseStream {
        let parts = stream::unfold(Some(self), |reading| async move {
            let mut reading = reading?;
            loop {
                if let Some(part) = reading.parts.pop_front() {
                    let is_end = matches!(part, ResponsePart::End(_));
                    return Some((Ok(part), (!is_end).then_some(reading)));
                }
                if let Some(failure) = reading.failure.take() {
                    return Some((Err(failure), None));
                }
                // What arrived before a failure is passed on first.
                reading.failure = reading.advance().await.err();
            }
        });
        parts.boxed()
    }
}
