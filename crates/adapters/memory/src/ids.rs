//! Ids and "random" bytes that are the same in every run.

use std::sync::atomic::{AtomicU64, Ordering};

use labdata_ports::IdSource;
use uuid::Uuid;

/// The milliseconds that every id bears: the beginning of 2026.
const MILLISECONDS: u64 = 1_767_225_600_000;

/// Counts: each id is greater than the one before. Its bytes are **no secrets**.
#[derive(Debug, Default)]
pub struct SequentialIds {
    last: AtomicU64,
}

impl SequentialIds {
    fn next(&self) -> u64 {
        self.last.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl IdSource for SequentialIds {
    fn next_id(&self) -> Uuid {
        let mut random = [0; 10];
        let (_, counter) = random.split_at_mut(2);
        counter.copy_from_slice(&self.next().to_be_bytes());
        uuid::Builder::from_unix_timestamp_millis(MILLISECONDS, &random).into_uuid()
    }

    fn fill_random(&self, buffer: &mut [u8]) {
        // A counter alone would leave short buffers alike, so it is spread over the bytes first
        // (the finalizer of SplitMix64).
        for chunk in buffer.chunks_mut(8) {
            let mut number = self.next().wrapping_mul(0x9e37_79b9_7f4a_7c15);
            number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            for (byte, random) in chunk
                .iter_mut()
                .zip((number ^ (number >> 31)).to_be_bytes())
            {
                *byte = random;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_increase_and_are_of_version_7() {
        let ids = SequentialIds::default();
        let made: Vec<Uuid> = (0..1000).map(|_| ids.next_id()).collect();
        assert!(made.is_sorted_by(|a, b| a < b));
        assert!(made.iter().all(|id| id.get_version_num() == 7));
    }

    #[test]
    fn bytes_differ_from_call_to_call_and_not_from_run_to_run() {
        let bytes = |ids: &SequentialIds| {
            let mut buffer = [0; 5];
            ids.fill_random(&mut buffer);
            buffer
        };
        let (one, other) = (SequentialIds::default(), SequentialIds::default());
        let first = bytes(&one);
        assert_eq!(first, bytes(&other));
        assert_ne!(first, bytes(&one));
    }
}
