//! Refuses servers that ask for the password itself, or for its MD5.
//!
//! A server that was put in the place of the real one could ask for either. SCRAM proves that the
//! client knows the password and shows it to no one.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The requests of an `Authentication` message, by their codes.
const OK: u32 = 0;
const CLEARTEXT: u32 = 3;
const MD5: u32 = 5;

/// A stream from a server. Reading fails once the server asks for a password in the wrong way.
pub(crate) struct PasswordGuard<S> {
    stream: S,
    /// `None` once the client is authenticated.
    watch: Option<Watch>,
}

impl<S> PasswordGuard<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self {
            stream,
            watch: Some(Watch::default()),
        }
    }
}

/// Position in the messages of a server that is authenticating the client.
#[derive(Debug, Default)]
struct Watch {
    /// The start of the current message: its head, and the request of an `Authentication` message.
    start: Vec<u8>,
    /// Bytes of the current message that are of no interest.
    skip: usize,
}

impl Watch {
    /// Follows the bytes. Returns true once the client is authenticated.
    fn follow(&mut self, bytes: &[u8]) -> io::Result<bool> {
        for byte in bytes {
            if self.skip > 0 {
                self.skip -= 1;
                continue;
            }
            // Byte by byte, because a message may arrive in several reads, cut anywhere.
            self.start.push(*byte);
            let (tag, length, request) = match self.start.as_slice() {
                // Only `Authentication` messages carry a request; of all others the length suffices.
                [tag, a, b, c, d] if *tag != b'R' => (*tag, [*a, *b, *c, *d], None),
                [tag, a, b, c, d, request @ ..] if request.len() == 4 => {
                    let request = request
                        .iter()
                        .fold(0, |all, byte| all << 8 | u32::from(*byte));
                    (*tag, [*a, *b, *c, *d], Some(request))
                }
                _ => continue,
            };
            match request {
                // From here on rows may follow, whose bytes could look like a request for a password.
                Some(OK) => return Ok(true),
                Some(CLEARTEXT) => return Err(refused("in clear text")),
                Some(MD5) => return Err(refused("as MD5")),
                _ => {}
            }
            let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
            // The length counts itself, but not the tag.
            self.skip = (length.saturating_add(1)).saturating_sub(self.start.len());
            tracing::trace!(tag, length, "a message before authentication");
            self.start.clear();
        }
        Ok(false)
    }
}

fn refused(how: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!(
            "the database server asks for the password {how}, which is refused: \
             set password_encryption and pg_hba.conf to scram-sha-256"
        ),
    )
}

impl<S: AsyncRead + Unpin> AsyncRead for PasswordGuard<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        let Some(watch) = &mut self.watch else {
            return read;
        };
        match read {
            Poll::Ready(Ok(())) => {
                let new = buffer.filled().get(before..).unwrap_or_default();
                // Before the driver sees the bytes: it would send the password at once.
                if watch.follow(new)? {
                    self.watch = None;
                }
                Poll::Ready(Ok(()))
            }
            other => other,
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for PasswordGuard<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    fn message(tag: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).expect("a short body");
        let mut message = vec![tag];
        message.extend(length.to_be_bytes());
        message.extend(body);
        message
    }

    fn request(code: u32, rest: &[u8]) -> Vec<u8> {
        message(b'R', &[&code.to_be_bytes(), rest].concat())
    }

    /// Reads all, in parts of that size.
    async fn read(bytes: &[u8], chunk: usize) -> io::Result<Vec<u8>> {
        let mut guard = PasswordGuard::new(bytes);
        let (mut all, mut buffer) = (Vec::new(), vec![0; chunk]);
        loop {
            match guard.read(&mut buffer).await? {
                0 => return Ok(all),
                count => all.extend_from_slice(&buffer[..count]),
            }
        }
    }

    #[tokio::test]
    async fn a_server_that_asks_for_the_password_is_not_answered() {
        for (code, salt) in [(CLEARTEXT, &b""[..]), (MD5, b"salt")] {
            let mut bytes = message(b'v', b"some other message");
            bytes.extend(request(code, salt));
            for chunk in [1, 3, 1000] {
                let error = read(&bytes, chunk).await.expect_err("refused");
                assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
                assert!(error.to_string().contains("scram-sha-256"), "{error}");
            }
        }
    }

    #[tokio::test]
    async fn scram_passes_and_so_does_everything_after_it() {
        let mut bytes = request(10, b"SCRAM-SHA-256\0\0");
        bytes.extend(request(11, b"r=1,s=2,i=3"));
        bytes.extend(request(12, b"v=1"));
        bytes.extend(request(OK, b""));
        // After authentication this could be a row.
        bytes.extend(request(CLEARTEXT, b""));
        for chunk in [1, 7, 1000] {
            assert_eq!(read(&bytes, chunk).await.expect("all"), bytes);
        }
    }
}
