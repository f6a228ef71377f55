//! A connection for one query, in PostgreSQL's own protocol.
//!
//! Drivers read messages of any size into memory and look unknown types up in the catalogs, which
//! the role of a query may not read. This client supports the few messages that a query needs, with
//! values and results as text, and reads no message above a limit.

use std::{io, sync::Arc, time::Duration};

use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::{
    authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256},
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

use crate::database::server::{Address, Server};

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
    /// The server's response.
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

/// Connects to one address, and encrypts the connection as the server's URL demands.
async fn reach(server: &Server, address: &Address) -> io::Result<Box<dyn Stream>> {
    let connecting = async {
        let stream: Box<dyn Stream> = match &address.host {
            Host::Tcp(host) => {
                let stream = match address.ip {
                    Some(ip) => TcpStream::connect((ip, address.port)).await?,
                    None => TcpStream::connect((host.as_str(), address.port)).await?,
                };
                // Messages are short and waited for: Nagle's algorithm would delay them.
                stream.set_nodelay(true)?;
                Box::new(server.connector.encrypt(stream, host).await?)
            }
            Host::Unix(directory) => {
                let socket = directory.join(format!(".s.PGSQL.{}", address.port));
                let stream = UnixStream::connect(socket).await?;
                Box::new(server.connector.encrypt(stream, "").await?)
            }
        };
        Ok(stream)
    };
    tokio::time::timeout(REACH, connecting).await?
}

/// Asks the server to cancel the query of a connection.
async fn cancel(server: &Server, address: &Address, (process, key): (i32, i32)) -> io::Result<()> {
    let mut stream = reach(server, address).await?;
    let mut out = BytesMut::new();
    frontend::cancel_request(process, key, &mut out);
    stream.write_all(&out).await?;
    stream.flush().await?;
    // The server closes the connection once it has received the request.
    tokio::time::timeout(REACH, stream.read_u8())
        .await
        .map(drop)
        .or(Ok(()))
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
    server: Arc<Server>,
    address: Address,
    stream: Option<Box<dyn Stream>>,
    inbox: BytesMut,
    /// Messages to send next.
    pub(super) outbox: BytesMut,
    key: (i32, i32),
    longest: usize,
    /// True once something was sent that may have to be cancelled.
    at_work: bool,
    /// Version that the server reported at the login.
    server_version: String,
}

impl Wire {
    /// Connects to the first address that takes the connection, and logs in.
    pub(super) async fn open(server: &Arc<Server>, login: &Login<'_>) -> Result<Self, WireError> {
        let mut failure = WireError::Broken(io::ErrorKind::AddrNotAvailable.into());
        for address in &server.addresses {
            match Self::open_at(server, address, login).await {
                Ok(wire) => return Ok(wire),
                // This server has answered for all of them, unless it starts or stops.
                Err(WireError::Server(error)) if !error.code.starts_with("57") => {
                    return Err(WireError::Server(error));
                }
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    async fn open_at(
        server: &Arc<Server>,
        address: &Address,
        login: &Login<'_>,
    ) -> Result<Self, WireError> {
        let mut wire = Self {
            server: Arc::clone(server),
            address: address.clone(),
            stream: Some(reach(server, address).await?),
            inbox: BytesMut::new(),
            outbox: BytesMut::new(),
            key: (0, 0),
            longest: LONGEST_MESSAGE,
            at_work: false,
            server_version: String::new(),
        };
        let logging_in = async {
            wire.log_in(login).await?;
            if server.needs_primary() && wire.is_standby().await? {
                return Err(io::Error::other("the server takes no writes").into());
            }
            Ok::<_, WireError>(())
        };
        tokio::time::timeout(REACH, logging_in)
            .await
            .map_err(io::Error::from)??;
        Ok(wire)
    }

    /// Asks whether the server only follows another one. The role itself never writes.
    async fn is_standby(&mut self) -> Result<bool, WireError> {
        // Not `transaction_read_only`: transactions of this role are read-only on a primary, too.
        frontend::query("SHOW in_hot_standby", &mut self.outbox)?;
        self.send().await?;
        let mut is_standby = false;
        loop {
            match self.receive().await? {
                Message::DataRow(body) => is_standby = body.buffer().ends_with(b"on"),
                Message::ErrorResponse(body) => return Err(server_error(&body)?),
                Message::ReadyForQuery(_) => return Ok(is_standby),
                _ => {}
            }
        }
    }

    async fn log_in(&mut self, login: &Login<'_>) -> Result<(), WireError> {
        let parameters = [
            ("user", login.user),
            ("database", login.database),
            // Texts are read as UTF-8; PostgreSQL converts them from the database's encoding.
            ("client_encoding", "UTF8"),
            ("application_name", WAITING),
        ];
        frontend::startup_message(parameters, &mut self.outbox)?;
        let mut scram = None;
        loop {
            self.send().await?;
            match self.receive().await? {
                Message::AuthenticationOk => {}
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
                // Among these is a request for the password itself, which is never sent.
                _ => return Err(unexpected().into()),
            }
        }
    }

    /// Returns the version that the server reported at the login.
    pub(super) fn server_version(&self) -> &str {
        &self.server_version
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
        // TLS holds bytes back until then.
        stream.flush().await?;
        Ok(())
    }

    /// The next message that is about the query.
    pub(super) async fn receive(&mut self) -> Result<Message, WireError> {
        loop {
            if let Some(header) = Header::parse(&self.inbox)? {
                // Before the message is read: its length decides how much memory it takes.
                if usize::try_from(header.len()).unwrap_or(usize::MAX) > self.longest {
                    return Err(WireError::TooLong);
                }
                match Message::parse(&mut self.inbox)? {
                    Some(Message::ParameterStatus(body)) => {
                        if body.name()? == "server_version" {
                            body.value()?.clone_into(&mut self.server_version);
                        }
                        continue;
                    }
                    Some(Message::NoticeResponse(_) | Message::NotificationResponse(_)) => continue,
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
            stream.flush().await?;
            // To the end: until the server closes it, the connection counts against the role's limit.
            tokio::io::copy(&mut stream, &mut tokio::io::sink()).await
        };
        // Otherwise the connection ends when the stream is dropped.
        let _ = tokio::time::timeout(GOING, going).await;
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        let (Some(stream), Ok(runtime)) =
            // Outside of a runtime nothing can be sent: the socket just closes.
            (self.stream.take(), tokio::runtime::Handle::try_current())
        else {
            return;
        };
        if !self.at_work {
            return;
        }
        let (server, address, key) = (Arc::clone(&self.server), self.address.clone(), self.key);
        runtime.spawn(async move {
            // The connection stays open until then, so that its process id is not reused.
            if let Err(error) = cancel(&server, &address, key).await {
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
