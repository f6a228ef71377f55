//! Outcomes and stop requests.

use labdata_sandbox::{EndCause, Exit, Isolation::Namespaces, Network, stop_channel};

use crate::support::{Lab, process};

#[tokio::test]
async fn an_outcome_contains_the_exit_code_and_the_last_errors() {
    let Some(lab) = Lab::isolated(Namespaces).await else {
        return;
    };
    let script = "import sys\nprint('out')\nprint('error', file=sys.stderr)\nsys.exit(3)\n";
    let (outcome, log) = lab.run(script, Network::Host).await;
    assert_eq!(
        (outcome.cause, outcome.exit, &*outcome.error_tail),
        (EndCause::Exited, Exit::Code(3), "error")
    );
    assert!(log.contains("out\n") && log.contains("error\n"), "{log}");
    assert_eq!(outcome.logged, u64::try_from(log.len()).unwrap());
}

#[tokio::test]
async fn a_stop_request_before_the_start_ends_the_process() {
    let Some(lab) = Lab::isolated(Namespaces).await else {
        return;
    };
    let host = lab.host().await;
    let workspace = host.workspace("run");
    let script = "import time\ntime.sleep(600)\n";
    let active = host.activate(&workspace, script).await.unwrap();
    let (handle, mut stop) = stop_channel();
    handle.cancel();
    let spec = process(&active, Network::Host);
    let outcome = host.run(&active, &spec, &mut stop, |_| ()).await.unwrap();
    assert_eq!(outcome.cause, EndCause::Cancelled);
}
