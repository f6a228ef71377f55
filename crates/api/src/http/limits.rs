//! Limits of connections that the operating system enforces.

use std::{os::fd::AsFd, time::Duration};

/// Number of connections of clients: at most `most`, and fewer where the process may open fewer files
/// than these and `others`. At least half of its files are for clients.
pub(super) fn connections(most: u64, others: u64) -> usize {
    // Without free descriptors a server can neither accept connections nor open those of its database.
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let files = limit.current.unwrap_or(u64::MAX);
    share(files, most, others)
}

/// Lets the operating system end a connection whose client takes nothing of a response for that long: a
/// body is only asked for more when the client has taken something.
#[cfg(target_os = "linux")]
pub(super) fn end_when_stalled(connection: impl AsFd, after: Duration) {
    let milliseconds = u32::try_from(after.as_millis()).unwrap_or(u32::MAX);
    // Keep-alive probes do not find this kind of client: its kernel acknowledges them with a full window.
    if let Err(error) = rustix::net::sockopt::set_tcp_user_timeout(connection, milliseconds) {
        tracing::debug!(%error, "the time limit of a connection cannot be set");
    }
}

/// Other systems end it after some minutes of their own.
#[cfg(not(target_os = "linux"))]
pub(super) fn end_when_stalled(_: impl AsFd, _: Duration) {}

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
