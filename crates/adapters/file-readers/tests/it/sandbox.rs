//! Readings in the sandbox.

use labdata_ports::instruments::FileReader;

use crate::support::{demo, reader, request};

#[tokio::test]
async fn a_file_is_read_by_the_reader_that_takes_it() {
    let reader = reader();
    let reading = reader
        .read(request("growth.txt", demo(), "auto"))
        .await
        .unwrap();
    assert_eq!(reading.reader.as_deref(), Some("AGILENT_GEN5"));
    assert_eq!(reading.candidates, ["AGILENT_GEN5"]);
    assert_eq!((reading.measurements.len(), reading.curves.len()), (24, 24));
    let first = &reading.measurements[0];
    assert_eq!(first["well"], "A1");
    assert_eq!(first["unit"], "OD");
    // March, in Berlin.
    assert_eq!(first["measured_at"], "2026-03-01T09:00:00+01:00");
    let curve = &reading.curves[0];
    assert_eq!((curve.measurement, curve.x.len()), (0, 100));
    assert_eq!((curve.x[70], curve.y[70]), (Some(42_030.0), None));
    assert_eq!((curve.x[0], curve.y[0]), (Some(30.0), Some(0.119)));
    assert!(
        reading
            .document
            .get("plate reader aggregate document")
            .is_some()
    );
}

#[tokio::test]
async fn a_file_that_no_reader_takes_is_no_failure() {
    let reader = reader();
    let reading = reader
        .read(request("notes.txt", b"Dear diary".to_vec(), "auto"))
        .await
        .unwrap();
    assert_eq!(
        (reading.reader.clone(), reading.candidates.len()),
        (None, 0)
    );
    assert!(reading.refusals.len() > 5, "{reading:?}");
    assert!(reading.problem().unwrap().contains("AGILENT_GEN5: "));
    let reading = reader
        .read(request("growth.txt", demo(), "MOLDEV_SOFTMAX_PRO"))
        .await
        .unwrap();
    assert_eq!(reading.refusals.len(), 1);
}
