//! One client, from its first message to its end.

use std::{io, time::Duration};

use socket2::{SockRef, TcpKeepalive};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy, split},
    net::{TcpStream, UnixStream},
    time::{Instant, timeout_at},
};

use crate::{
    LOGIN_TIME, Settings, Share,
    filter::MessageFilter,
    startup::{self, FirstMessage, Login, refusal},
};

/// Time without a sign of life after which a client is asked for one. One that is lost would hold its connection.
const PROBE_AFTER: Duration = Duration::from_mins(1);

/// Largest number of bytes that are read at a time.
const BUFFER: usize = 64 * 1024;

/// Refusal of a client whose user or organization has as many connections as it may have.
const SHARE_TAKEN: (&str, &str) = (
    "53300",
    "this user or organization has as many SQL clients as it may have: close one",
);

/// A connection with or without TLS.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Serves a client to its end. `has_slot` is false if too many are connected already.
pub(crate) async fn serve(
    stream: TcpStream,
    settings: &Settings,
    has_slot: bool,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    SockRef::from(&stream).set_tcp_keepalive(&TcpKeepalive::new().with_time(PROBE_AFTER))?;
    let until = Instant::now() + LOGIN_TIME;
    let admitted = timeout_at(until, admit(stream, settings, has_slot)).await??;
    match admitted {
        Admitted::Login(mut client, login, _share) => {
            let mut server = UnixStream::connect(&settings.socket).await?;
            server.write_all(&login.message()).await?;
            forward(&mut client, &mut server, until).await
        }
        // Without a slot: a client opens another connection to cancel, which must work when all slots are taken.
        Admitted::Cancel(message) => {
            let mut server = UnixStream::connect(&settings.socket).await?;
            server.write_all(&message).await
        }
        Admitted::Refused => Ok(()),
    }
}

/// Admission of a client.
enum Admitted {
    /// To log in, with its share in the connections.
    Login(Box<dyn Stream>, Login, Share),
    /// To cancel a statement, for which PostgreSQL asks for the secret of its session.
    Cancel(Vec<u8>),
    /// None: the client was refused.
    Refused,
}

async fn admit(stream: TcpStream, settings: &Settings, has_slot: bool) -> io::Result<Admitted> {
    let mut client: Box<dyn Stream> = Box::new(stream);
    let mut is_encrypted = false;
    loop {
        match startup::read(&mut client).await? {
            FirstMessage::Ssl => match &settings.tls {
                Some(tls) if !is_encrypted => {
                    client.write_all(b"S").await?;
                    client = Box::new(tls.accept(client).await?);
                    is_encrypted = true;
                }
                _ => client.write_all(b"N").await?,
            },
            // libpq may ask for GSSAPI first. After this refusal it asks for TLS, or logs in.
            FirstMessage::Gss => client.write_all(b"N").await?,
            FirstMessage::Cancel(message) => return Ok(Admitted::Cancel(message)),
            FirstMessage::Login(login) => {
                // Before the server hears of the client: no role but those of SQL logins can try a password from
                // here.
                let refused = refused(&login, settings, has_slot, is_encrypted);
                let (sqlstate, text) = match refused {
                    Some(refused) => refused,
                    None => match (settings.take_share)(login.user().to_owned()).await {
                        Some(share) => return Ok(Admitted::Login(client, login, share)),
                        None => SHARE_TAKEN,
                    },
                };
                client.write_all(&refusal(sqlstate, text)).await?;
                client.shutdown().await?;
                return Ok(Admitted::Refused);
            }
        }
    }
}

/// Returns why a login is refused, as `SQLSTATE` and message.
fn refused(
    login: &Login,
    settings: &Settings,
    has_slot: bool,
    is_encrypted: bool,
) -> Option<(&'static str, &'static str)> {
    if settings.requires_tls && !is_encrypted {
        Some(("28000", "this server requires TLS: set sslmode=require"))
    } else if !(settings.admits)(login.user()) {
        Some(("28000", "no SQL login has this name"))
    } else if login.database() != settings.database {
        Some((
            "3D000",
            "SQL logins reach the database of the platform only",
        ))
    } else if login.is_replication() {
        Some(("42501", "SQL logins do not replicate"))
    } else if !has_slot {
        Some(("53300", "too many SQL clients are connected"))
    } else {
        None
    }
}

/// Forwards bytes both ways until either side ends, or the client has not logged in by then.
async fn forward(
    client: &mut Box<dyn Stream>,
    server: &mut UnixStream,
    login_until: Instant,
) -> io::Result<()> {
    let (mut from_client, mut to_client) = split(client);
    let (mut from_server, mut to_server) = server.split();
    let to_server = async {
        copy(&mut from_client, &mut to_server).await?;
        Ok(())
    };
    let to_client = async {
        let mut filter = MessageFilter::default();
        let mut input = vec![0; BUFFER];
        let mut output = Vec::with_capacity(BUFFER);
        loop {
            let read = from_server.read(&mut input);
            let length = if filter.is_logged_in() {
                read.await?
            } else {
                timeout_at(login_until, read).await??
            };
            filter.feed(input.get(..length).unwrap_or_default(), &mut output);
            to_client.write_all(&output).await?;
            to_client.flush().await?;
            output.clear();
            if length == 0 {
                return to_client.shutdown().await;
            }
        }
    };
    // A client that ends its side has ended its session: PostgreSQL knows no half-closed ones.
    tokio::select! {
        ended = to_server => ended,
        ended = to_client => ended,
    }
}
