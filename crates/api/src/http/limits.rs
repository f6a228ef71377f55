//! Limits of connections that the operating system enforces.

/// Number of connections of clients: at most `most`, and fewer where the process may open fewer files
/// than these and `others`. At least half of its files are for clients.
pub(super) fn connections(most: u64, others: u64) -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let files = limit.current.unwrap_or(u64::MAX);
    share(files, most, others)
}

fn share(files: u64, most: u64, others: u64) -> usize {
    let connections = files.saturating_sub(others).max(files / 2).min(most);
    usize::try_from(connections).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_leave_files_for_the_rest_of_the_server() {
        assert_eq!(share(u64::MAX, 20_000, 512), 20_000);
        assert_eq!(share(4096, 20_000, 512), 3584);
        assert_eq!(share(1024, 20_000, 512), 512);
        assert_eq!(share(256, 20_000, 512), 128);
    }
}
