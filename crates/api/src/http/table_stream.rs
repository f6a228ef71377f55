//! Tables that are encoded and sent while they are read.
//!
//! A read holds a connection and one moment of the database, so a client that stalls loses its response:
//! the body ends early, which every HTTP client reports as an error.

use std::{
    mem,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use actix_web::{
    HttpRequest, HttpResponse, Responder,
    body::BoxBody,
    http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, HeaderValue, VARY},
    web::Bytes,
};
use async_trait::async_trait;
use futures::{Stream, StreamExt, stream};
use labdata_application::Error;
use labdata_domain::{
    data::read::{TableColumn, TablePart},
    files::disposition::attachment,
    refusal::{ErrorCode, Refusal},
};
use labdata_limits::waiting;
use labdata_operations::ResultForm;
use labdata_ports::data::{
    parts::PartSink,
    query::{ResultColumn, ResultSink, SinkClosed},
};
use labdata_table_formats::{Encoding, FormatError, RowsWriter, TableWriter};
use tokio::{
    sync::mpsc,
    task::{AbortHandle, JoinHandle},
};

use super::{ApiError, accept::content_type, client_timeout::ClientTimeout};

/// Maximum size of a chunk of a body, in bytes.
const PIECE: usize = 256 << 10;

/// Bytes that pay for a second of waiting, as a read holds a connection to the database.
const BYTES_PER_SECOND: u64 = 64 << 10;

/// Part of a body.
enum Chunk {
    Bytes(Bytes),
    /// The body is whole.
    End,
}

/// Way of bytes to the body.
struct Outlet {
    chunks: mpsc::Sender<Chunk>,
    timeout: ClientTimeout,
    refusal: Arc<Mutex<Option<FormatError>>>,
}

/// Encodes parts, and hands the bytes to the body.
struct Encoder {
    /// `None` after the last part.
    writer: Option<TableWriter>,
    outlet: Outlet,
}

/// Encodes the result of a query, and hands the bytes to the body.
pub(crate) struct QueryEncoder {
    encoding: Encoding,
    /// `None` until the columns are known.
    writer: Option<RowsWriter>,
    outlet: Outlet,
}

impl Outlet {
    fn refused(&self, error: FormatError) -> SinkClosed {
        // The read below knows only that its sink has closed; the handler finds the reason here.
        let mut refusal = self.refusal.lock().unwrap_or_else(PoisonError::into_inner);
        *refusal = Some(error);
        SinkClosed
    }

    async fn send(&mut self, bytes: Vec<u8>) -> Result<(), SinkClosed> {
        let mut bytes = Bytes::from(bytes);
        while !bytes.is_empty() {
            let chunk = bytes.split_to(bytes.len().min(PIECE));
            self.put(Chunk::Bytes(chunk)).await?;
        }
        Ok(())
    }

    async fn put(&mut self, chunk: Chunk) -> Result<(), SinkClosed> {
        let bytes = match &chunk {
            Chunk::Bytes(bytes) => bytes.len(),
            Chunk::End => 0,
        };
        let sending = self.chunks.send(chunk);
        if let Some(sent) = self.timeout.wait(sending, |_| bytes).await {
            sent.map_err(|_| SinkClosed)
        } else {
            let seconds = self.timeout.limit().as_secs();
            tracing::warn!(seconds, "a table is not sent on, as its client stalls");
            Err(SinkClosed)
        }
    }
}

#[async_trait]
impl PartSink for Encoder {
    async fn part(&mut self, part: TablePart) -> Result<(), SinkClosed> {
        let Some(writer) = &mut self.writer else {
            return Err(SinkClosed);
        };
        let written = writer.write(part.columns, part.rows, part.bytes);
        let written = written.map_err(|error| self.outlet.refused(error))?;
        self.outlet.send(written).await
    }

