//! Contract of [`RunLogStore`].

use labdata_domain::{
    ids::{ExecutionId, OrganizationId},
    work::{LogAppend, LogChunk, LogRead, MAX_LOG_APPEND, RETAINED_LOG_BYTES},
};
use labdata_ports::work::{RunClaim, RunQueue, logs::RunLogStore};

use crate::{
    Subject,
    given::{self, at},
    work::queue::{LEASE, Runs, claim, claimed},
};

/// Makes one test of each clause of [`crate::work::logs`].
#[macro_export]
macro_rules! run_logs_contract {
    ($harness:ty $(, $test:meta)?) => {
        $crate::clauses! { [$($test)?] $harness, run_logs in work::logs:
            a_log_is_read_from_any_offset,
            bytes_that_are_not_text_are_stored,
            skipped_bytes_are_a_gap,
            a_long_log_retains_its_beginning_and_its_end,
            a_lost_worker_writes_nothing_more,
            the_last_holder_writes_on_after_a_cancel,
            the_log_of_another_organization_is_empty,
            followers_are_signaled_when_a_log_grows,
            followers_are_signaled_when_the_run_ends,
        }
    };
}

/// A harness over a store of logs.
pub trait Logs: Runs + Subject<dyn RunLogStore> {
    /// The store.
    fn logs(&self) -> std::sync::Arc<dyn RunLogStore> {
        Subject::<dyn RunLogStore>::subject(self)
    }
}

impl<H: Runs + Subject<dyn RunLogStore>> Logs for H {}

/// Reads all chunks from an offset on, with the start of each.
async fn written_chunks<H: Logs>(
    harness: &H,
    organization: OrganizationId,
    execution: ExecutionId,
    mut offset: u64,
) -> Vec<(u64, Vec<u8>)> {
    let mut chunks: Vec<(u64, Vec<u8>)> = Vec::new();
    loop {
        let chunk = harness
            .logs()
            .read(organization, execution, offset)
            .await
            .unwrap();
        if chunk.bytes.is_empty() {
            return chunks;
        }
        match chunks.last_mut() {
            Some((_, bytes)) if chunk.offset == offset => bytes.extend_from_slice(&chunk.bytes),
            _ => chunks.push((chunk.offset, chunk.bytes.clone())),
        }
        offset = chunk.offset + u64::try_from(chunk.bytes.len()).unwrap();
    }
}

async fn append<H: Logs>(harness: &H, claim: RunClaim, bytes: &[u8]) {
    append_after(harness, claim, 0, bytes).await;
}

async fn append_after<H: Logs>(harness: &H, claim: RunClaim, skipped: u64, bytes: &[u8]) {
    for append in LogAppend::split(skipped, bytes) {
        assert!(harness.logs().append(claim, append).await.unwrap());
    }
}

/// A log is readable from any offset, even within one write; at its end there is nothing.
pub async fn a_log_is_read_from_any_offset<H: Logs>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let run = claimed(harness, lab, at(0)).await.claim;
    assert_eq!(written_chunks(harness, lab, run.execution, 0).await, []);
    let mut whole = Vec::new();
    for line in 0..100 {
        let line = format!("line {line}\n");
        append(harness, run, line.as_bytes()).await;
        whole.extend_from_slice(line.as_bytes());
    }
    for offset in [0, 1, 7, 8, 555] {
        let place = usize::try_from(offset).unwrap();
        let read = written_chunks(harness, lab, run.execution, offset).await;
        assert_eq!(read, [(offset, whole[place..].to_vec())]);
    }
    let end = u64::try_from(whole.len()).unwrap();
    for offset in [end, end + 1, u64::MAX] {
        assert_eq!(
            written_chunks(harness, lab, run.execution, offset).await,
            []
        );
    }
}

/// All bytes are stored, NUL and invalid UTF-8 included.
pub async fn bytes_that_are_not_text_are_stored<H: Logs>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let run = claimed(harness, lab, at(0)).await.claim;
    let bytes: Vec<u8> = (0..=255).collect();
    append(harness, run, &bytes).await;
    assert_eq!(
        written_chunks(harness, lab, run.execution, 0).await,
        [(0, bytes)]
    );
}

/// Output that follows dropped bytes is found after the gap.
pub async fn skipped_bytes_are_a_gap<H: Logs>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let run = claimed(harness, lab, at(0)).await.claim;
    append(harness, run, b"before").await;
    append_after(harness, run, 100, b"after").await;
    let expected = [(0, b"before".to_vec()), (106, b"after".to_vec())];
    assert_eq!(
        written_chunks(harness, lab, run.execution, 0).await,
        expected
    );
    let behind = written_chunks(harness, lab, run.execution, 50).await;
    assert_eq!(behind, [(106, b"after".to_vec())]);
}

