//! Memory of servers during the load.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// Interval of samples.
const INTERVAL: Duration = Duration::from_secs(1);

/// Resident memory of one process at a time, in kilobytes.
#[derive(Clone, Copy, Debug)]
struct Sample {
    /// All of it, with the pages of the program's file that were touched (`VmRSS`).
    all: u64,
    /// Memory that the process allocated (`RssAnon`).
    allocated: u64,
}

/// Resident memory of one process, sampled once a second.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    pid: u32,
    samples: Arc<Mutex<Vec<Sample>>>,
}

impl Memory {
    /// Samples until the task is aborted.
    pub(crate) fn watch(pid: u32) -> (Self, tokio::task::AbortHandle) {
        let memory = Self {
            pid,
            samples: Arc::default(),
        };
        let samples = Arc::clone(&memory.samples);
        let task = tokio::spawn(async move {
            while let Some(sample) = sample(pid) {
                samples
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(sample);
                tokio::time::sleep(INTERVAL).await;
            }
        });
        (memory, task.abort_handle())
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        let part = |of: fn(&Sample) -> u64| thirds(&samples.iter().map(of).collect::<Vec<_>>());
        let (Some(all), Some(allocated)) = (part(|it| it.all), part(|it| it.allocated)) else {
            return write!(f, "process {}: no figures", self.pid);
        };
        write!(
            f,
            "process {}: {} MB in the first third, {} MB in the last; {} MB and {} MB of it allocated",
            self.pid,
            megabytes(all.first),
            megabytes(all.last),
            megabytes(allocated.first),
            megabytes(allocated.last)
        )
    }
}

/// Megabytes of a number of kilobytes, with one decimal.
fn megabytes(kilobytes: u64) -> String {
    format!("{}.{}", kilobytes / 1024, kilobytes % 1024 * 10 / 1024)
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

fn sample(pid: u32) -> Option<Sample> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let kilobytes = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse().ok()
    };
    Some(Sample {
        all: kilobytes("VmRSS:")?,
        allocated: kilobytes("RssAnon:")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn megabytes_have_one_decimal() {
        assert_eq!(megabytes(47 * 1024), "47.0");
        assert_eq!(megabytes(52 * 1024 - 1), "51.9");
    }

    #[test]
    fn thirds_are_means_of_the_first_and_the_last_samples() {
        let expected = Thirds { first: 2, last: 20 };
        assert_eq!(thirds(&[1, 3, 7, 7, 7, 10, 30]), Some(expected));
        assert_eq!(thirds(&[1, 2]), None);
    }
}
