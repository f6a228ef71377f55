//! Ends of processes.

use std::time::{Duration, Instant};

use labdata_domain::models::{ModelFailure, PredictionDelay};
use labdata_ports::models::Predictor;

use crate::support::{Lab, NUMBERED, SOON, failed, model, organization};

#[tokio::test]
async fn the_death_of_a_process_fails_what_waits_and_the_next_request_starts_another() {
    let script = "ready()\nwhile True:\n    request = receive()\n    x = request['columns']['x'][0]\n    \
        if x == 13:\n        print('fatal', file=sys.stderr)\n        os._exit(1)\n    \
        if x != 7:\n        answer(request, [STARTED])\n";
    let lab = Lab::new(script);
    let model = model(organization(1), 1);
    let first = lab.predict(&model, 1.0).await.unwrap();
    // Never answered.
    let waiting = lab.begin(&model, 7.0);
    tokio::time::sleep(Duration::from_millis(50)).await;
    let ended = Err(failed(ModelFailure::Ended));
    assert_eq!(lab.predict(&model, 13.0).await, ended);
    assert_eq!(
        tokio::time::timeout(SOON, waiting).await.unwrap().unwrap(),
        ended
    );
    let second = lab.predict(&model, 1.0).await.unwrap();
    assert_ne!(first.to_bits(), second.to_bits());
}

#[tokio::test]
async fn a_process_that_needs_too_much_memory_says_so() {
    let script = "ready()\nwhile True:\n    request = receive()\n    \
        held = [bytes(1 << 20) for _ in range(1 << 20)]\n    answer(request, [1])\n";
    let lab = Lab::with(script, |settings| labdata_predictor::PredictorSettings {
        memory: 200 << 20,
        ..settings
    });
    let refused = lab.predict(&model(organization(1), 1), 1.0).await;
    assert_eq!(refused, Err(failed(ModelFailure::Memory)));
}

#[tokio::test]
async fn descendants_that_need_too_much_memory_say_so() {
    // Together beyond the limit, and one alone, which the kernel refuses. Their parent waits for them.
    let together = "held = b'x' * (120 << 20)\n        time.sleep(600)";
    let alone = "bytes(1 << 30)";
    for (work, children) in [(together, 3), (alone, 1)] {
        let script = format!(
            "import threading\nready()\nwhile True:\n    request = receive()\n    \
             for _ in range({children}):\n      if os.fork() == 0:\n        {work}\n    \
             threading.Event().wait()\n"
        );
        let lab = Lab::with(&script, |settings| labdata_predictor::PredictorSettings {
            memory: 200 << 20,
            response_limit: Duration::from_secs(5),
            ..settings
        });
        let refused = lab.predict(&model(organization(1), 1), 1.0).await;
        assert_eq!(refused, Err(failed(ModelFailure::Memory)), "{work}");
        lab.wait_for_processes(0).await;
    }
}

#[tokio::test]
async fn descendants_end_with_their_process() {
    let script = "ready()\nwhile True:\n    request = receive()\n    \
        if os.fork() == 0:\n        os.setsid()\n        time.sleep(600)\n    \
        if request['columns']['x'][0] == 13:\n        os._exit(1)\n    \
        answer(request, [1])\n";
    let lab = Lab::new(script);
    let model = model(organization(1), 1);
    assert_eq!(lab.predict(&model, 1.0).await, Ok(1.0));
    lab.wait_for_processes(2).await;
    let ended = lab.predict(&model, 13.0).await;
    assert_eq!(ended, Err(failed(ModelFailure::Ended)));
    lab.wait_for_processes(0).await;
}

#[tokio::test]
async fn a_process_that_does_not_answer_is_killed() {
    let script = "ready()\nreceive()\nwhile True: time.sleep(1)\n";
    let lab = Lab::with(script, |settings| labdata_predictor::PredictorSettings {
        response_limit: Duration::from_secs(1),
        ..settings
    });
    let model = model(organization(1), 1);
    assert_eq!(
        lab.predict(&model, 1.0).await,
        Err(failed(ModelFailure::TooSlow))
    );
    lab.wait_for_processes(0).await;
}

#[tokio::test]
async fn an_idle_process_is_ended_and_started_again_when_needed() {
    let lab = Lab::with(NUMBERED, |settings| labdata_predictor::PredictorSettings {
        idle: Duration::from_millis(300),
        ..settings
    });
    let model = model(organization(1), 1);
    let first = lab.predict(&model, 1.0).await.unwrap();
    lab.wait_for_processes(0).await;
    let second = lab.predict(&model, 1.0).await.unwrap();
    assert_ne!(first.to_bits(), second.to_bits());
}

#[tokio::test]
async fn a_model_that_is_prepared_for_long_is_ready_for_a_later_request() {
    let script = format!("time.sleep(1.5)\n{NUMBERED}");
    let lab = Lab::with(&script, |settings| labdata_predictor::PredictorSettings {
        timeout: Duration::from_millis(200),
        ..settings
    });
    let model = model(organization(1), 1);
    let begun = Instant::now();
    let mut tries = 0;
    let predicted = loop {
        match lab.predict(&model, 1.0).await {
            Err(error) => assert_eq!(error, PredictionDelay::Preparing.into()),
            Ok(predicted) => break predicted,
        }
        tries += 1;
        assert!(begun.elapsed() < SOON);
    };
    assert!(tries > 1);
    // No other process was started.
    assert_eq!(lab.predict(&model, 1.0).await, Ok(predicted));
}

#[tokio::test]
async fn a_model_that_cannot_be_loaded_says_why_and_is_not_started_again_at_once() {
    let script = "send({'type': 'failed', 'code': 'artifact_invalid', 'exit_code': 10,\n      \
        'message': f'no model\\n{STARTED}'})\n";
    let lab = Lab::new(script);
    let model = model(organization(1), 1);
    let first = lab.predict(&model, 1.0).await.unwrap_err();
    assert!(first.to_string().contains("no model "), "{first}");
    assert_eq!(lab.predict(&model, 1.0).await, Err(first));
    lab.wait_for_processes(0).await;
}

#[tokio::test]
async fn all_processes_end_with_the_predictor() {
    for is_closed in [true, false] {
        let script = format!("import subprocess\nsubprocess.Popen(['sleep', '600'])\n{NUMBERED}");
        let lab = Lab::new(&script);
        for version in 1..=2 {
            lab.predict(&model(organization(1), version), 1.0)
                .await
                .unwrap();
        }
        lab.wait_for_processes(4).await;
        let Lab { predictor, data } = lab;
        if is_closed {
            predictor.close().await;
        }
        drop(predictor);
        let lab = Lab {
            predictor: Lab::new(NUMBERED).predictor,
            data,
        };
        lab.wait_for_processes(0).await;
    }
}
