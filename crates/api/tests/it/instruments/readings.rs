//! Files of instruments that are read by the built program: from upload to rows, curves and undo.

use std::{fs, path::PathBuf, time::Instant};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    process::directory,
    work::platform_runs::{KEY, Lab},
};

const DEMO: &str = include_str!("../../../../../docs/demo/simulated_growth_curves.txt");

/// A real export, where they are: they are not part of the repository.
fn real_file(name: &str) -> Option<Vec<u8>> {
    let own = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut places = own.ancestors().map(|it| it.join("shared/data").join(name));
    places.find_map(|path| fs::read(path).ok())
}

/// A lab with an instrument whose files are read.
struct Readings {
    lab: Lab,
    instrument: Value,
}

impl Readings {
    async fn post(&self, path: &str, body: Value) -> Value {
        self.lab.call(Method::POST, path, body).await
    }

    /// The first column of the result of a query.
    async fn query(&self, query: &str) -> Vec<Value> {
        let body = json!({ "query": query });
        let result = self.post("/tools/query", body).await;
        let rows = result["data"].as_array().unwrap().iter();
        rows.map(|row| row[0].clone()).collect()
    }

    async fn number(&self, query: &str) -> u64 {
        self.query(query).await[0].as_u64().unwrap()
    }

    /// The execution once it has ended.
    async fn ended(&self, id: &Value) -> Value {
        let path = format!("/job-executions/{}", id.as_str().unwrap());
        loop {
            let execution = self.lab.call(Method::GET, &path, Value::Null).await;
            if !execution["completed_at"].is_null() {
                return execution;
            }
        }
    }

    /// Uploads a file; returns it, the ended execution that its upload started, and its log.
    async fn uploaded(&self, name: &str, content: Vec<u8>) -> (Value, Value, String) {
        let file = self.lab.upload(&self.instrument, name, content).await;
        let list = "/job-executions?limit=1000";
        let execution = loop {
            let executions = self.lab.call(Method::GET, list, Value::Null).await;
            let mut executions = executions.as_array().unwrap().iter();
            if let Some(found) = executions.find(|it| it["trigger_file_id"] == file) {
                break found["job_execution_id"].clone();
            }
        };
        let ended = self.ended(&execution).await;
        let log = format!("/job-executions/{}/logs", execution.as_str().unwrap());
        let (_, log) = self.lab.ask(KEY, Method::GET, &log, Value::Null).await;
        (file, ended, log)
    }
}

const MEASUREMENTS: &str = "SELECT count(*) FROM instrument_measurement";
const POINTS: &str = "SELECT count(*) FROM instrument_curve";

