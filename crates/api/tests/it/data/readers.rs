//! pandas, polars and pyarrow read the results that the API writes.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use labdata_postgres::DatabaseSettings;
use labdata_sandbox::{Python, Uv};

use crate::on_postgres::OnPostgres;

/// Returns a Python with the readers, which the first call installs below the target directory.
fn python() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let environment = target.join("readers-venv");
    let created = Python::find(None).and_then(|python| {
        Uv::find(None, &target.join("tools"), &python)?
            .create_environment(&environment, include_str!("readers-requirements.txt"))
    });
    created.expect("this test needs pandas, polars and pyarrow, which uv installs");
    environment.join("bin/python")
}

#[tokio::test]
async fn pandas_polars_and_pyarrow_read_what_was_written() {
    let lab = OnPostgres::empty(DatabaseSettings::default()).await;
    let (base, authorization) = lab.client.as_others_need_it();
    let reading = tokio::task::spawn_blocking(move || {
        Command::new(python())
            .arg(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/tests/it/data/readers.py"
            ))
            .args([base, authorization])
            .output()
    });
    let output = reading.await.unwrap().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let report = String::from_utf8_lossy(&output.stdout);
    assert_eq!(report.trim(), "32 tables were read as they were written");
}
