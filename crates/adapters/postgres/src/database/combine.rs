//! Combines small requests of one kind into batches.
//!
//! Requests that arrive while batches are under way form the next batch, which is one transaction.
//! A small request costs mostly its transaction: round trips and a flush of the log. A request that
//! arrives alone starts at once.

use std::{
    collections::{HashMap, hash_map::Entry},
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use labdata_ports::PortError;
use tokio::sync::oneshot;

/// Maximum number of requests per batch.
const MAX_COMBINED: usize = 64;

/// A request and the sender of its outcome.
type Waiting<W, T> = (W, oneshot::Sender<BatchOutcome<T>>);

/// Number of a key's batches under way, and the requests that wait for one of them to end.
#[derive(Debug)]
struct Queue<W, T> {
    under_way: usize,
    waiting: Vec<Waiting<W, T>>,
}

type Queues<K, W, T> = HashMap<K, Queue<W, T>>;

/// Outcome of a batch for one of its requests.
#[derive(Clone, Debug)]
pub(crate) enum BatchOutcome<T> {
    /// The request is committed.
    Done(T),
    /// The batch was rolled back. The request is run separately, which reports its own error or
    /// succeeds.
    RunSeparately,
    /// No connection became free; nothing was changed.
    Exhausted(String),
    /// The connection broke while the batch was committed.
    Unknown(String),
}

impl<T> BatchOutcome<T> {
    /// Outcome of a batch that got no connection.
    pub(crate) fn without_connection(error: PortError) -> Self {
        match error {
            PortError::Exhausted(why) => Self::Exhausted(why),
            // Nothing was sent yet, so a second try is safe, and reports the request's own error.
            _ => Self::RunSeparately,
        }
    }
}

/// Requests by key, with a limited number of batches under way per key.
#[derive(Debug)]
pub(crate) struct Combiner<K, W, T> {
    queues: Mutex<Queues<K, W, T>>,
    slots: usize,
}

impl<K, W, T> Combiner<K, W, T> {
    /// Creates a combiner that runs at most `slots` batches of a key concurrently.
    pub(crate) fn new(slots: usize) -> Self {
        Self {
            queues: Mutex::default(),
            slots,
        }
    }

    fn queues(&self) -> MutexGuard<'_, Queues<K, W, T>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K, W, T> Combiner<K, W, T>
where
    K: Clone + Eq + Hash + Send + 'static,
    W: Send + 'static,
    T: Send + 'static,
{
    /// Runs a request together with others of its key. `batch` returns one outcome per request, in
    /// order. The batch continues if the caller is dropped, because it holds other callers' requests.
    pub(crate) async fn submit<F>(
        self: &Arc<Self>,
        key: K,
        work: W,
        batch: impl Fn(K, Vec<W>) -> F + Send + 'static,
    ) -> BatchOutcome<T>
    where
        F: Future<Output = Vec<BatchOutcome<T>>> + Send + 'static,
    {
        let (sender, receiver) = oneshot::channel();
        let first = match self.queues().entry(key.clone()) {
            Entry::Occupied(mut queue) => {
                let queue = queue.get_mut();
                if queue.under_way < self.slots {
                    queue.under_way += 1;
                    Some((work, sender))
                } else {
                    queue.waiting.push((work, sender));
                    None
                }
            }
            Entry::Vacant(queue) => {
                queue.insert(Queue {
                    under_way: 1,
                    waiting: Vec::new(),
                });
                Some((work, sender))
            }
        };
        if let Some(first) = first {
            let turn = Turn::new(Arc::clone(self), key);
            tokio::spawn(turn.run(first, batch));
        }
        // A closed channel: the batch has panicked, and its transaction was rolled back.
        receiver.await.unwrap_or(BatchOutcome::RunSeparately)
    }
}

/// Permit to run batches of a key; released when none is left, or when a batch panics.
struct Turn<K: Eq + Hash, W, T> {
    combiner: Arc<Combiner<K, W, T>>,
    key: K,
    is_over: bool,
}

impl<K: Eq + Hash, W, T> Drop for Turn<K, W, T> {
    fn drop(&mut self) {
        if !self.is_over {
            give_back(&mut self.combiner.queues(), &self.key);
        }
    }
}

impl<K, W, T> Turn<K, W, T>
where
    K: Clone + Eq + Hash + Send + 'static,
    W: Send + 'static,
    T: Send + 'static,
{
    const fn new(combiner: Arc<Combiner<K, W, T>>, key: K) -> Self {
        Self {
            combiner,
            key,
            is_over: false,
        }
    }

    async fn run<F>(mut self, first: Waiting<W, T>, batch: impl Fn(K, Vec<W>) -> F)
    where
        F: Future<Output = Vec<BatchOutcome<T>>>,
    {
        let mut next = vec![first];
        while !next.is_empty() {
            let (works, waiting): (Vec<_>, Vec<_>) = next.into_iter().unzip();
            let outcomes = batch(self.key.clone(), works).await;
            for (sender, outcome) in waiting.into_iter().zip(outcomes) {
                // The caller may have left.
                let _ = sender.send(outcome);
            }
            next = self.next();
        }
    }

    /// Takes the waiting requests. If there are none, the next request starts a new turn.
    fn next(&mut self) -> Vec<Waiting<W, T>> {
        let mut queues = self.combiner.queues();
        let waiting = queues.get_mut(&self.key).map(|queue| &mut queue.waiting);
        // Under one lock with the release: a request that arrives in between would wait for no batch.
        let Some(waiting) = waiting.filter(|waiting| !waiting.is_empty()) else {
            give_back(&mut queues, &self.key);
            self.is_over = true;
            return Vec::new();
        };
        // From the front: a request waits only for those that came before it.
        let rest = waiting.split_off(waiting.len().min(MAX_COMBINED));
        std::mem::replace(waiting, rest)
    }
}

/// Releases a permit. Waiting requests are left to the remaining turns. With the last permit they are
/// dropped, and their callers run them separately.
fn give_back<K: Eq + Hash, W, T>(queues: &mut Queues<K, W, T>, key: &K) {
    let Some(queue) = queues.get_mut(key) else {
        return;
    };
    queue.under_way -= 1;
    if queue.under_way == 0 {
        queues.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use futures::future::BoxFuture;
    use tokio::sync::Semaphore;

    use super::*;

    type Numbers = Combiner<&'static str, usize, (usize, usize)>;
    type Sizes = BoxFuture<'static, Vec<BatchOutcome<(usize, usize)>>>;

    /// Waits for a permit, then returns each number with the size of its batch.
    fn sizes(gate: &Arc<Semaphore>) -> impl Fn(&'static str, Vec<usize>) -> Sizes + Send + 'static {
        let gate = Arc::clone(gate);
        move |_, works| {
            let gate = Arc::clone(&gate);
            Box::pin(async move {
                gate.acquire().await.unwrap().forget();
                let size = works.len();
                let done = works
                    .into_iter()
                    .map(|work| BatchOutcome::Done((work, size)));
                done.collect()
            })
        }
    }

    fn number(outcome: BatchOutcome<(usize, usize)>) -> (usize, usize) {
        match outcome {
            BatchOutcome::Done(done) => done,
            other => panic!("{other:?}"),
        }
    }

    /// Submits `works` requests at once, for which three batches suffice, and returns their results.
    async fn in_three_batches(slots: usize, works: usize) -> Vec<(usize, usize)> {
        let combiner: Arc<Numbers> = Arc::new(Combiner::new(slots));
        let gate = Arc::new(Semaphore::new(0));
        let submitted = (0..works).map(|work| {
            let (combiner, batch) = (Arc::clone(&combiner), sizes(&gate));
            async move { number(combiner.submit("one", work, batch).await) }
        });
        let all = futures::future::join_all(submitted);
        let open = async {
            gate.add_permits(3);
        };
        let (responses, ()) = futures::join!(all, open);
        assert!(combiner.queues().is_empty());
        responses
    }

    #[tokio::test]
    async fn works_that_come_while_one_is_under_way_are_done_together_with_their_own_answers() {
        let responses = in_three_batches(1, MAX_COMBINED + 4).await;
        let mut expected = vec![(0, 1)];
        expected.extend((1..=MAX_COMBINED).map(|work| (work, MAX_COMBINED)));
        expected.extend((1..=3).map(|more| (MAX_COMBINED + more, 3)));
        assert_eq!(responses, expected);
    }

    #[tokio::test]
    async fn with_two_lanes_two_batches_are_under_way_and_what_waits_is_done_by_either() {
        let responses = in_three_batches(2, 6).await;
        assert_eq!(responses, [(0, 1), (1, 1), (2, 4), (3, 4), (4, 4), (5, 4)]);
    }

    #[tokio::test]
    async fn works_of_other_keys_do_not_wait_and_a_panic_leaves_nothing_behind() {
        let combiner: Arc<Numbers> = Arc::new(Combiner::new(1));
        let (shut, open) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(9)));
        let waits = tokio::spawn({
            let (combiner, batch) = (Arc::clone(&combiner), sizes(&shut));
            async move { number(combiner.submit("slow", 1, batch).await) }
        });
        let done = combiner.submit("fast", 2, sizes(&open)).await;
        assert_eq!(number(done), (2, 1));
        let alone = combiner
            .submit("broken", 3, |_, _| async { panic!("as a test") })
            .await;
        assert!(matches!(alone, BatchOutcome::RunSeparately));
        let done = combiner.submit("broken", 4, sizes(&open)).await;
        assert_eq!(number(done), (4, 1));
        shut.add_permits(1);
        assert_eq!(waits.await.unwrap(), (1, 1));
    }
}
