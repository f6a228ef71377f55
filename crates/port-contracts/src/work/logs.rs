//! Contract of [`WorkLogStore`](labdata_ports::work::logs::WorkLogStore).

use labdata_domain::{
    ids::{ExecutionId, OrganizationId},
    storage::StoredKind,
    work::{LogAppend, LogChunk, LogRead, MAX_LOG_APPEND, RETAINED_LOG_BYTES, WorkId, WorkKind},
};
use labdata_ports::work::WorkClaim;

use crate::{
    given::{self, at},
    work::lab::{WorkLab, success},
};

impl WorkLab {
    /// Reads all chunks from an offset on, with the start of each.
    async fn chunks_of(
        &self,
        organization: OrganizationId,
        work: WorkId,
        mut offset: u64,
    ) -> Vec<(u64, Vec<u8>)> {
        let mut chunks: Vec<(u64, Vec<u8>)> = Vec::new();
        loop {
            let chunk = self.logs.read(organization, work, offset).await.unwrap();
            if chunk.bytes.is_empty() {
                return chunks;
            }
            match chunks.last_mut() {
                Some((_, bytes)) if chunk.offset == offset => {
                    bytes.extend_from_slice(&chunk.bytes);
                }
                _ => chunks.push((chunk.offset, chunk.bytes.clone())),
            }
            offset = chunk.offset + u64::try_from(chunk.bytes.len()).unwrap();
        }
    }

    /// Reads all chunks of a claim's work.
    async fn written(&self, claim: WorkClaim) -> Vec<(u64, Vec<u8>)> {
        self.chunks_of(claim.organization, claim.work, 0).await
    }

    async fn append(&self, claim: WorkClaim, bytes: &[u8]) {
        self.append_after(claim, 0, bytes).await;
    }

    async fn append_after(&self, claim: WorkClaim, skipped: u64, bytes: &[u8]) {
        for append in LogAppend::split(skipped, bytes) {
            assert!(self.logs.append(claim, append).await.unwrap());
        }
    }

    /// A claimed run.
    async fn run(&self) -> WorkClaim {
        self.claimed(WorkKind::Run, at(0)).await.1
    }
}

