//! Memory of servers during the load.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// Interval of samples.
const INTERVAL: Duration = Duration::from_secs(1);

/// Resident memory of one process, sampled once a second.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    pid: u32,
    kilobytes: Arc<Mutex<Vec<u64>>>,
}

impl Memory {
    /// Samples until the task is aborted.
    pub(crate) fn watch(pid: u32) -> (Self, tokio::task::AbortHandle) {
        let memory = Self {
            pid,
            kilobytes: Arc::default(),
        };
        let kilobytes = Arc::clone(&memory.kilobytes);
        let task = tokio::spawn(async move {
            while let Some(resident) = resident(pid) {
                kilobytes
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(resident);
                tokio::time::sleep(INTERVAL).await;
            }
        });
        (memory, task.abort_handle())
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let samples = self
            .kilobytes
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let Some(thirds) = thirds(&samples) else {
            return write!(f, "process {}: no figures", self.pid);
        };
        let (first, last) = (thirds.first / 1024, thirds.last / 1024);
        write!(
            f,
            "process {}: {first} MB in the first third, {last} MB in the last",
            self.pid
        )
    }
}

/// Means of the first and the last third of samples.
#[derive(Debug, PartialEq, Eq)]
struct Thirds {
    first: u64,
    last: u64,
}

fn thirds(samples: &[u64]) -> Option<Thirds> {
    let third = samples.len() / 3;
    let mean = |part: &[u64]| {
        let count = u64::try_from(part.len()).ok().filter(|count| *count > 0)?;
        Some(part.iter().sum::<u64>() / count)
    };
    Some(Thirds {
        first: mean(samples.get(..third)?)?,
        last: mean(samples.get(samples.len() - third..)?)?,
    })
}

fn resident(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thirds_are_means_of_the_first_and_the_last_samples() {
        let expected = Thirds { first: 2, last: 20 };
        assert_eq!(thirds(&[1, 3, 7, 7, 7, 10, 30]), Some(expected));
        assert_eq!(thirds(&[1, 2]), None);
    }
}
