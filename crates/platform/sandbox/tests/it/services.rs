//! Processes whose standard input and output are pipes.

use std::time::Duration;

use labdata_sandbox::{
    EndCause, Exit,
    Isolation::{Landlock, Namespaces},
    Network, ProcessOutcome, StopHandle, Streams, process_pipes, stop_channel,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    task::JoinHandle,
    time::timeout,
};

use crate::support::{Lab, process};

/// Time within which everything here happens.
const SOON: Duration = Duration::from_secs(30);

/// Process that answers requests.
struct Service {
    streams: Streams,
    stop: StopHandle,
    end: JoinHandle<(ProcessOutcome, String)>,
}

impl Service {
    async fn start(lab: &Lab, script: &str) -> Self {
        let host = lab.host().await;
        let workspace = host.workspace("service");
        let active = host.activate(&workspace, script).await.unwrap();
        let (pipes, streams) = process_pipes().unwrap();
        let (stop, mut stopped) = stop_channel();
        let spec = process(&active, Network::Denied);
        let end = tokio::spawn(async move {
            let served = host.serve(&active, &spec, pipes, &mut stopped, |_| ());
            let outcome = served.await.unwrap();
            let log = workspace.read_log(outcome.logged, 0, 1 << 20).await;
            let log = String::from_utf8(log.unwrap().bytes).unwrap();
            workspace.remove().await.unwrap();
            (outcome, log)
        });
        Self { streams, stop, end }
    }

    async fn read(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        let reading = self.streams.output.read_exact(&mut bytes);
        timeout(SOON, reading).await.unwrap().unwrap();
        bytes
    }

    /// Ends the input, by dropping it.
    fn end_input(&mut self) {
        let (_, unused) = process_pipes().unwrap();
        self.streams.input = unused.input;
    }

    /// Reads until no process has the output open.
    async fn read_to_end(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let reading = self.streams.output.read_to_end(&mut bytes);
        timeout(SOON, reading).await.unwrap().unwrap();
        bytes
    }

    async fn end(self) -> (ProcessOutcome, String) {
        timeout(SOON, self.end).await.unwrap().unwrap()
    }
}

async fn labs() -> Vec<Lab> {
    let mut labs = Vec::new();
    for isolation in [Namespaces, Landlock] {
        labs.extend(Lab::isolated(isolation).await);
    }
    labs
}

#[tokio::test]
async fn a_service_answers_until_its_input_ends_and_only_its_errors_are_logged() {
    let script = "import sys\nprint('started', file=sys.stderr)\n\
                  for line in sys.stdin:\n    print(line.strip().upper(), flush=True)\n\
                  print('ended', file=sys.stderr)\n";
    for lab in labs().await {
        let mut service = Service::start(&lab, script).await;
        for (request, response) in [("one\n", b"ONE\n"), ("two\n", b"TWO\n")] {
            service
                .streams
                .input
                .write_all(request.as_bytes())
                .await
                .unwrap();
            assert_eq!(service.read(4).await, response);
        }
        service.end_input();
        assert_eq!(service.read_to_end().await, b"");
        let (outcome, log) = service.end().await;
        assert_eq!(
            (outcome.cause, outcome.exit),
            (EndCause::Exited, Exit::Code(0))
        );
        assert_eq!(log, "started\nended\n");
    }
}

#[tokio::test]
async fn the_death_of_a_service_ends_its_output() {
    let script = "import os, sys\nsys.stdin.buffer.read(1)\nos.write(1, b'half')\n\
                  print('fatal', file=sys.stderr)\nos._exit(7)\n";
    for lab in labs().await {
        let mut service = Service::start(&lab, script).await;
        service.streams.input.write_all(b"x").await.unwrap();
        assert_eq!(service.read_to_end().await, b"half");
        let (outcome, _) = service.end().await;
        assert_eq!(
            (outcome.exit, &*outcome.error_tail),
            (Exit::Code(7), "fatal")
        );
    }
}

#[tokio::test]
async fn a_flood_of_output_waits_in_the_pipe_and_a_flood_of_errors_is_cut() {
    let script = "import os\nfor _ in range(640):\n    os.write(2, b'e' * 65535 + b'\\n')\n\
                  while True:\n    os.write(1, b'o' * 65536)\n";
    for lab in labs().await {
        let mut service = Service::start(&lab, script).await;
        let read = service.read(8 << 20).await;
        assert!(read.iter().all(|byte| *byte == b'o'));
        service.stop.kill();
        service.read_to_end().await;
        assert!(
            service.end.await.is_err(),
            "it was killed without an outcome"
        );
        let host = lab.host().await;
        let log = host
            .workspace("service")
            .read_log(40 << 20, 0, 64 << 20)
            .await;
        let length = log.unwrap().bytes.len();
        assert!(length <= 15 << 20, "{length} bytes");
    }
}

#[tokio::test]
async fn a_killed_service_leaves_no_descendant() {
    let script = "import os, sys, time\nfor _ in range(3):\n    if os.fork() == 0:\n        os.setsid()\n        \
                  os.write(1, b'.')\n        time.sleep(600)\nos.write(1, b'.')\ntime.sleep(600)\n";
    for lab in labs().await {
        for by_handle in [true, false] {
            let mut service = Service::start(&lab, script).await;
            assert_eq!(service.read(4).await, b"....");
            if by_handle {
                service.stop.kill();
            } else {
                // Drops the future.
                service.end.abort();
            }
            // A descendant would hold the output open.
            assert_eq!(service.read_to_end().await, b"");
            // Before the next one is given the same workspace.
            assert!(service.end.await.is_err(), "it has no outcome");
        }
    }
}

#[tokio::test]
async fn a_cancelled_service_has_an_outcome() {
    let script = "import sys\nsys.stdout.write('.')\nsys.stdout.flush()\nsys.stdin.read()\n";
    for lab in labs().await {
        let mut service = Service::start(&lab, script).await;
        assert_eq!(service.read(1).await, b".");
        service.stop.cancel();
        let (outcome, _) = service.end().await;
        assert_eq!(outcome.cause, EndCause::Cancelled);
    }
}
