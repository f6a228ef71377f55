//! `GET /api/v1/job-executions/{execution_id}/logs`

use std::collections::VecDeque;

use actix_web::{HttpRequest, HttpResponse, Responder, body::BoxBody, http::header::CACHE_CONTROL};
use bytes::{Bytes, BytesMut};
use futures::Stream;
use labdata_application::{
    Error,
    subscription::Subscription,
    work::read_log::{LogReader, NextOfLog, follow_log, open_log},
};
use labdata_domain::refusal::Resource;
use labdata_limits::sending::{Interrupted, while_read};
use labdata_operations::{
    executions::ExecutionPath,
    work::logs::{LogEndView, LogEventView, LogTextView, LogsQuery},
};
use tokio::time::Instant;

use crate::http::{
    ApiResult, Call, NoBody, OrNotFound, Read,
    follow::{EVENTS, LOOK_AT_LEAST_EVERY, LastingCaller, Next, PING, UNBUFFERED, wants_events},
    json_line::json_line,
};

/// Sends a log.
pub async fn handle(call: Call<Read, NoBody, LogsQuery, ExecutionPath>) -> ApiResult<Log> {
    let id = call.path.execution_id.or_not_found(Resource::Execution)?;
    let caller = LastingCaller::of(&call)?;
    let (reader, news) = if call.query.follow {
        let (reader, news) = follow_log(call.services(), &call.actor, id).await?;
        (reader, Some(news))
    } else {
        (open_log(call.services(), &call.actor, id).await?, None)
    };
    Ok(Log {
        caller,
        reader,
        news,
        events: None,
        waiting: VecDeque::new(),
        over: false,
        looked_at: None,
        sent_at: Instant::now(),
    })
}

impl Responder for Log {
    type Body = BoxBody;

    fn respond_to(mut self, request: &HttpRequest) -> HttpResponse {
        let content_type = if wants_events(request) {
            self.events = Some(Events::default());
            EVENTS
        } else {
            "text/plain; charset=utf-8"
        };
        HttpResponse::Ok()
            .insert_header((CACHE_CONTROL, "no-store"))
            .insert_header(UNBUFFERED)
            .content_type(content_type)
            .streaming(self.stream())
    }
}

/// A log on its way to a client.
#[derive(Debug)]
pub struct Log {
    caller: LastingCaller,
    reader: LogReader,
    /// Wakes a follower.
    news: Option<Subscription>,
    events: Option<Events>,
    /// Chunks of the response that are ready.
    waiting: VecDeque<Bytes>,
    over: bool,
    /// Time of the last look, if it found nothing.
    looked_at: Option<Instant>,
    /// When the client last heard something.
    sent_at: Instant,
}

impl Log {
    fn stream(self) -> impl Stream<Item = Result<Bytes, Interrupted>> {
        while_read(self, async |mut log: Self| {
            let chunk = log.next().await.inspect_err(|error| {
                tracing::warn!(%error, "a log broke off");
            })?;
            Ok::<_, Error>(chunk.map(|chunk| (chunk, log)))
        })
    }

    /// The next chunk of the response; `None` at its end, and once the credential of a follower is no longer valid.
    async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            if let Some(chunk) = self.waiting.pop_front() {
                self.sent_at = Instant::now();
                return Ok(Some(chunk));
            }
            if self.over {
                return Ok(None);
            }
            match self.pause().await? {
                Next::Look => {}
                Next::Ping => {
                    self.waiting.push_back(PING);
                    continue;
                }
                Next::End => return Ok(None),
            }
            self.looked_at = None;
            match self.reader.next(self.caller.services()).await? {
                NextOfLog::Chunk(bytes) => self.tell(bytes),
                NextOfLog::NothingYet if self.news.is_some() => {
                    self.looked_at = Some(Instant::now());
                }
                // Who does not follow gets what there is now, although the run still writes.
                NextOfLog::NothingYet => self.end(None),
                NextOfLog::End { status, retried_by } => self.end(Some(LogEndView {
                    status: status.into(),
                    retried_by,
                })),
            }
        }
    }

    /// Waits until a follower is to look, if its last look found nothing.
    async fn pause(&mut self) -> Result<Next, Error> {
        // A log that is not followed is read to its end at once, and has no reason to be cut.
        let Some(news) = &mut self.news else {
            return Ok(Next::Look);
        };
        let Some(looked_at) = self.looked_at else {
            let caller = self.caller.now().await?;
            return Ok(caller.map_or(Next::End, |_| Next::Look));
        };
        // Plain text has no form of a ping, so only events get one.
        let sent_at = self.events.as_ref().map(|_| self.sent_at);
        self.caller
            .pause(news, looked_at, sent_at, LOOK_AT_LEAST_EVERY)
            .await
    }

    fn tell(&mut self, bytes: Bytes) {
        // The id is the place in the log, by which a client resumes without gap or repetition.
        let id = self.reader.offset();
        match &mut self.events {
            None => self.waiting.push_back(bytes),
            Some(events) => self.waiting.extend(events.text(&bytes, id)),
        }
    }

    fn end(&mut self, end: Option<LogEndView>) {
        self.over = true;
        if let Some(events) = &mut self.events {
            self.waiting.extend(events.rest(self.reader.offset()));
            if let Some(end) = end {
                let data = LogEventView::End(end);
                self.waiting.extend(rendered("event: end", &data));
            }
        }
    }
}

