//! Frames: a length (32 bits, big-endian), then that many bytes.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Maximum length of a frame, in bytes.
pub(crate) const MAX_FRAME: usize = 64 << 20;

/// Number of bytes that are reserved before they have arrived.
const RESERVED: usize = 1 << 16;

/// Writes a frame.
pub(crate) async fn write(output: &mut (impl AsyncWrite + Unpin), body: &[u8]) -> io::Result<()> {
    let length = u32::try_from(body.len()).map_err(io::Error::other)?;
    output.write_all(&length.to_be_bytes()).await?;
    output.write_all(body).await
}

/// Reads a frame. The length is that of untrusted bytes, so memory grows only as they arrive.
///
/// # Errors
/// [`io::ErrorKind::InvalidData`] for one that is too long, [`io::ErrorKind::UnexpectedEof`] at the end.
pub(crate) async fn read(input: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let length = input.read_u32().await?;
    let length = usize::try_from(length).map_err(io::Error::other)?;
    if length > MAX_FRAME {
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
            assert_eq!(read(&mut input).await.unwrap(), body);
        }
        let end = read(&mut input).await.unwrap_err();
        assert_eq!(end.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[tokio::test]
    async fn a_frame_that_is_too_long_or_ends_early_is_an_error() {
        let long = read(&mut &b"\xff\xff\xff\xff..."[..]).await.unwrap_err();
        assert_eq!(long.kind(), io::ErrorKind::InvalidData);
        let short = read(&mut &b"\0\0\0\x09half"[..]).await.unwrap_err();
        assert_eq!(short.kind(), io::ErrorKind::UnexpectedEof);
    }
}