    async fn end(&mut self) -> Result<(), SinkClosed> {
        // Taken: a second end would write a second footer.
        let writer = self.writer.take().ok_or(SinkClosed)?;
        let written = writer
            .finish()
            .map_err(|error| self.outlet.refused(error))?;
        self.outlet.send(written).await?;
        // Its absence tells the body that the read broke off, so that the last chunk of HTTP is left out.
        self.outlet.put(Chunk::End).await
    }
}

#[async_trait]
impl ResultSink for QueryEncoder {
    async fn begin(&mut self, columns: Vec<ResultColumn>) -> Result<(), SinkClosed> {
        let columns = columns.into_iter();
        let (names, types) = columns.map(|it| (it.name, it.data_type)).unzip();
        let writer = RowsWriter::new(names, types, self.encoding);
        self.writer = Some(writer.map_err(|error| self.outlet.refused(error))?);
        Ok(())
    }

    async fn rows(&mut self, rows: Vec<String>) -> Result<(), SinkClosed> {
        let writer = self.writer.as_mut().ok_or(SinkClosed)?;
        let written = writer.write(rows);
        let written = written.map_err(|error| self.outlet.refused(error))?;
        self.outlet.send(written).await
    }
}

impl QueryEncoder {
    /// Takes the end of the result: it is whole.
    ///
    /// # Errors
    /// [`Error::Internal`] if the body takes no more.
    pub(crate) async fn end(mut self) -> Result<(), Error> {
        let ended = async {
            let writer = self.writer.take().ok_or(SinkClosed)?;
            let written = writer
                .finish()
                .map_err(|error| self.outlet.refused(error))?;
            self.outlet.send(written).await?;
            self.outlet.put(Chunk::End).await
        };
        ended
            .await
            .map_err(|closed: SinkClosed| Error::Internal(closed.to_string()))
    }
}

/// A body that ends before its table.
#[derive(Debug, thiserror::Error)]
#[error("the table was not read to its end")]
struct Unfinished;

/// Ends the read when the response is dropped, because its client left.
struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The rest of a body.
struct Rest {
    chunks: mpsc::Receiver<Chunk>,
    _reading: AbortOnDrop,
}

impl Rest {
    fn into_stream(self) -> impl Stream<Item = Result<Bytes, Unfinished>> {
        stream::unfold(Some(self), async |rest| {
            let mut rest = rest?;
            match rest.chunks.recv().await {
                Some(Chunk::Bytes(bytes)) => Some((Ok(bytes), Some(rest))),
                Some(Chunk::End) => None,
                // The sender left without `End`: ending normally would make a short table look complete.
                None => Some((Err(Unfinished), None)),
            }
        })
    }
}

/// A response with a table of any size.
pub struct TableStream {
    form: ResultForm,
    first: Bytes,
    rest: Rest,
    disposition: Option<HeaderValue>,
}

impl TableStream {
    /// Begins to read a table. Failures before its first bytes are errors.
    ///
    /// # Arguments
    /// `stall` is the time that the client may keep the read waiting.
    pub(crate) async fn begin<R>(
        encoding: Encoding,
        columns: Vec<TableColumn>,
        stall: Duration,
        read: impl FnOnce(Box<dyn PartSink>) -> R,
    ) -> Result<Self, ApiError>
    where
        R: Future<Output = Result<(), Error>> + Send + 'static,
    {
        let writer = TableWriter::new(columns, encoding).map_err(refused)?;
        Self::of(encoding, stall, |outlet| {
            read(Box::new(Encoder {
                writer: Some(writer),
                outlet,
            }))
        })
        .await
    }

    /// Begins to read the result of a query, as [`TableStream::begin`] does.
    pub(crate) async fn of_query<R>(
        encoding: Encoding,
        stall: Duration,
        read: impl FnOnce(QueryEncoder) -> R,
    ) -> Result<Self, ApiError>
    where
        R: Future<Output = Result<(), Error>> + Send + 'static,
    {
        Self::of(encoding, stall, |outlet| {
            read(QueryEncoder {
                encoding,
                writer: None,
                outlet,
            })
        })
        .await
    }

