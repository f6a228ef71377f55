//! One supervised process, from its launch to its outcome.

use std::{ffi::OsString, io, os::fd::OwnedFd, process::Stdio, sync::Arc};

use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Interest},
    net::UnixStream,
    process::Command,
    sync::watch,
};

use crate::{
    descriptors,
    launch::{CANCEL, Event, LaunchRequest},
    network::Gateway,
    pipes::ProcessPipes,
    spec::ProcessOutcome,
};

/// Request to stop the processes of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopRequest {
    /// TERM, and KILL after [`Limits::grace`](crate::Limits::grace).
    Cancel,
    /// KILL immediately.
    Kill,
}

/// Handle that stops the processes started with its [`StopSignal`].
#[derive(Debug)]
pub struct StopHandle(watch::Sender<Option<StopRequest>>);

/// Receiver of stop requests, shared by all processes of one run.
#[derive(Clone, Debug)]
pub struct StopSignal(watch::Receiver<Option<StopRequest>>);

/// Creates a handle and its signal.
#[must_use]
pub fn stop_channel() -> (StopHandle, StopSignal) {
    let (sender, receiver) = watch::channel(None);
    (StopHandle(sender), StopSignal(receiver))
}

impl StopHandle {
    /// Cancels the run, unless an earlier request stopped it.
    pub fn cancel(&self) {
        self.0.send_if_modified(|request| {
            // A cancellation after a kill must not soften it.
            let is_first = request.is_none();
            if is_first {
                *request = Some(StopRequest::Cancel);
            }
            is_first
        });
    }

    /// Kills the run.
    pub fn kill(&self) {
        self.0.send_replace(Some(StopRequest::Kill));
    }
}

impl StopSignal {
    /// Returns the current request, if any.
    #[must_use]
    pub fn requested(&self) -> Option<StopRequest> {
        *self.0.borrow()
    }

    /// Waits for a request.
    pub(crate) async fn stopped(&mut self) {
        if self.0.wait_for(Option::is_some).await.is_err() {
            // The handle was dropped, so no request can follow.
            std::future::pending::<()>().await;
        }
    }
}

/// Kills a run when its caller leaves.
#[derive(Debug)]
pub struct KillOnDrop(pub Arc<StopHandle>);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        self.0.kill();
    }
}

/// Runs the request to its end. Dropping the future kills the process.
///
/// `on_output` receives the length of the log whenever it has grown. The error is the reason why
/// nothing ran, or why the outcome is unknown.
pub(crate) async fn run(
    supervisor: &[OsString],
    request: &LaunchRequest,
    pipes: Option<ProcessPipes>,
    mut gateway: Gateway,
    stop: &mut StopSignal,
    mut on_output: impl FnMut(u64),
) -> Result<ProcessOutcome, String> {
    // A separate process stands between: it outlives a crash of the platform long enough to kill what it started.
    let (program, arguments) = supervisor.split_first().ok_or("no supervisor is set")?;
    // A socket, over which the supervisor can send listeners.
    let sockets = || -> io::Result<(UnixStream, OwnedFd)> {
        let (own, other) = std::os::unix::net::UnixStream::pair()?;
        own.set_nonblocking(true)?;
        Ok((UnixStream::from_std(own)?, other.into()))
    };
    let (mut control, stdin) = sockets().map_err(|error| format!("a pair of sockets: {error}"))?;
    let mut child = Command::new(program)
        .args(arguments)
        // The supervisor passes the request's environment on; the platform's own holds secrets.
        .env_clear()
        // A run must not hold the platform's working directory, which may be unmounted.
        .current_dir("/")
        // Ctrl-C is for the platform, which then stops its runs.
        .process_group(0)
        .stdin(Stdio::from(stdin))
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("the supervisor does not start: {error}"))?;
    let stdout = child.stdout.take().ok_or("the supervisor has no output")?;
    let text = serde_json::to_vec(request).map_err(|error| error.to_string())?;
    // The stream has no message boundaries, and pipes and bytes of the monitor follow.
    let length = u64::try_from(text.len()).unwrap_or(u64::MAX);
    let mut message = length.to_le_bytes().to_vec();
    message.extend_from_slice(&text);
    control
        .write_all(&message)
        .await
        .map_err(|error| format!("the supervisor does not read its request: {error}"))?;
    if let Some(pipes) = pipes {
        send_pipes(&control, &pipes)
            .await
            .map_err(|error| format!("the pipes of a process: {error}"))?;
    }
    #[cfg(target_os = "linux")]
    receive_listeners(&control, &mut gateway)
        .await
        .map_err(|error| format!("the network of a script: {error}"))?;

    let mut control = Some(control);
    let mut forwarded = None;
    let mut lines = BufReader::new(stdout).lines();
    let outcome = loop {
        tokio::select! {
            line = lines.next_line() => match line {
                Ok(Some(line)) => match serde_json::from_str(&line) {
                    Ok(Event::Logged(length)) => on_output(length),
                    Ok(Event::Ended(outcome)) => break Ok(outcome),
                    Ok(Event::Failed(reason)) => break Err(reason),
                    Err(error) => break Err(format!("the supervisor sent {line:?}: {error}")),
                },
                // namespace.
                Ok(None) | Err(_) => break Err("the supervisor was killed".to_owned()),
            },
            // In the same loop as the lines: a supervisor whose output is not read could not react to a stop.
            () = forward(&mut control, stop, &mut forwarded) => {}
        }
    };
    // Ends the supervisor, so that no process is left when the caller learns the outcome.
    drop(control);
    // Also reaps the supervisor, which would stay a zombie.
    let _ = child.wait().await;
    drop(gateway);
    outcome
}

async fn send_pipes(control: &UnixStream, pipes: &ProcessPipes) -> io::Result<()> {
    control
        .async_io(Interest::WRITABLE, || {
            descriptors::send(control, &pipes.files())
        })
        .await
}

/// Receives the listeners of the namespace, if any, and serves them. If the supervisor fails before it
/// sends them, there are none.
#[cfg(target_os = "linux")]
async fn receive_listeners(control: &UnixStream, gateway: &mut Gateway) -> io::Result<()> {
    // Without a separate network the script sends no listeners, and waiting for them would never end.
    if gateway.awaited() == 0 {
        return Ok(());
    }
    let files = control
        .async_io(Interest::READABLE, || descriptors::receive(control))
        .await?;
    gateway.serve_received(files.into_iter().map(Into::into).collect())
}

/// Waits for the next stop request and forwards it. Write errors are ignored: a broken pipe means
/// that the supervisor has ended.
async fn forward(
    control: &mut Option<UnixStream>,
    stop: &mut StopSignal,
    forwarded: &mut Option<StopRequest>,
) {
    let next = stop.0.wait_for(|request| request != forwarded).await;
    let Ok(next) = next.map(|request| *request) else {
        // The handle was dropped, so no request can follow.
        return std::future::pending().await;
    };
    *forwarded = next;
    match (next, control.as_mut()) {
        (Some(StopRequest::Cancel), Some(open)) => {
            let _ = open.write_all(&[CANCEL]).await;
        }
        // Closing the socket is the kill: it also works when the supervisor does not read.
        (Some(StopRequest::Kill), _) => *control = None,
        (None, _) | (_, None) => {}
    }
}