/// Makes events of bytes, none of which ends within a character.
#[derive(Debug, Default)]
struct Events {
    /// The beginning of a character.
    begun: BytesMut,
}

impl Events {
    fn text(&mut self, bytes: &[u8], id: u64) -> Option<Bytes> {
        self.begun.extend_from_slice(bytes);
        let whole = match std::str::from_utf8(&self.begun) {
            // Malformed bytes are sent as such; only a character that is cut waits.
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Ok(_) | Err(_) => self.begun.len() - unfinished(&self.begun),
        };
        let text = self.begun.split_to(whole);
        event(&text, id)
    }

    fn rest(&mut self, id: u64) -> Option<Bytes> {
        let rest = self.begun.split();
        event(&rest, id)
    }
}

/// Counts the bytes at the end that begin an incomplete character.
fn unfinished(bytes: &[u8]) -> usize {
    // A character has at most four bytes, so an unfinished one has at most three.
    let last = bytes.len().saturating_sub(3);
    let tail = bytes.get(last..).unwrap_or_default();
    let start = tail.iter().rposition(|byte| *byte >= 0xC0);
    let Some(begun) = start.and_then(|start| tail.get(start..)) else {
        return 0;
    };
    match std::str::from_utf8(begun) {
        Err(error) if error.error_len().is_none() => begun.len(),
        _ => 0,
    }
}

fn event(text: &[u8], id: u64) -> Option<Bytes> {
    if text.is_empty() {
        return None;
    }
    // Scripts may write any bytes, and JSON takes Unicode only.
    let text = String::from_utf8_lossy(text).into_owned();
    let data = LogEventView::Log(LogTextView { text });
    rendered(&format!("event: log\nid: {id}"), &data)
}

fn rendered(head: &str, data: &LogEventView) -> Option<Bytes> {
    let data = json_line(data).ok()?;
    Some(format!("{head}\ndata: {data}\n\n").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(chunks: &[&[u8]]) -> String {
        let mut events = Events::default();
        let mut reported: Vec<Bytes> = chunks
            .iter()
            .filter_map(|chunk| events.text(chunk, 0))
            .collect();
        reported.extend(events.rest(0));
        let text = reported.iter().map(|event| {
            let event = std::str::from_utf8(event).unwrap();
            let data = event.lines().find_map(|line| line.strip_prefix("data: "));
            let data: serde_json::Value = serde_json::from_str(data.unwrap()).unwrap();
            data["text"].as_str().unwrap().to_owned()
        });
        text.collect()
    }

    #[test]
    fn characters_that_come_in_pieces_are_told_whole() {
        let text = "12 µl → 37 °C 🧪\n";
        for cut in 1..text.len() {
            let (head, tail) = text.as_bytes().split_at(cut);
            assert_eq!(texts(&[head, tail]), text, "cut at {cut}");
        }
        let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(texts(&bytes), text);
    }

    #[test]
    fn bytes_that_are_no_text_are_told_as_such() {
        assert_eq!(texts(&[b"a\xff", b"b\n"]), "a\u{fffd}b\n");
        assert_eq!(texts(&[b"\xff\xc3", b"\xa4"]), "\u{fffd}ä");
        assert_eq!(texts(&[b"end\xe2\x82"]), "end\u{fffd}");
    }
}
