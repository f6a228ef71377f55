//! Messages between the sandbox and a supervisor.

use std::{
    io::{self, Write},
    net::SocketAddr,
    path::PathBuf,
};

use labdata_redacted::Variables;
use serde::{Deserialize, Serialize};

use crate::{
    accounts::Account,
    spec::{Isolation, Limits, Network, ProcessOutcome},
};

/// Launch of one process: JSON behind its length, on the supervisor's standard input, a socket. The files
/// of [`LaunchRequest::has_pipes`] and [`CANCEL`] bytes may follow; the end of the input means "kill
/// everything now".
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LaunchRequest {
    pub(crate) isolation: Isolation,
    /// Program and arguments.
    pub(crate) command: Vec<String>,
    /// Complete environment.
    pub(crate) environment: Variables,
    /// True if a message with the program's standard input and output follows. Otherwise the input is
    /// empty, and the output is logged.
    pub(crate) has_pipes: bool,
    /// Working directory.
    pub(crate) directory: PathBuf,
    /// Paths that may be read and executed. Missing ones are skipped.
    pub(crate) readable: Vec<PathBuf>,
    /// Paths that may be written.
    pub(crate) writable: Vec<PathBuf>,
    /// Directories whose files together must not exceed the limit. The process can write them.
    pub(crate) measured: Vec<PathBuf>,
    /// Directory that is mounted as `/tmp` in namespaces.
    pub(crate) temporary: PathBuf,
    /// Empty directory, used as mount point of the new root.
    pub(crate) root: PathBuf,
    /// Directory of the log's segments.
    pub(crate) log: PathBuf,
    /// Current length of the log, in bytes.
    pub(crate) logged: u64,
    /// File through which the process joins its control group, if it has one.
    pub(crate) cgroup: Option<PathBuf>,
    /// Account of the process, if the supervisor runs as root.
    pub(crate) account: Option<LaunchAccount>,
    pub(crate) network: Network,
    /// Network of the namespace, if the process has its own.
    pub(crate) namespace: NamespaceNetwork,
    /// TCP ports that Landlock permits, if the network is restricted.
    pub(crate) ports: Vec<u16>,
    pub(crate) limits: Limits,
}

/// Network of a namespace.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct NamespaceNetwork {
    /// Addresses of listeners, which the supervisor opens and sends over its standard input.
    pub(crate) listen: Vec<SocketAddr>,
    /// Content of `/etc/hosts`; empty for that of the machine.
    pub(crate) hosts: String,
}

/// Account of a process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LaunchAccount {
    /// User id and group id.
    pub(crate) id: u32,
    /// Group id of the workspace's account, whose script this account may read.
    pub(crate) group: Option<u32>,
    /// File whose shared lock retains the account in use. The supervisor locks it until its end.
    pub(crate) file: PathBuf,
}

impl From<&Account> for LaunchAccount {
    fn from(account: &Account) -> Self {
        Self {
            id: account.id,
            group: None,
            file: account.file.clone(),
        }
    }
}

/// Request for TERM to all processes, and KILL after the grace period.
pub(crate) const CANCEL: u8 = b'c';

/// Message from the supervisor: one line of JSON on its standard output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Event {
    /// The process could not be started.
    Failed(String),
    /// The log has grown to this length.
    Logged(u64),
    /// The process and all its descendants have ended.
    Ended(ProcessOutcome),
}

impl Event {
    /// Sends the event to the platform. Errors are ignored: there is no other channel to report them.
    pub(crate) fn send(&self) {
        let Ok(mut line) = serde_json::to_vec(self) else {
            return;
        };
        line.push(b'\n');
        let mut output = io::stdout().lock();
        let _ = output.write_all(&line).and_then(|()| output.flush());
    }
}
