//! A connection for one query, in PostgreSQL's own protocol.
//!
//! Drivers read messages of any size into memory and look unknown types up in the catalogs, which
//! the role of a query may not read. This client supports the few messages that a query needs, with
//! values and results as text, and reads no message above a limit.

use std::{io, time::Duration};

use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::{
    authentication::{
        md5_hash,
        sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256},
    },
    message::{
        backend::{ErrorResponseBody, Header, Message},
        frontend,
    },
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpStream, UnixStream},
};
use tokio_postgres::config::Host;

/// Timeout for connecting.
const REACH: Duration = Duration::from_secs(5);

/// Timeout for closing a connection.
const GOING: Duration = Duration::from_secs(2);

/// Maximum length of a message other than a row, in bytes.
const LONGEST_MESSAGE: usize = 1 << 20;

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// An error reported by the server.
#[derive(Debug, Default)]
pub(super) struct ServerError {
    pub(super) code: String,
    pub(super) message: String,
    pub(super) hint: Option<String>,
    /// Position in the statement, in characters from 1.
    pub(super) position: Option<usize>,
}

/// Failure of a connection.
#[derive(Debug)]
pub(super) enum WireError {
    /// The server's answer.
    Server(ServerError),
    /// A message exceeds the limit.
    TooLong,
    /// The connection broke, or the server uses another protocol.
    Broken(io::Error),
}

impl From<io::Error> for WireError {
    fn from(error: io::Error) -> Self {
        Self::Broken(error)
    }
}

/// Address of a server.
#[derive(Clone, Debug)]
pub(super) struct Address {
    pub(super) host: Host,
    pub(super) port: u16,
}

impl Address {
    async fn connect(&self) -> io::Result<Box<dyn Stream>> {
        let connecting = async {
            let stream: Box<dyn Stream> = match &self.host {
                Host::Tcp(host) => {
                    let stream = TcpStream::connect((host.as_str(), self.port)).await?;
                    stream.set_nodelay(true)?;
                    Box::new(stream)
                }
                Host::Unix(directory) => {
                    let socket = directory.join(format!(".s.PGSQL.{}", self.port));
                    Box::new(UnixStream::connect(socket).await?)
                }
            };
            Ok(stream)
        };
        tokio::time::timeout(REACH, connecting).await?
    }

    /// Asks the server to cancel the query of a connection.
    async fn cancel(&self, (process, key): (i32, i32)) -> io::Result<()> {
        let mut stream = self.connect().await?;
        let mut out = BytesMut::new();
        frontend::cancel_request(process, key, &mut out);
        stream.write_all(&out).await?;
        // The server closes the connection once it has received the request.
        tokio::time::timeout(REACH, stream.read_u8())
            .await
            .map(drop)
            .or(Ok(()))
    }
}

/// Credentials and database of a connection.
pub(super) struct Login<'l> {
    pub(super) database: &'l str,
    pub(super) user: &'l str,
    pub(super) password: &'l str,
}

/// Application name of a connection that waits for its query.
const WAITING: &str = "labdata spare";

/// A connection. Dropping it before [`Wire::close`] cancels its query.
pub(super) struct Wire {
    address: Address,
    stream: Option<Box<dyn Stream>>,
    inbox: BytesMut,
    /// Messages to send next.
    pub(super) outbox: BytesMut,
    key: (i32, i32),
    longest: usize,
    /// True once something was sent that may have to be cancelled.
    at_work: bool,
}

impl Wire {
    /// Connects and logs in.
    pub(super) async fn open(address: &Address, login: &Login<'_>) -> Result<Self, WireError> {
        let mut wire = Self {
            address: address.clone(),
            stream: Some(address.connect().await?),
            inbox: BytesMut::new(),
            outbox: BytesMut::new(),
            key: (0, 0),
            longest: LONGEST_MESSAGE,
            at_work: false,
        };
        let login = wire.log_in(login);
        tokio::time::timeout(REACH, login)
            .await
            .map_err(io::Error::from)??;
        Ok(wire)
    }