/// Of a long log exactly the chunks are stored that [`LogChunk::is_retained`] names, however the
/// appends divide it.
pub async fn a_long_log_retains_its_beginning_and_its_end<H: Logs>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let run = claimed(harness, lab, at(0)).await.claim;
    let (mut chunks, mut length) = (Vec::new(), 0);
    for number in 0_u8..=u8::MAX {
        // Lengths that do not divide the limit, and a gap now and then.
        let bytes = vec![number; MAX_LOG_APPEND - usize::from(number)];
        let skipped = if number % 64 == 63 { 1_000 } else { 0 };
        append_after(harness, run, skipped, &bytes).await;
        let start = length + skipped;
        chunks.push(LogChunk { start, bytes });
        length = chunks.last().unwrap().end();
    }
    assert!(length > 3 * RETAINED_LOG_BYTES);
    let retained: Vec<LogChunk> = chunks
        .into_iter()
        .filter(|chunk| chunk.is_retained(length))
        .collect();
    let mut expected: Vec<(u64, Vec<u8>)> = Vec::new();
    let mut offset = 0;
    loop {
        let chunk = LogRead::join(offset, retained.clone());
        if chunk.bytes.is_empty() {
            break;
        }
        offset = chunk.end();
        expected.push((chunk.offset, chunk.bytes));
    }
    let read = written_chunks(harness, lab, run.execution, 0).await;
    let bounds = |chunks: &[(u64, Vec<u8>)]| -> Vec<(u64, usize)> {
        let bounds = chunks.iter().map(|(start, bytes)| (*start, bytes.len()));
        bounds.collect()
    };
    assert_eq!(bounds(&read), bounds(&expected));
    assert!(read == expected, "the bytes differ");
}

/// A worker that lost the run appends nothing; the next one continues at the same offset.
pub async fn a_lost_worker_writes_nothing_more<H: Logs>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let lost = claimed(harness, lab, at(0)).await.claim;
    append(harness, lost, b"first\n").await;
    let queue = Subject::<dyn RunQueue>::subject(harness);
    queue.expire(at(0) + LEASE, 10).await.unwrap();
    let next = claim(harness, at(60), 1).await.remove(0).claim;
    append(harness, next, b"second\n").await;
    for append in LogAppend::split(0, b"late\n") {
        assert!(!harness.logs().append(lost, append).await.unwrap());
    }
    let expected = [(0, b"first\nsecond\n".to_vec())];
    assert_eq!(
        written_chunks(harness, lab, lost.execution, 0).await,
        expected
    );
}

/// Output after a cancel is part of the log.
pub async fn the_last_holder_writes_on_after_a_cancel<H: Logs>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let run = claimed(harness, lab, at(0)).await.claim;
    let queue = Subject::<dyn RunQueue>::subject(harness);
    queue.cancel(lab, run.execution, at(1)).await.unwrap();
    append(harness, run, b"interrupted\n").await;
    let expected = [(0, b"interrupted\n".to_vec())];
    assert_eq!(
        written_chunks(harness, lab, run.execution, 0).await,
        expected
    );
}

/// The log of another organization's run is answered like that of an unknown execution.
pub async fn the_log_of_another_organization_is_empty<H: Logs>(harness: &H) {
    let (ours, theirs) = harness.two_organizations().await;
    let run = claimed(harness, theirs, at(0)).await.claim;
    append(harness, run, b"secret").await;
    assert_eq!(written_chunks(harness, ours, run.execution, 0).await, []);
    let unknown = ExecutionId::new(given::uuid());
    assert_eq!(written_chunks(harness, ours, unknown, 0).await, []);
}

/// A follower is notified of an append, even if the append came before it waited.
pub async fn followers_are_signaled_when_a_log_grows<H: Logs>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let run = claimed(harness, lab, at(0)).await.claim;
    let mut followed = harness.logs().subscribe(run.execution);
    let mut also = harness.logs().subscribe(run.execution);
    append(harness, run, b"plate 1\n").await;
    followed.next().await;
    also.next().await;
    append(harness, run, b"plate 2\n").await;
    followed.next().await;
    let expected = [(0, b"plate 1\nplate 2\n".to_vec())];
    assert_eq!(
        written_chunks(harness, lab, run.execution, 0).await,
        expected
    );
}

/// A follower is notified when the run ends, here by a cancel.
pub async fn followers_are_signaled_when_the_run_ends<H: Logs>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let run = claimed(harness, lab, at(0)).await.claim;
    append(harness, run, b"begun\n").await;
    let mut followed = harness.logs().subscribe(run.execution);
    let queue = Subject::<dyn RunQueue>::subject(harness);
    queue.cancel(lab, run.execution, at(1)).await.unwrap();
    followed.next().await;
}
