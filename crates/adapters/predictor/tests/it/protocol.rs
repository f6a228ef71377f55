//! Requests and answers.

use std::collections::BTreeSet;

use labdata_domain::models::ModelFailure;
use labdata_ports::models::{PredictError, Predictor};

use crate::support::{Lab, NUMBERED, SOON, failed, model, numbers, organization, rows};

#[tokio::test]
async fn requests_that_arrive_together_start_one_process_which_stays_warm() {
    let lab = Lab::new(NUMBERED);
    let model = model(organization(1), 1);
    let begun: Vec<_> = (0..20).map(|_| lab.begin(&model, 1.0)).collect();
    let mut processes = BTreeSet::new();
    for prediction in begun {
        processes.insert(prediction.await.unwrap().unwrap().to_bits());
    }
    processes.insert(lab.predict(&model, 1.0).await.unwrap().to_bits());
    assert_eq!(processes.len(), 1);
    lab.wait_for_processes(1).await;
}

#[tokio::test]
async fn versions_and_organizations_have_separate_processes() {
    let lab = Lab::new(NUMBERED);
    let mut processes = BTreeSet::new();
    for (owner, version) in [(1, 1), (1, 2), (2, 1)] {
        let model = model(organization(owner), version);
        processes.insert(lab.predict(&model, 1.0).await.unwrap().to_bits());
    }
    assert_eq!(processes.len(), 3);
}

#[tokio::test]
async fn requests_are_sent_without_waiting_and_answered_in_any_order() {
    let script = "ready()\nrequests = [receive() for _ in range(8)]\n\
                  for request in reversed(requests):\n    answer(request, request['columns']['x'])\n\
                  receive()\n";
    let lab = Lab::new(script);
    let model = model(organization(1), 1);
    let begun: Vec<_> = (0..8).map(|x| lab.begin(&model, f64::from(x))).collect();
    for (x, prediction) in (0..8).zip(begun) {
        let predicted = tokio::time::timeout(SOON, prediction).await.unwrap();
        assert_eq!(predicted.unwrap(), Ok(f64::from(x)));
    }
}

#[tokio::test]
async fn many_rows_are_answered_in_their_order() {
    let lab = Lab::new(
        "ready()\nwhile True:\n    request = receive()\n    answer(request, request['columns']['x'])\n",
    );
    let x: Vec<f64> = (0..10_000).map(f64::from).collect();
    let model = model(organization(1), 1);
    let predictions = lab.predictor.predict(&model, rows(&x)).await.unwrap();
    assert_eq!(numbers(&predictions), x);
}

#[tokio::test]
async fn problems_that_the_process_finds_name_row_and_column() {
    let script = "ready()\nwhile True:\n    request = receive()\n    \
        send({'id': request['id'], 'error': {'kind': 'value', 'row': 0, 'column': 'photo',\n        \
        'message': 'no image', 'more': []}})\n";
    let lab = Lab::new(script);
    let refused = lab.predict(&model(organization(1), 1), 1.0).await;
    let Err(PredictError::Rejected(problems)) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(problems.to_string(), "data[0].photo: no image");
}

#[tokio::test]
async fn a_wrong_answer_fails_the_request_and_ends_the_process() {
    for wrong in [
        "write(b'garbage that is no frame')",
        "write(b'\\xff\\xff\\xff\\xff')",
        "write(struct.pack('>I', 5) + b'hello')",
        "write(struct.pack('>I', 12) + b'\\xff\\xff\\xff\\xff' + bytes(8))",
        "answer({'id': request['id'] + 1}, [1])",
        "answer(request, [1.5, 1.5])",
        "answer(request, [1.5] * 10001)",
        "answer(request, ['text'])",
        "answer(request, [])",
        "send({'id': request['id'], 'predictions': [1.5], 'probabilities': [{'a': 1}]})",
        "send([])",
        // A frame of 64 MiB, and a flood of frames.
        "write(struct.pack('>I', 64 << 20) + b' ' * (64 << 20))",
        "while True: send({'id': 0, 'predictions': []})",
    ] {
        let script = format!(
            "ready()\nwhile True:\n    request = receive()\n    \
             if request['columns']['x'][0] != 13:\n        answer(request, [STARTED])\n        \
             continue\n    {wrong}\n"
        );
        let lab = Lab::new(&script);
        let model = model(organization(1), 1);
        let first = lab.predict(&model, 1.0).await.unwrap();
        let refused = lab.predict(&model, 13.0).await;
        assert_eq!(
            refused,
            Err(failed(ModelFailure::InvalidResponse)),
            "{wrong}"
        );
        let second = lab.predict(&model, 1.0).await.unwrap();
        assert_ne!(first.to_bits(), second.to_bits(), "{wrong}");
        lab.wait_for_processes(1).await;
    }
}

#[tokio::test]
async fn a_first_message_that_is_none_is_a_failure() {
    for script in [
        "send({'type': 'ready', 'protocol': 9})",
        "send({})",
        "write(b'x' * 4096)",
    ] {
        let lab = Lab::new(&format!("{script}\nreceive()\n"));
        let refused = lab.predict(&model(organization(1), 1), 1.0).await;
        assert_eq!(
            refused,
            Err(failed(ModelFailure::InvalidResponse)),
            "{script}"
        );
        lab.wait_for_processes(0).await;
    }
}