crate::suite!(
    use work::logs as work_logs;

    /// A log is readable from any offset, even within one write; at its end there is nothing.
    async fn a_log_is_read_from_any_offset(lab: &WorkLab) {
        let run = lab.run().await;
        assert_eq!(lab.written(run).await, []);
        let mut whole = Vec::new();
        for line in 0..100 {
            let line = format!("line {line}\n");
            lab.append(run, line.as_bytes()).await;
            whole.extend_from_slice(line.as_bytes());
        }
        for offset in [0, 1, 7, 8, 555] {
            let place = usize::try_from(offset).unwrap();
            let read = lab.chunks_of(lab.ours, run.work, offset).await;
            assert_eq!(read, [(offset, whole[place..].to_vec())]);
        }
        let end = u64::try_from(whole.len()).unwrap();
        for offset in [end, end + 1, u64::MAX] {
            assert_eq!(lab.chunks_of(lab.ours, run.work, offset).await, []);
        }
    }

    /// All bytes are stored, NUL and invalid UTF-8 included.
    async fn bytes_that_are_not_text_are_stored(lab: &WorkLab) {
        let run = lab.run().await;
        let bytes: Vec<u8> = (0..=255).collect();
        lab.append(run, &bytes).await;
        assert_eq!(lab.written(run).await, [(0, bytes)]);
    }

    /// Output that follows dropped bytes is found after the gap.
    async fn skipped_bytes_are_a_gap(lab: &WorkLab) {
        let run = lab.run().await;
        lab.append(run, b"before").await;
        lab.append_after(run, 100, b"after").await;
        let expected = [(0, b"before".to_vec()), (106, b"after".to_vec())];
        assert_eq!(lab.written(run).await, expected);
        let behind = lab.chunks_of(lab.ours, run.work, 50).await;
        assert_eq!(behind, [(106, b"after".to_vec())]);
    }

    /// Of a long log exactly the chunks are stored that [`LogChunk::is_retained`] names, however the
    /// appends divide it.
    async fn a_long_log_retains_its_beginning_and_its_end(lab: &WorkLab) {
        let run = lab.run().await;
        let (mut chunks, mut length) = (Vec::new(), 0);
        for number in 0_u8..=u8::MAX {
            // Lengths that do not divide the limit, and a gap now and then.
            let bytes = vec![number; MAX_LOG_APPEND - usize::from(number)];
            let skipped = if number % 64 == 63 { 1_000 } else { 0 };
            lab.append_after(run, skipped, &bytes).await;
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
        let read = lab.written(run).await;
        let bounds = |chunks: &[(u64, Vec<u8>)]| -> Vec<(u64, usize)> {
            let bounds = chunks.iter().map(|(start, bytes)| (*start, bytes.len()));
            bounds.collect()
        };
        assert_eq!(bounds(&read), bounds(&expected));
        assert!(read == expected, "the bytes differ");
    }

    /// A worker that lost the training appends nothing; the next one continues at the same offset.
    async fn a_lost_worker_writes_nothing_more(lab: &WorkLab) {
        let (_, lost) = lab.claimed(WorkKind::Training, at(0)).await;
        lab.append(lost, b"first\n").await;
        lab.lose(lost, at(20)).await;
        let next = lab.claim(WorkKind::Training, 1, at(60)).await.remove(0);
        lab.append(next, b"second\n").await;
        for append in LogAppend::split(0, b"late\n") {
            assert!(!lab.logs.append(lost, append).await.unwrap());
        }
        let expected = [(0, b"first\nsecond\n".to_vec())];
        assert_eq!(lab.written(lost).await, expected);
    }

    /// A run and the one that retries it have a log each.
    async fn a_retried_run_and_its_retry_have_a_log_each(lab: &WorkLab) {
        let (_, lost) = lab.claimed(WorkKind::Run, at(0)).await;
        lab.append(lost, b"first\n").await;
        lab.lose(lost, at(20)).await;
        let next = lab.claim(WorkKind::Run, 1, at(60)).await.remove(0);
        lab.append(next, b"second\n").await;
        let late = WorkClaim {
            work: next.work,
            ..lost
        };
        for append in LogAppend::split(0, b"late\n") {
            assert!(!lab.logs.append(late, append).await.unwrap());
        }
        assert_eq!(lab.written(lost).await, [(0, b"first\n".to_vec())]);
        assert_eq!(lab.written(next).await, [(0, b"second\n".to_vec())]);
    }

    /// Output after a cancel is part of the log.
    async fn the_last_holder_writes_on_after_a_cancel(lab: &WorkLab) {
        for kind in WorkKind::ALL {
            let (queued, claim) = lab.claimed(kind, at(0)).await;
            assert!(lab.cancel(&queued, at(1)).await);
            lab.append(claim, b"interrupted\n").await;
            let expected = [(0, b"interrupted\n".to_vec())];
            assert_eq!(lab.written(claim).await, expected);
        }
    }

    /// Logs are deleted by the time at which their work ended, and that of work that runs is not.
    async fn logs_of_work_that_ended_before_a_time_are_deleted(lab: &WorkLab) {
        for kind in WorkKind::ALL {
            let (_, claim) = lab.claimed(kind, at(0)).await;
            lab.append(claim, b"output").await;
            let delete = async |ended_before| {
                let deleted = lab.logs.delete_ended(at(ended_before), at(99), 9);
                deleted.await.unwrap()
            };
            let deleted_at = async |organization| {
                let deleted_at = lab.logs.deleted_at(organization, claim.work);
                deleted_at.await.unwrap()
            };
            assert_eq!(delete(90).await, 0);
            lab.finish(claim, &success(kind), at(10)).await.unwrap();
            assert_eq!((delete(10).await, deleted_at(lab.ours).await), (0, None));
            assert_eq!(lab.written(claim).await, [(0, b"output".to_vec())]);
            assert_eq!(
                (delete(11).await, deleted_at(lab.ours).await),
                (1, Some(at(99)))
            );
            assert_eq!(lab.written(claim).await, []);
            assert_eq!((delete(90).await, deleted_at(lab.theirs).await), (0, None));
        }
    }

    /// They are part of the usage of their organization alone, the artifact in what is recorded as well.
    async fn logs_and_artifacts_are_counted(lab: &WorkLab) {
        let (_, claim) = lab.claimed(WorkKind::Training, at(0)).await;
        let recorded = lab.files.used_bytes(lab.ours).await.unwrap();
        lab.append(claim, b"output").await;
        lab.finish(claim, &success(WorkKind::Training), at(1))
            .await
            .unwrap();
        let usage = lab.files.usage(lab.ours).await.unwrap();
        let of = |kind| usage.get(kind);
        assert_eq!((of(StoredKind::Logs), of(StoredKind::Models)), (6, 12_345));
        let used = lab.files.used_bytes(lab.ours).await.unwrap();
        assert_eq!((used, usage.total()), (recorded + 12_345, used + 6));
        let theirs = lab.files.usage(lab.theirs).await.unwrap();
        assert_eq!(theirs.total(), 0);
    }

    /// The log of another organization's run is answered like that of an unknown execution.
    async fn the_log_of_another_organization_is_empty(lab: &WorkLab) {
        let run = lab.run().await;
        lab.append(run, b"secret").await;
        assert_eq!(lab.chunks_of(lab.theirs, run.work, 0).await, []);
        let unknown = WorkId::Execution(ExecutionId::new(given::uuid()));
        assert_eq!(lab.chunks_of(lab.ours, unknown, 0).await, []);
    }

    /// A follower is notified of an append, even if the append came before it waited.
    async fn followers_are_signaled_when_a_log_grows(lab: &WorkLab) {
        let run = lab.run().await;
        let mut followed = lab.work.follow(run.work);
        let mut also = lab.work.follow(run.work);
        lab.append(run, b"plate 1\n").await;
        followed.next().await;
        also.next().await;
        lab.append(run, b"plate 2\n").await;
        followed.next().await;
        let expected = [(0, b"plate 1\nplate 2\n".to_vec())];
        assert_eq!(lab.written(run).await, expected);
    }

    /// A follower is notified when the run ends, here by a cancel.
    async fn followers_are_signaled_when_the_run_ends(lab: &WorkLab) {
        let run = lab.run().await;
        lab.append(run, b"begun\n").await;
        let mut followed = lab.work.follow(run.work);
        let executions = &lab.executions;
        let id = run.work.execution().unwrap();
        executions.cancel(lab.ours, id, at(1)).await.unwrap();
        followed.next().await;
    }
);
