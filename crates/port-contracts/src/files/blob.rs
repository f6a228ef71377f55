//! Contract of [`BlobStore`].

use std::{
    io::{Read, Seek, SeekFrom},
    ops::Range,
};

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, future::join_all, stream};
use labdata_domain::{
    files::{Crc32c, ObjectKey, StoredBytes},
    ids::OrganizationId,
};
use labdata_ports::{
    PortError,
    files::blob::{BlobStore, BodyBroken, ByteStream, PutBlobError},
};

use crate::{Itself, Subject, assertions::assert_not_found, given};

const NO_LIMIT: u64 = u64::MAX;

fn ours() -> OrganizationId {
    OrganizationId::new(given::uuid())
}

fn key() -> ObjectKey {
    ObjectKey::new(given::uuid())
}

/// A body that arrives in parts of that length. It panics if it is polled after its end, as
/// streams may.
fn body(bytes: &[u8], chunk: usize) -> ByteStream {
    let parts = bytes
        .chunks(chunk)
        .map(Bytes::copy_from_slice)
        .collect::<Vec<_>>()
        .into_iter();
    stream::unfold(
        parts,
        |mut rest| async move { Some((Ok(rest.next()?), rest)) },
    )
    .boxed()
}

/// Bytes that differ from place to place.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let [byte, ..] = state.to_le_bytes();
        byte
    };
    std::iter::repeat_with(next).take(length).collect()
}

async fn put(
    blobs: &dyn BlobStore,
    organization: OrganizationId,
    object: ObjectKey,
    bytes: &[u8],
) -> Result<StoredBytes, PutBlobError> {
    blobs
        .put_new(organization, object, body(bytes, 7), NO_LIMIT)
        .await
}

async fn read(
    blobs: &dyn BlobStore,
    organization: OrganizationId,
    object: ObjectKey,
    range: Option<Range<u64>>,
) -> (u64, Vec<u8>) {
    let read = blobs.read(organization, object, range).await.unwrap();
    let bytes = read.bytes.try_collect::<Vec<Bytes>>().await.unwrap();
    (read.size, bytes.concat())
}

async fn assert_absent(blobs: &dyn BlobStore, organization: OrganizationId, object: ObjectKey) {
    assert_not_found(blobs.size(organization, object).await);
    assert_not_found(
        blobs
            .read(organization, object, None)
            .await
            .map(|body| body.size),
    );
}