#[tokio::test]
#[expect(
    clippy::print_stderr,
    reason = "measured figures, and what is not tested"
)]
#[expect(
    clippy::too_many_lines,
    reason = "one story, in the order in which it happens"
)]
async fn an_uploaded_file_becomes_measurements_and_curves() {
    let own = directory();
    let lab = Lab::start_with(own.path(), &[], &[]);
    let body = json!({"name": "reader", "reader": "auto", "timezone": "Europe/Berlin"});
    let made = lab.call(Method::POST, "/instruments", body).await;
    let lab = Readings {
        instrument: made["id"].clone(),
        lab,
    };

    let begun = Instant::now();
    let (file, first, log) = lab.uploaded("plate 1.txt", DEMO.into()).await;
    eprintln!("first file, with the installation: {:?}", begun.elapsed());
    assert_eq!(first["status"], "completed", "{first} {log}");
    assert!(
        log.contains("AGILENT_GEN5: 24 measurements, 24 of them curves"),
        "{log}"
    );
    assert_eq!(first["job_name"], "Read instrument file");
    assert_eq!(
        (lab.number(MEASUREMENTS).await, lab.number(POINTS).await),
        (24, 2_400)
    );
    let overflow = "SELECT well || ' ' || x || ' ' || (m.metadata ->> 'reason') FROM instrument_curve c \
        JOIN instrument_measurement m ON m.id = c.instrument_measurement_id WHERE y IS NULL";
    assert_eq!(lab.query(overflow).await, ["A1 42030 OVRFLW"]);
    let first_row = "SELECT json_build_array(file_id, instrument_id, unit, y_unit, x_unit, wavelength_nm, \
        measured_at AT TIME ZONE 'UTC', created_by_execution_id) FROM instrument_measurement WHERE well = 'A1'";
    let expected = json!([
        file,
        lab.instrument,
        "OD",
        "OD",
        "s",
        600,
        "2026-03-01T08:00:00",
        first["job_execution_id"],
    ]);
    assert_eq!(lab.query(first_row).await, [expected]);
    let value = "SELECT y FROM instrument_curve c JOIN instrument_measurement m \
        ON m.id = c.instrument_measurement_id WHERE well = 'A1' AND \"order\" = 0";
    assert_eq!(lab.query(value).await, [json!(0.119)]);

    // The document is a file of the execution.
    let files = format!(
        "/files?job_execution_id={}",
        first["job_execution_id"].as_str().unwrap()
    );
    let files = lab.lab.call(Method::GET, &files, Value::Null).await;
    assert_eq!(files[0]["file_name"], "plate 1.txt.asm.json", "{files}");

    // The same content again changes nothing.
    let begun = Instant::now();
    let (_, again, log) = lab.uploaded("copy.txt", DEMO.into()).await;
    eprintln!("a later file: {:?}", begun.elapsed());
    assert_eq!(again["status"], "completed", "{again} {log}");
    assert!(
        log.contains("0 measurements written, 24 were there already"),
        "{log}"
    );
    let path = format!("/files/{}/read", file.as_str().unwrap());
    let by_hand = lab.post(&path, json!({"reader": "AGILENT_GEN5"})).await;
    let by_hand = lab.ended(&by_hand["job_execution_id"]).await;
    assert_eq!(by_hand["status"], "completed", "{by_hand}");
    assert_eq!(
        (lab.number(MEASUREMENTS).await, lab.number(POINTS).await),
        (24, 2_400)
    );

    let begun = Instant::now();
    let dry = lab.post(&path, json!({"dry_run": true})).await;
    eprintln!("a dry run: {:?}", begun.elapsed());
    let counts = [
        &dry["reader"],
        &dry["candidates"][0],
        &dry["measurements"],
        &dry["curves"],
    ];
    assert_eq!(
        counts,
        [
            &json!("AGILENT_GEN5"),
            &json!("AGILENT_GEN5"),
            &json!(24),
            &json!(24)
        ]
    );
    assert_eq!(dry["rows"].as_array().unwrap().len(), 20);
    assert!(dry.get("result").is_none());

    // A file that no reader takes, and a reader that does not take the file.
    let (_, failed, _) = lab.uploaded("notes.txt", b"Dear diary".to_vec()).await;
    assert_eq!(failed["status"], "failed");
    let message = failed["error_message"].as_str().unwrap();
    assert!(
        message.contains("no reader takes this file") && message.contains("AGILENT_GEN5: "),
        "{message}"
    );
    let dry = lab
        .post(
            &path,
            json!({"dry_run": true, "reader": "MOLDEV_SOFTMAX_PRO"}),
        )
        .await;
    assert_eq!(
        (&dry["reader"], &dry["measurements"]),
        (&Value::Null, &json!(0))
    );
    let unknown = json!({"reader": "GEN5"});
    let (status, text) = lab.lab.ask(KEY, Method::POST, &path, unknown).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{text}");

    two_readers(&lab).await;
    other_files(&lab).await;

    // What the first execution wrote is undone as a whole.
    let revert = format!(
        "/job-executions/{}/revert",
        first["job_execution_id"].as_str().unwrap()
    );
    let reverted = lab.post(&revert, Value::Null).await;
    assert_eq!(
        (&reverted["deleted_count"], &reverted["raws_deleted_count"]),
        (&json!(24), &json!(2_400))
    );
    let demo = "SELECT count(*) FROM instrument_measurement WHERE device = 'Simulation 0'";
    assert_eq!(lab.number(demo).await, 0);
    let executions = json!({"instrument_id": lab.instrument, "only": "failed"});
    let jobs = lab.lab.call(Method::GET, "/jobs", Value::Null).await;
    let backfill = format!("/jobs/{}/backfill", jobs[0]["id"].as_str().unwrap());
    let backfill = lab.post(&backfill, executions).await;
    assert!(backfill["count"].as_u64().unwrap() >= 1, "{backfill}");
}

/// A file that two readers take, until one is chosen.
#[expect(clippy::print_stderr, reason = "says what is not tested")]
async fn two_readers(lab: &Readings) {
    let Some(luminex) = real_file("luminex_xponent.csv") else {
        eprintln!("NOT TESTED: shared/data is not here, which has a file that two readers take");
        return;
    };
    let (file, failed, _) = lab.uploaded("beads.csv", luminex).await;
    assert_eq!(failed["status"], "failed", "{failed}");
    let message = failed["error_message"].as_str().unwrap();
    assert!(
        message.contains("LUMINEX_INTELLIFLEX, LUMINEX_XPONENT; choose one"),
        "{message}"
    );
    let path = format!("/files/{}/read", file.as_str().unwrap());
    let chosen = lab.post(&path, json!({"reader": "LUMINEX_XPONENT"})).await;
    let chosen = lab.ended(&chosen["job_execution_id"]).await;
    assert_eq!(chosen["status"], "completed", "{chosen}");
    let beads = "SELECT count(*) FROM instrument_measurement WHERE metadata ->> 'reader' = 'LUMINEX_XPONENT'";
    assert_eq!(lab.number(beads).await, 28);
}

/// The other real files.
#[expect(clippy::print_stderr, reason = "measured figures")]
async fn other_files(lab: &Readings) {
    for (name, measurements) in [
        ("gen5_kinetic_growth_curve.txt", 72),
        ("nanodrop_8000.txt", 117),
        ("quantstudio_qpcr.txt", 600),
        ("envision_fluorescence.csv", 144),
        ("softmax_absorbance.txt", 858),
        ("vicell_xr.xlsx", 112),
    ] {
        let Some(content) = real_file(name) else {
            continue;
        };
        let begun = Instant::now();
        let (file, execution, log) = lab.uploaded(name, content).await;
        eprintln!("{name}: {:?}", begun.elapsed());
        assert_eq!(
            execution["status"], "completed",
            "{name}: {execution} {log}"
        );
        let rows = format!(
            "SELECT count(*) FROM instrument_measurement WHERE file_id = '{}'",
            file.as_str().unwrap()
        );
        assert_eq!(lab.number(&rows).await, measurements, "{name}: {log}");
    }
}
