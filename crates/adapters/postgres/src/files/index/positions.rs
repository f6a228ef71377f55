//! Sets of positions of a segment, as they are stored: a Roaring bitmap in its portable format, or,
//! where that is shorter, one bit for each file. So what many files have fits into a page of the
//! database, too, and need not be put together from pieces.

use std::io;

use roaring::RoaringBitmap;

/// The first byte tells which it is.
const ROARING: u8 = b'r';
const BITS: u8 = b'b';

/// Positions of a segment of so many files, ascending, as they are stored.
pub(super) fn write(positions: &[u16], files: u32) -> Vec<u8> {
    let mut set: RoaringBitmap = positions.iter().copied().map(u32::from).collect();
    set.optimize();
    let bytes = usize::try_from(files.div_ceil(8)).unwrap_or(usize::MAX);
    if set.serialized_size() <= bytes {
        let mut stored = vec![ROARING];
        // Nothing that is written to memory fails.
        let written = set.serialize_into(&mut stored);
        debug_assert!(written.is_ok());
        return stored;
    }
    let mut stored = vec![0; bytes + 1];
    for position in positions {
        if let Some(byte) = stored.get_mut(1 + usize::from(position / 8)) {
            *byte |= 1 << (position % 8);
        }
    }
    if let Some(kind) = stored.first_mut() {
        *kind = BITS;
    }
    stored
}

/// Stored positions.
///
/// # Errors
/// They are damaged.
pub(super) fn read(stored: &[u8]) -> io::Result<RoaringBitmap> {
    match stored.split_first() {
        Some((&ROARING, set)) => RoaringBitmap::deserialize_from(set),
        Some((&BITS, bits)) => Ok(RoaringBitmap::from_lsb0_bytes(0, bits)),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: u16 = 61_440;

    #[test]
    fn what_was_stored_is_read_and_fits_into_a_page() {
        let every = |step: usize| (0..FILES).step_by(step).collect::<Vec<u16>>();
        let sets = [
            vec![],
            vec![0],
            vec![FILES - 1],
            every(1),
            every(2),
            every(7),
            every(1_000),
            (0..FILES).filter(|position| position % 7 != 0).collect(),
        ];
        for positions in sets {
            let stored = write(&positions, FILES.into());
            assert!(
                stored.len() <= usize::from(FILES / 8) + 1,
                "{}",
                stored.len()
            );
            let read: Vec<u32> = read(&stored).expect("positions").into_iter().collect();
            let positions: Vec<u32> = positions.into_iter().map(u32::from).collect();
            assert_eq!(read, positions);
        }
    }

    #[test]
    fn what_is_damaged_is_an_error() {
        for stored in [&b""[..], b"r", b"rxxxxxxx", b"?123"] {
            assert!(read(stored).is_err(), "{stored:?}");
        }
    }
}