crate::suite!(
    use files::blob;

    /// A reader starts at the beginning, and reads on from wherever it is sent.
    async fn an_object_is_read_from_any_position(harness: &Itself<impl Subject<dyn BlobStore>>) {
        let (blobs, lab, object) = (harness.subject(), ours(), key());
        let bytes = noise(100_000);
        put(&*blobs, lab, object, &bytes).await.unwrap();
        let mut reader = blobs.open(lab, object).await.unwrap();
        let mut start = [0; 10];
        reader.read_exact(&mut start).unwrap();
        assert_eq!(start, bytes[..10]);
        assert_eq!(reader.seek(SeekFrom::End(-5)).unwrap(), 99_995);
        let mut end = Vec::new();
        reader.read_to_end(&mut end).unwrap();
        assert_eq!(end, bytes[99_995..]);
        reader.seek(SeekFrom::Start(50_000)).unwrap();
        let mut rest = Vec::new();
        reader.read_to_end(&mut rest).unwrap();
        assert_eq!(rest, bytes[50_000..]);
        assert_not_found(blobs.open(ours(), object).await.map(drop));
        assert_not_found(blobs.open(lab, key()).await.map(drop));
    }

    /// A deletion takes nothing from a reader that is open.
    async fn an_open_object_is_read_although_it_is_deleted(
        harness: &Itself<impl Subject<dyn BlobStore>>,
    ) {
        let (blobs, lab, object) = (harness.subject(), ours(), key());
        let bytes = noise(100_000);
        put(&*blobs, lab, object, &bytes).await.unwrap();
        let mut reader = blobs.open(lab, object).await.unwrap();
        blobs.delete(lab, object).await.unwrap();
        let mut whole = Vec::new();
        reader.read_to_end(&mut whole).unwrap();
        assert_eq!(whole, bytes);
    }

    /// Creating returns the number of bytes and their CRC-32C; reading returns them.
    async fn an_object_reads_back_with_its_size_and_checksum(
        harness: &Itself<impl Subject<dyn BlobStore>>,
    ) {
        let (blobs, lab, object) = (harness.subject(), ours(), key());
        let stored = put(&*blobs, lab, object, b"123456789").await.unwrap();
        assert_eq!(
            stored,
            StoredBytes {
                size: 9,
                crc32c: Crc32c::new(0xe306_9283)
            }
        );
        assert_eq!(
            read(&*blobs, lab, object, None).await,
            (9, b"123456789".to_vec())
        );
        assert_eq!(blobs.size(lab, object).await.unwrap(), 9);
    }

    /// Size and checksum of a stored object are those that its creation returned.
    async fn the_checksum_can_be_computed_later(harness: &Itself<impl Subject<dyn BlobStore>>) {
        let (blobs, lab) = (harness.subject(), ours());
        for length in [0, 9, 700_000] {
            let object = key();
            let stored = put(&*blobs, lab, object, &noise(length)).await.unwrap();
            assert_eq!(blobs.checksum(lab, object).await.unwrap(), stored);
        }
        assert_not_found(blobs.checksum(lab, key()).await);
    }

    /// An empty body makes an object of no bytes.
    async fn an_empty_object_is_an_object(harness: &Itself<impl Subject<dyn BlobStore>>) {
        let (blobs, lab, object) = (harness.subject(), ours(), key());
        let stored = put(&*blobs, lab, object, b"").await.unwrap();
        assert_eq!(
            stored,
            StoredBytes {
                size: 0,
                crc32c: Crc32c::new(0)
            }
        );
        assert_eq!(read(&*blobs, lab, object, None).await, (0, Vec::new()));
        assert_eq!(
            read(&*blobs, lab, object, Some(0..4)).await,
            (0, Vec::new())
        );
    }

    /// A body is stored whole and in order however it arrives.
    async fn an_object_of_many_chunks_reads_back(harness: &Itself<impl Subject<dyn BlobStore>>) {
        let (blobs, lab) = (harness.subject(), ours());
        let bytes = noise(3_000_001);
        for chunk in [1_000, 65_536, 5_000_000] {
            let object = key();
            blobs
                .put_new(lab, object, body(&bytes, chunk), NO_LIMIT)
                .await
                .unwrap();
            let (size, found) = read(&*blobs, lab, object, None).await;
            assert_eq!(size, 3_000_001);
            assert!(found == bytes, "in pieces of {chunk}");
        }
    }

    /// A range has the bytes from its start to its end or the object's, whichever comes first.
    async fn a_range_is_cut_at_the_end_of_the_object(
        harness: &Itself<impl Subject<dyn BlobStore>>,
    ) {
        let (blobs, lab, object) = (harness.subject(), ours(), key());
        put(&*blobs, lab, object, b"0123456789").await.unwrap();
        let cases: [(Range<u64>, &[u8]); 8] = [
            (0..10, b"0123456789"),
            (3..5, b"34"),
            (9..10, b"9"),
            (8..100, b"89"),
            (0..u64::MAX, b"0123456789"),
            (10..12, b""),
            (400..500, b""),
            (4..4, b""),
        ];
        for (range, expected) in cases {
            let found = read(&*blobs, lab, object, Some(range.clone())).await;
            assert_eq!(found, (10, expected.to_vec()), "{range:?}");
        }
    }

    /// A key that is taken is refused, and its object stays.
    async fn an_object_is_never_replaced(harness: &Itself<impl Subject<dyn BlobStore>>) {
        let (blobs, lab, object) = (harness.subject(), ours(), key());
        put(&*blobs, lab, object, b"first").await.unwrap();
        let again = put(&*blobs, lab, object, b"second").await;
        assert!(matches!(again, Err(PutBlobError::Exists)), "{again:?}");
        assert_eq!(read(&*blobs, lab, object, None).await.1, b"first");
    }

    /// Of concurrent calls with one key, one succeeds, and the object is its body.
    async fn of_racing_creations_exactly_one_succeeds(
        harness: &Itself<impl Subject<dyn BlobStore>>,
    ) {
        let (blobs, lab, object) = (harness.subject(), ours(), key());
        let bodies: Vec<Vec<u8>> = (0..8_u8).map(|number| vec![number; 400_000]).collect();
        let calls = bodies
            .iter()
            .map(|bytes| blobs.put_new(lab, object, body(bytes, 9_000), NO_LIMIT));
        let results = join_all(calls).await;
        let won: Vec<&Vec<u8>> = bodies
            .iter()
            .zip(&results)
            .filter(|(_, result)| result.is_ok())
            .map(|(body, _)| body)
            .collect();
        let [winner] = won.as_slice() else {
            panic!("exactly one call wins: {results:?}")
        };
        assert!(read(&*blobs, lab, object, None).await.1 == **winner);
        for result in results {
            assert!(
                matches!(result, Ok(_) | Err(PutBlobError::Exists)),
                "{result:?}"
            );
        }
    }

    /// A body of exactly the limit is accepted.
    async fn a_body_as_long_as_the_limit_is_stored(harness: &Itself<impl Subject<dyn BlobStore>>) {
        let (blobs, lab, object) = (harness.subject(), ours(), key());
        blobs
            .put_new(lab, object, body(&noise(1_000), 90), 1_000)
            .await
            .unwrap();
        assert_eq!(blobs.size(lab, object).await.unwrap(), 1_000);
    }

    /// One byte more is refused, nothing is left, and the key can still be created.
    async fn a_body_over_the_limit_leaves_nothing(harness: &Itself<impl Subject<dyn BlobStore>>) {
        let (blobs, lab, object) = (harness.subject(), ours(), key());
        let refused = blobs
            .put_new(lab, object, body(&noise(1_001), 90), 1_000)
            .await;
        assert!(
            matches!(refused, Err(PutBlobError::TooLarge { limit: 1_000 })),
            "{refused:?}"
        );
        assert_absent(&*blobs, lab, object).await;
        put(&*blobs, lab, object, b"fits").await.unwrap();
    }

    /// A body without an end is not read to its end.
    async fn reading_stops_behind_the_limit(harness: &Itself<impl Subject<dyn BlobStore>>) {
        let (blobs, lab, object) = (harness.subject(), ours(), key());
        let endless = stream::repeat_with(|| Ok(Bytes::from_static(&[7; 1024]))).boxed();
        let refused = blobs.put_new(lab, object, endless, 1_000_000).await;
        assert!(
            matches!(refused, Err(PutBlobError::TooLarge { .. })),
            "{refused:?}"
        );
        assert_absent(&*blobs, lab, object).await;
    }

    /// A body that breaks off early or late leaves nothing, and the key can still be created.
    async fn a_body_that_breaks_off_leaves_nothing(harness: &Itself<impl Subject<dyn BlobStore>>) {
        let (blobs, lab) = (harness.subject(), ours());
        for length in [0, 1, 2_000_000] {
            let object = key();
            let torn = body(&noise(length), 60_000)
                .chain(stream::once(async {
                    Err(BodyBroken("the sender left".to_owned()))
                }))
                .boxed();
            let refused = blobs.put_new(lab, object, torn, NO_LIMIT).await;
            assert!(matches!(refused, Err(PutBlobError::Body(_))), "{refused:?}");
            assert_absent(&*blobs, lab, object).await;
            put(&*blobs, lab, object, b"whole").await.unwrap();
            assert_eq!(read(&*blobs, lab, object, None).await.1, b"whole");
        }
    }

    /// When the caller stops waiting in the middle of a body, nothing of it is visible.
    async fn an_abandoned_creation_leaves_no_partial_object(
        harness: &Itself<impl Subject<dyn BlobStore>>,
    ) {
        let (blobs, lab, object) = (harness.subject(), ours(), key());
        let stalled = body(&noise(1_000_000), 60_000)
            .chain(stream::pending())
            .boxed();
        let mut creation = Box::pin(blobs.put_new(lab, object, stalled, NO_LIMIT));
        for _ in 0..50 {
            let poll = futures::poll!(creation.as_mut());
            assert!(poll.is_pending());
        }
        drop(creation);
        assert_absent(&*blobs, lab, object).await;
        put(&*blobs, lab, object, b"whole").await.unwrap();
        assert_eq!(read(&*blobs, lab, object, None).await.1, b"whole");
    }

    /// A key that was never created is not found.
    async fn an_object_that_does_not_exist_is_not_found(
        harness: &Itself<impl Subject<dyn BlobStore>>,
    ) {
        let (blobs, lab) = (harness.subject(), ours());
        assert_absent(&*blobs, lab, key()).await;
        let ranged = blobs
            .read(lab, key(), Some(0..10))
            .await
            .map(|body| body.size);
        assert!(matches!(ranged, Err(PortError::NotFound(_))), "{ranged:?}");
    }

    /// Organizations neither see nor change each other's objects, even under the same key.
    async fn the_same_key_in_another_organization_is_another_object(
        harness: &Itself<impl Subject<dyn BlobStore>>,
    ) {
        let (blobs, ours, theirs, object) = (harness.subject(), ours(), self::ours(), key());
        put(&*blobs, theirs, object, b"theirs").await.unwrap();
        assert_absent(&*blobs, ours, object).await;
        blobs.delete(ours, object).await.unwrap();
        put(&*blobs, ours, object, b"ours").await.unwrap();
        assert_eq!(read(&*blobs, theirs, object, None).await.1, b"theirs");
        assert_eq!(read(&*blobs, ours, object, None).await.1, b"ours");
    }

    /// A deleted object is not found; deleting it again or deleting an unknown key succeeds.
    async fn a_deleted_object_is_gone_and_its_deletion_repeats(
        harness: &Itself<impl Subject<dyn BlobStore>>,
    ) {
        let (blobs, lab, object) = (harness.subject(), ours(), key());
        put(&*blobs, lab, object, b"bytes").await.unwrap();
        blobs.delete(lab, object).await.unwrap();
        assert_absent(&*blobs, lab, object).await;
        blobs.delete(lab, object).await.unwrap();
        blobs.delete(lab, key()).await.unwrap();
    }

    /// The list has the objects of all organizations, each once, and none that is removed or was never
    /// whole.
    async fn every_object_is_listed_with_its_organization(
        harness: &Itself<impl Subject<dyn BlobStore>>,
    ) {
        let (blobs, lab, other) = (harness.subject(), ours(), ours());
        let (first, second, deleted, torn) = (key(), key(), key(), key());
        for (organization, object) in [(lab, first), (other, first), (lab, second), (lab, deleted)]
        {
            put(&*blobs, organization, object, b"bytes").await.unwrap();
        }
        blobs.delete(lab, deleted).await.unwrap();
        let broken = stream::once(async { Err(BodyBroken("the sender left".to_owned())) });
        let refused = blobs.put_new(lab, torn, broken.boxed(), NO_LIMIT).await;
        assert!(refused.is_err(), "{refused:?}");
        let mut listed: Vec<_> = blobs.objects().try_collect().await.unwrap();
        listed.sort_unstable();
        let mut expected = [(lab, first), (other, first), (lab, second)];
        expected.sort_unstable();
        assert_eq!(listed, expected);
    }

    /// The health check of a working store succeeds repeatedly.
    async fn the_probe_of_a_store_that_works_succeeds(
        harness: &Itself<impl Subject<dyn BlobStore>>,
    ) {
        let blobs = harness.subject();
        for _ in 0..3 {
            blobs.probe().await.unwrap();
        }
    }
);