    async fn log_in(&mut self, login: &Login<'_>) -> Result<(), WireError> {
        let parameters = [
            ("user", login.user),
            ("database", login.database),
            ("client_encoding", "UTF8"),
            ("application_name", WAITING),
        ];
        frontend::startup_message(parameters, &mut self.outbox)?;
        let mut scram = None;
        loop {
            self.send().await?;
            match self.receive().await? {
                Message::AuthenticationOk => {}
                Message::AuthenticationCleartextPassword => {
                    frontend::password_message(login.password.as_bytes(), &mut self.outbox)?;
                }
                Message::AuthenticationMd5Password(body) => {
                    let (user, password) = (login.user.as_bytes(), login.password.as_bytes());
                    let hash = md5_hash(user, password, body.salt());
                    frontend::password_message(hash.as_bytes(), &mut self.outbox)?;
                }
                Message::AuthenticationSasl(_) => {
                    let password = login.password.as_bytes();
                    let begun = ScramSha256::new(password, ChannelBinding::unsupported());
                    let first = begun.message();
                    frontend::sasl_initial_response(SCRAM_SHA_256, first, &mut self.outbox)?;
                    scram = Some(begun);
                }
                Message::AuthenticationSaslContinue(body) => {
                    let scram = scram.as_mut().ok_or_else(unexpected)?;
                    scram.update(body.data())?;
                    frontend::sasl_response(scram.message(), &mut self.outbox)?;
                }
                Message::AuthenticationSaslFinal(body) => {
                    scram.as_mut().ok_or_else(unexpected)?.finish(body.data())?;
                }
                Message::BackendKeyData(body) => {
                    self.key = (body.process_id(), body.secret_key());
                }
                Message::ReadyForQuery(_) => return Ok(()),
                Message::ErrorResponse(body) => return Err(server_error(&body)?),
                _ => return Err(unexpected().into()),
            }
        }
    }

    /// Marks the connection as having something to cancel.
    pub(super) fn begin(&mut self) {
        self.at_work = true;
    }

    /// Sets the maximum length of a row.
    pub(super) fn allow_rows_of(&mut self, bytes: usize) {
        self.longest = LONGEST_MESSAGE.max(bytes);
    }

    /// Sends the messages of the outbox.
    pub(super) async fn send(&mut self) -> Result<(), WireError> {
        let stream = self.stream.as_mut().ok_or_else(unexpected)?;
        stream.write_all_buf(&mut self.outbox).await?;
        Ok(())
    }

    /// The next message that is about the query.
    pub(super) async fn receive(&mut self) -> Result<Message, WireError> {
        loop {
            if let Some(header) = Header::parse(&self.inbox)? {
                if usize::try_from(header.len()).unwrap_or(usize::MAX) > self.longest {
                    return Err(WireError::TooLong);
                }
                match Message::parse(&mut self.inbox)? {
                    Some(
                        Message::NoticeResponse(_)
                        | Message::ParameterStatus(_)
                        | Message::NotificationResponse(_),
                    ) => continue,
                    Some(message) => return Ok(message),
                    None => {}
                }
            }
            let stream = self.stream.as_mut().ok_or_else(unexpected)?;
            self.inbox.reserve(16 << 10);
            if stream.read_buf(&mut self.inbox).await? == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
        }
    }

    /// Rolls back, terminates, and waits until the server has closed the connection.
    pub(super) async fn close(mut self) {
        let Some(mut stream) = self.stream.take() else {
            return;
        };
        self.outbox.clear();
        let goodbye = frontend::query("ROLLBACK", &mut self.outbox);
        frontend::terminate(&mut self.outbox);
        let going = async {
            goodbye?;
            stream.write_all(&self.outbox).await?;
            tokio::io::copy(&mut stream, &mut tokio::io::sink()).await
        };
        // Otherwise the connection ends when the stream is dropped.
        let _ = tokio::time::timeout(GOING, going).await;
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        let (Some(stream), Ok(runtime)) =
            (self.stream.take(), tokio::runtime::Handle::try_current())
        else {
            return;
        };
        if !self.at_work {
            return;
        }
        let (address, key) = (self.address.clone(), self.key);
        runtime.spawn(async move {
            // The connection stays open until then, so that its process id is not reused.
            if let Err(error) = address.cancel(key).await {
                tracing::warn!(%error, "a query that nobody waits for could not be cancelled");
            }
            drop(stream);
        });
    }
}

fn unexpected() -> io::Error {
    io::Error::other("the server sent what was not expected")
}

/// The server's error, with the fields that messages use.
pub(super) fn server_error(body: &ErrorResponseBody) -> Result<WireError, WireError> {
    let mut error = ServerError::default();
    let mut fields = body.fields();
    while let Some(field) = fields.next()? {
        let value = String::from_utf8_lossy(field.value_bytes()).into_owned();
        match field.type_() {
            b'C' => error.code = value,
            b'M' => error.message = value,
            b'H' => error.hint = Some(value),
            b'P' => error.position = value.parse().ok(),
            _ => {}
        }
    }
    Ok(WireError::Server(error))
}
