//! Frames: a kind, a length (32 bits, little-endian), and that many bytes.

use std::io::{self, Read, Write};

/// Maximum length of a frame. A row of text is at most 16 MiB, and a frame of rows ends with the row that fills
/// it.
pub(super) const MAX_FRAME: usize = 32 << 20;

/// Number of bytes that are reserved before they have arrived.
const RESERVED: usize = 1 << 16;

/// Kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// To the reader: the options, as JSON.
    Request,
    /// To the reader: the bytes that it asked for; fewer at the end of the file.
    Data,
    /// To the reader: the file cannot be read.
    SourceFailed,
    /// To the reader: the types and units in which columns are read, as JSON.
    Target,
    /// To the platform: an offset and a length, of 64 bits each.
    ReadAt,
    /// To the platform: what is known before the rows, as JSON.
    Head,
    /// To the platform: rows.
    Rows,
    /// To the platform: counts after the last row, as JSON.
    End,
    /// To the platform: the first rows, and counts of all, as JSON.
    Preview,
    /// To the platform: the refusal, as JSON.
    Failed,
}

impl Kind {
    const ALL: [Self; 10] = [
        Self::Request,
        Self::Data,
        Self::SourceFailed,
        Self::Target,
        Self::ReadAt,
        Self::Head,
        Self::Rows,
        Self::End,
        Self::Preview,
        Self::Failed,
    ];

    fn byte(self) -> u8 {
        let index = Self::ALL.iter().position(|kind| *kind == self);
        index.and_then(|index| index.try_into().ok()).unwrap_or(0)
    }
}

/// Writes a frame.
///
/// # Errors
/// Those of the output, and [`io::ErrorKind::FileTooLarge`] for a body that is too long.
pub(super) fn write(output: &mut dyn Write, kind: Kind, body: &[u8]) -> io::Result<()> {
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
    if body.len() > MAX_FRAME {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let [a, b, c, d] = length.to_le_bytes();
    output.write_all(&[kind.byte(), a, b, c, d])?;
    output.write_all(body)?;
    output.flush()
}

/// Reads a frame into a buffer, which is used again for the next one.
///
/// # Errors
/// Those of the input, and [`io::ErrorKind::InvalidData`] for a frame that does not exist or is too long.
pub(super) fn read(input: &mut dyn Read, body: &mut Vec<u8>) -> io::Result<Kind> {
    let mut head = [0; 5];
    input.read_exact(&mut head)?;
    let [kind, length @ ..] = head;
    let kind = Kind::ALL.get(usize::from(kind)).copied();
    let kind = kind.ok_or(io::ErrorKind::InvalidData)?;
    let length = usize::try_from(u32::from_le_bytes(length)).map_err(io::Error::other)?;
    if length > MAX_FRAME {
        return Err(io::ErrorKind::InvalidData.into());
    }
    // Grows as bytes arrive: the length is that of untrusted bytes.
    body.clear();
    body.reserve(length.min(RESERVED));
    let limit = u64::try_from(length).map_err(io::Error::other)?;
    input.take(limit).read_to_end(body)?;
    if body.len() < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_read_as_it_was_written() {
        let long = vec![7; MAX_FRAME];
        let mut read_body = Vec::new();
        for (kind, body) in Kind::ALL
            .into_iter()
            .zip([&[][..], b"x", &long].into_iter().cycle())
        {
            let mut bytes = Vec::new();
            write(&mut bytes, kind, body).unwrap();
            bytes.push(99);
            let found = read(&mut bytes.as_slice(), &mut read_body).unwrap();
            assert!((found, read_body.as_slice()) == (kind, body), "{kind:?}");
        }
    }

    #[test]
    fn frames_that_cannot_be_are_errors() {
        let too_long = write(&mut Vec::new(), Kind::Data, &vec![7; MAX_FRAME + 1]);
        assert_eq!(too_long.unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        let declared = u32::try_from(MAX_FRAME + 1).unwrap().to_le_bytes();
        for (bytes, kind) in [
            (vec![10, 0, 0, 0, 0], io::ErrorKind::InvalidData),
            ([&[1][..], &declared].concat(), io::ErrorKind::InvalidData),
            (vec![1, 2, 0, 0, 0, 7], io::ErrorKind::UnexpectedEof),
            (vec![1, 0, 0, 0], io::ErrorKind::UnexpectedEof),
        ] {
            assert_eq!(
                read(&mut bytes.as_slice(), &mut Vec::new())
                    .unwrap_err()
                    .kind(),
                kind,
                "{bytes:?}"
            );
        }
    }
}
