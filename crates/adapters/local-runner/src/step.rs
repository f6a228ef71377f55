//! One supervised program, from its order to its end.

use std::{ffi::OsString, process::Stdio};

use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::{ChildStdin, Command},
    sync::watch,
};

use crate::supervisor::{CANCEL, Cause, Event, Exit, Order};

/// What the runner wants of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// That it goes on.
    Run,
    /// That it ends, with grace.
    Cancel,
    /// That it is gone.
    Kill,
}

/// How a program ended.
#[derive(Clone, Debug)]
pub(crate) struct StepEnd {
    pub(crate) cause: Cause,
    pub(crate) exit: Exit,
    pub(crate) tail: String,
    pub(crate) logged: u64,
}

/// Runs the order to its end. The program is killed when this is dropped.
///
/// The error says why nothing ran, or that the supervisor was killed.
pub(crate) async fn run(
    supervisor: &[OsString],
    order: &Order,
    wish: &mut watch::Receiver<Wish>,
    mut logged: impl FnMut(u64),
) -> Result<StepEnd, String> {
    let (program, arguments) = supervisor.split_first().ok_or("no supervisor is set")?;
    let mut child = Command::new(program)
        .args(arguments)
        .env_clear()
        .current_dir("/")
        // Ctrl-C is for the platform, which then ends its runs.
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("the supervisor does not start: {error}"))?;
    let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err("the supervisor has no pipes".to_owned());
    };
    let text = serde_json::to_vec(order).map_err(|error| error.to_string())?;
    let length = u64::try_from(text.len()).unwrap_or(u64::MAX);
    let mut message = length.to_le_bytes().to_vec();
    message.extend_from_slice(&text);
    stdin
        .write_all(&message)
        .await
        .map_err(|error| format!("the supervisor takes no order: {error}"))?;

    let mut control = Some(stdin);
    let mut told = Wish::Run;
    let mut lines = BufReader::new(stdout).lines();
    let end = loop {
        tokio::select! {
            line = lines.next_line() => match line {
                Ok(Some(line)) => match serde_json::from_str(&line) {
                    Ok(Event::Logged(length)) => logged(length),
                    Ok(Event::Ended { cause, exit, tail, logged }) => {
                        break Ok(StepEnd { cause, exit, tail, logged });
                    }
                    Ok(Event::Failed(reason)) => break Err(reason),
                    Err(error) => break Err(format!("the supervisor said {line:?}: {error}")),
                },
                Ok(None) | Err(_) => break Err("the supervisor was killed".to_owned()),
            },
            () = tell(&mut control, wish, &mut told) => {}
        }
    };
    // With this nothing can be left of it; it is gone before anybody hears of the end.
    drop(control);
    let _ = child.wait().await;
    end
}

/// Waits for another wish and tells it. A pipe that is broken has nobody behind it who would have
/// to know.
async fn tell(control: &mut Option<ChildStdin>, wish: &mut watch::Receiver<Wish>, told: &mut Wish) {
    let wanted = wish.wait_for(|wish| *wish != *told).await;
    let Ok(wanted) = wanted.map(|wanted| *wanted) else {
        // Nobody will wish anything any more; the end comes by itself.
        return std::future::pending().await;
    };
    *told = wanted;
    match (wanted, control.as_mut()) {
        (Wish::Cancel, Some(open)) => {
            let _ = open.write_all(&[CANCEL]).await;
        }
        (Wish::Kill, _) => *control = None,
        (Wish::Run, _) | (_, None) => {}
    }
}