    async fn of<R>(
        encoding: Encoding,
        stall: Duration,
        read: impl FnOnce(Outlet) -> R,
    ) -> Result<Self, ApiError>
    where
        R: Future<Output = Result<(), Error>> + Send + 'static,
    {
        // One chunk at most waits, so the read goes no faster than the client.
        let (sender, mut chunks) = mpsc::channel(1);
        let refusal = Arc::new(Mutex::new(None));
        let reading = read(Outlet {
            chunks: sender,
            timeout: ClientTimeout::new(stall, BYTES_PER_SECOND),
            refusal: Arc::clone(&refusal),
        });
        let reading = tokio::spawn(waiting::carried(reading));
        let abort = AbortOnDrop(reading.abort_handle());
        // Until the first bytes the status is not sent, so a failure can still be an error response.
        let first = match chunks.recv().await {
            Some(Chunk::Bytes(bytes)) => {
                // The status is about to be sent, so a later failure reaches the log only.
                tokio::spawn(log_failure(reading, refusal));
                bytes
            }
            Some(Chunk::End) => Bytes::new(),
            None => return Err(failure(reading, &refusal).await),
        };
        Ok(Self {
            form: ResultForm::File(encoding.format),
            first,
            rest: Rest {
                chunks,
                _reading: abort,
            },
            disposition: None,
        })
    }

    /// The same, as a file to download.
    pub(crate) fn named(mut self, file_name: &str) -> Self {
        self.disposition = HeaderValue::try_from(attachment(file_name)).ok();
        self
    }
}

fn refused(error: FormatError) -> ApiError {
    ApiError::from(match error {
        FormatError::Unrepresentable(text) => {
            Refusal::invalid(ErrorCode::Unrepresentable, text).into()
        }
        FormatError::Failed(text) => Error::Internal(text),
    })
}

/// Why a read ended before its first bytes.
async fn failure(
    reading: JoinHandle<Result<(), Error>>,
    refusal: &Mutex<Option<FormatError>>,
) -> ApiError {
    let done = reading.await;
    let refusal = mem::take(&mut *refusal.lock().unwrap_or_else(PoisonError::into_inner));
    match (refusal, done) {
        (Some(refusal), _) => refused(refusal),
        (None, Ok(Err(error))) => error.into(),
        (None, Ok(Ok(()))) => Error::Internal("a table without an end".to_owned()).into(),
        (None, Err(error)) => Error::Internal(error.to_string()).into(),
    }
}

/// Logs what ended a read after its first bytes, unless the client left or stalled.
async fn log_failure(
    reading: JoinHandle<Result<(), Error>>,
    refusal: Arc<Mutex<Option<FormatError>>>,
) {
    let Ok(Err(error)) = reading.await else {
        return;
    };
    let refusal = mem::take(&mut *refusal.lock().unwrap_or_else(PoisonError::into_inner));
    match (refusal, error) {
        (Some(error), _) => tracing::warn!(%error, "a table could not be encoded to its end"),
        // The port reports a closed sink as an internal error, and only its text remains.
        (None, Error::Internal(cause)) if cause == SinkClosed.to_string() => {}
        (None, error) => tracing::error!(%error, "a table could not be read to its end"),
    }
}

impl Responder for TableStream {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        let mut response = HttpResponse::Ok();
        response
            .insert_header((CONTENT_TYPE, content_type(self.form)))
            // The same URL has JSON and files; a cache must not mix them up.
            .insert_header((VARY, HeaderValue::from_static("accept")));
        if let Some(disposition) = self.disposition {
            response.insert_header((CONTENT_DISPOSITION, disposition));
        }
        let first = stream::iter([Ok(self.first)]);
        response.streaming(first.chain(self.rest.into_stream()))
    }
}
