//! Readings in the sandbox.

use std::{fmt::Debug, time::Instant};

use futures::FutureExt;
use labdata_domain::{
    ids::OrganizationId,
    instruments::{Reading, ReadingFailure},
};
use labdata_file_readers::FileReaderSettings;
use labdata_port_contracts::given;
use labdata_ports::instruments::{FileReader, ReadingRequest};

use crate::support::{demo, reader, reader_with, real_file, request};

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
    assert_eq!(first["measured_at"], "2026-03-01T08:00:00Z");
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

/// Rows and curves of a reading, without its document, whose ids are random each time.
fn values(reading: &Reading) -> impl PartialEq + Debug + '_ {
    let Reading {
        reader,
        candidates,
        measurements,
        curves,
        ..
    } = reading;
    (reader, candidates, measurements, curves)
}

/// Requests of one organization.
fn requests() -> impl Fn(&str, Vec<u8>, &str) -> ReadingRequest {
    let organization = OrganizationId::new(given::uuid());
    move |name, content, reader| ReadingRequest {
        organization,
        ..request(name, content, reader)
    }
}

#[tokio::test]
async fn a_process_reads_the_files_of_one_organization_one_after_the_other() {
    let reader = reader();
    let request = requests();
    let first = reader.read(request("a.txt", demo(), "auto")).await.unwrap();
    let begun = Instant::now();
    let refused = reader.read(request("b.txt", b"Dear diary".to_vec(), "auto"));
    assert_eq!(refused.await.unwrap().reader, None);
    let again = reader.read(request("a.txt", demo(), "auto")).await.unwrap();
    println!("two files by a warm process: {:?}", begun.elapsed());
    assert_eq!(values(&again), values(&first));
    assert_eq!(reader.started(), 1);
    let other = requests();
    reader.read(other("a.txt", demo(), "auto")).await.unwrap();
    assert_eq!(reader.started(), 2);
}

#[tokio::test]
async fn a_caller_that_leaves_takes_the_process_with_it() {
    let reader = reader();
    let request = requests();
    reader.read(request("a.txt", demo(), "auto")).await.unwrap();
    // Polled once, so that the request is sent, and dropped.
    let left = reader
        .read(request("left.txt", demo(), "auto"))
        .now_or_never();
    assert!(left.is_none());
    let next = reader.read(request("b.txt", b"Dear diary".to_vec(), "auto"));
    // Not the result of the file before.
    assert_eq!(next.await.unwrap().reader, None);
    assert_eq!(reader.started(), 2);
}

#[tokio::test]
async fn the_memory_of_a_reading_is_limited() {
    let settings = FileReaderSettings {
        memory: 512 << 20,
        ..FileReaderSettings::default()
    };
    let reader = reader_with(settings);
    let request = requests();
    reader.read(request("a.txt", demo(), "auto")).await.unwrap();
    // Short lines: a list of them takes twenty times their size.
    let lines = b"12\n".repeat(16 << 20);
    match reader
        .read(request("lines.txt", lines, "AGILENT_GEN5"))
        .await
    {
        Ok(reading) => {
            let reason = &reading.refusals[0].reason;
            assert!(reason.contains("memory"), "{reason}");
        }
        Err(failure) => assert_eq!(failure, ReadingFailure::Memory),
    }
    let next = reader.read(request("a.txt", demo(), "auto")).await.unwrap();
    assert_eq!(next.measurements.len(), 24);
}

/// Truncated and bit-flipped copies, the same at each call.
fn damaged(content: &[u8], count: usize) -> Vec<Vec<u8>> {
    // A linear congruential generator: its quality does not matter here.
    let mut state: u64 = 20_261_126;
    let mut below = |limit: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        usize::try_from(state >> 33).unwrap() % limit
    };
    let copies = (0..count).map(|number| {
        if number % 2 == 1 {
            return content[..below(content.len())].to_vec();
        }
        let mut flipped = content.to_vec();
        for _ in 0..[1, 1, 8][below(3)] {
            flipped[below(content.len())] ^= 1 << below(8);
        }
        flipped
    });
    copies.collect()
}

fn is_clear(reading: &Reading) -> bool {
    match reading.problem() {
        None => !reading.measurements.is_empty(),
        Some(problem) => reading.measurements.is_empty() && !problem.is_empty(),
    }
}

#[tokio::test]
async fn damaged_copies_end_clearly_and_harm_no_later_file() {
    let reader = reader();
    let request = requests();
    for (name, content, vendor) in [
        ("a.txt", Some(demo()), "AGILENT_GEN5"),
        ("b.xlsx", real_file("vicell_xr.xlsx"), "BECKMAN_VI_CELL_XR"),
    ] {
        let Some(content) = content else {
            println!("NOT TESTED: {name}, since shared/data is not here");
            continue;
        };
        let intact = reader
            .read(request(name, content.clone(), vendor))
            .await
            .unwrap();
        for copy in damaged(&content, 30) {
            let reading = reader.read(request(name, copy, vendor)).await.unwrap();
            assert!(is_clear(&reading), "{reading:?}");
        }
        let after = reader.read(request(name, content, vendor)).await.unwrap();
        assert_eq!(values(&after), values(&intact));
    }
    assert_eq!(reader.started(), 1);
}
