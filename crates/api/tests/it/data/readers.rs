//! Results are read by those for whom they are meant: pandas, polars and pyarrow, as `.ci/venv`
//! installs them from `PyPI`.

use std::{
    env,
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

use labdata_postgres::DatabaseSettings;

use crate::on_postgres::OnPostgres;

/// The Python that has the readers, installed by the first test that needs it; none where `PyPI`
/// cannot be reached.
fn python() -> Option<PathBuf> {
    // <target>/<profile>/deps/<this>
    let own = env::current_exe().unwrap();
    let place = own.ancestors().nth(3).unwrap().join("readers-venv");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.ci/venv");
    let made = Command::new(script).arg("readers").arg(&place).status();
    let made = made.is_ok_and(|status| status.success());
    made.then(|| place.join("bin/python"))
}

/// Says it past the test harness, which keeps what tests that pass have said to itself.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

#[tokio::test]
async fn pandas_polars_and_pyarrow_read_what_was_written() {
    let lab = OnPostgres::empty(DatabaseSettings::default()).await;
    let (base, authorization) = lab.client.as_others_need_it();
    let reading = tokio::task::spawn_blocking(move || {
        let mut command = Command::new(python()?);
        command
            .arg(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/tests/it/data/readers.py"
            ))
            .args([base, authorization]);
        Some(command.output().unwrap())
    });
    let Some(output) = reading.await.unwrap() else {
        assert!(
            env::var_os("CI_READERS").is_none_or(|readers| readers != "required"),
            "`.ci/venv` could not install pandas, polars and pyarrow from PyPI"
        );
        say("SKIPPED: no pandas, polars and pyarrow, which `.ci/venv` could not install from PyPI");
        return;
    };
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    let told = String::from_utf8_lossy(&output.stdout);
    assert_eq!(told.trim(), "32 tables were read as they were written");
}
