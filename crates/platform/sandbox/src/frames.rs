//! Frames between the platform and a process over [`Streams`](crate::Streams): a length (32 bits,
//! big-endian), then that many bytes.

use std::io;

use bytes::Buf;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Number of bytes that are reserved before they have arrived.
const RESERVED: usize = 1 << 16;

/// Writes a frame, its length together with its bytes: a reader that wakes up for a part of it waits
/// again for the rest.
///
/// # Errors
/// Those of the output.
pub async fn write(output: &mut (impl AsyncWrite + Unpin), body: &[u8]) -> io::Result<()> {
    let length = u32::try_from(body.len()).map_err(io::Error::other)?;
    let length = length.to_be_bytes();
    let mut frame = Buf::chain(length.as_slice(), body);
    output.write_all_buf(&mut frame).await
}

/// Reads a frame of at most `max_bytes`. The length is that of untrusted bytes, so memory grows only as
/// they arrive.
///
/// # Errors
/// [`io::ErrorKind::InvalidData`] for one that is too long, [`io::ErrorKind::UnexpectedEof`] at the end.
pub async fn read(input: &mut (impl AsyncRead + Unpin), max_bytes: usize) -> io::Result<Vec<u8>> {
    let length = input.read_u32().await?;
    let length = usize::try_from(length).map_err(io::Error::other)?;
    if length > max_bytes {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut body = Vec::with_capacity(length.min(RESERVED));
    let limit = u64::try_from(length).map_err(io::Error::other)?;
    input.take(limit).read_to_end(&mut body).await?;
    if body.len() < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_frame_is_read_as_it_was_written() {
        let mut bytes = Vec::new();
        for body in [&b"one"[..], b"", b"three"] {
            write(&mut bytes, body).await.unwrap();
        }
        let mut input = &*bytes;
        for body in [&b"one"[..], b"", b"three"] {
            assert_eq!(read(&mut input, 5).await.unwrap(), body);
        }
        let end = read(&mut input, 5).await.unwrap_err();
        assert_eq!(end.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[tokio::test]
    async fn a_frame_that_is_too_long_or_ends_early_is_an_error() {
        let long = read(&mut &b"\0\0\0\x0anine bytes"[..], 9)
            .await
            .unwrap_err();
        assert_eq!(long.kind(), io::ErrorKind::InvalidData);
        let short = read(&mut &b"\0\0\0\x09half"[..], 9).await.unwrap_err();
        assert_eq!(short.kind(), io::ErrorKind::UnexpectedEof);
    }
}
