//! The story, step by step.

use std::path::Path;

use anyhow::{Context, bail, ensure};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    client::Client,
    gen5::KineticExport,
    model,
    platform::{self, RunOutcome},
    report,
    steps::{Say, Steps},
    writes,
};

/// Name of the plate that the story writes.
const PLATE: &str = "Plate 1, parsed in the lab";

/// Runs the main job on the server at `url` with an instrument file, and checks every response.
/// Passes each line of the story to `say`.
///
/// # Errors
/// The first step that fails.
pub async fn tell(
    url: &str,
    key: &str,
    file_name: &str,
    file: &[u8],
    say: Say<'_>,
) -> anyhow::Result<()> {
    let client = Client::new(url, key)?;
    let mut steps = Steps::begin(say);

    let instrument = create_instrument(&client)
        .await
        .context("creating the instrument")?;
    steps.done("create an instrument", &instrument);
    for (name, definition) in writes::definitions() {
        let path = format!("/api/v1/tables/{name}");
        let table = client.send(Method::PUT, &path, &definition).await?;
        let columns = table
            .get("columns")
            .and_then(Value::as_array)
            .map_or(0, Vec::len);
        steps.done(
            &format!("define the table {name}"),
            &format!("{columns} columns"),
        );
    }
    let execution = open(&client, "Import growth curves").await?;
    steps.done("open an execution", &execution);

    let uploaded = client
        .upload(
            file_name,
            file.to_vec(),
            &[
                ("job_execution_id", &execution),
                ("instrument_id", &instrument),
            ],
        )
        .await?;
    let file_id = text(&uploaded, "file_id")?;
    steps.done(
        "upload the instrument file",
        &format!("{file_name}, {} bytes", file.len()),
    );
    let content = client
        .get(&format!("/api/v1/files/{file_id}/content"))
        .await?;
    let stored = client.download(&text(&content, "download_url")?).await?;
    ensure!(
        stored == file,
        "the downloaded bytes differ from the uploaded ones"
    );
    steps.done("download it by its signed URL", "the bytes are the same");
    let export = KineticExport::parse(&stored).with_context(|| file_name.to_owned())?;
    let (wells, reads) = (export.wells.len(), export.hours.len());
    steps.done("parse it", &format!("{wells} wells, {reads} reads"));

    let write = writes::import(&export, PLATE, &execution);
    write_all(&client, &export, &write, true)
        .await
        .context("dry run")?;
    steps.done("try the write (dry_run)", "no problems, nothing written");
    write_all(&client, &export, &write, false).await?;
    let points = wells * reads;
    steps.done(
        "write it in one transaction",
        &format!("{} rows, {points} points", 1 + 2 * wells),
    );

    let pages = check_points(&client, &export, PLATE, &execution)
        .await
        .context("reading the curves back")?;
    steps.done(
        "read the curves back",
        &format!("{points} points on {pages} pages, all equal"),
    );
    check_results(&client, &export)
        .await
        .context("reading the results back")?;
    steps.done("read the results back", &format!("{wells} rows, all equal"));
    close(&client, &execution, "completed").await?;
    steps.done("close the execution", "completed");

    let wrong = open(&client, "A script with a mistake").await?;
    client
        .post("/api/v1/data/write", &writes::mistake(&wrong))
        .await?;
    steps.done("write something wrong", "1 row, 3 points");
    revert(&client, &wrong).await.context("reverting")?;
    close(&client, &wrong, "failed").await?;
    let (rows, _) = client.read_all("sample", &json!({})).await?;
    ensure!(
        rows.len() == wells,
        "{} samples are left of {wells}",
        rows.len()
    );
    steps.done(
        "revert that execution",
        "1 row and 3 points gone, the rest untouched",
    );

    on_platform(&client, &export, (file_name, file), &mut steps).await?;
    model::train_and_predict(&client, &export, PLATE, &mut steps)
        .await
        .context("a model of the curves")?;
    steps.say(&format!("\n{}\n", report::table(&export)));
    Ok(())
}

/// Uploads the same file again, for a job on the platform to parse.
async fn on_platform(
    client: &Client,
    export: &KineticExport,
    (file_name, file): (&str, &[u8]),
    steps: &mut Steps<'_>,
) -> anyhow::Result<()> {
    let (instrument, job) = platform::prepare(client)
        .await
        .context("creating a job for an instrument")?;
    steps.done("give an instrument a job", "it runs for each upload");
    let uploaded = client
        .upload(file_name, file.to_vec(), &[("instrument_id", &instrument)])
        .await?;
    let file_id = text(&uploaded, "file_id")?;
    steps.done(
        "upload the file to that instrument",
        "nothing else is asked for",
    );
    match platform::triggered_run(client, &job, &file_id).await? {
        RunOutcome::Completed(run) => {
            steps.done("the job parses it on the platform", &run.last_line);
            let plate = Path::new(file_name).file_stem().unwrap_or_default();
            check_points(client, export, &plate.to_string_lossy(), &run.execution)
                .await
                .context("reading back what the job wrote")?;
            let points = export.wells.len() * export.hours.len();
            let result = format!("{points} points of its execution, all equal");
            steps.done("read back what it wrote", &result);
        }
        RunOutcome::Unsupported(why) => steps.say(&format!(
            "     No job can run on this machine, so this part of the story is left out:\n     \
             {why}"
        )),
    }
    Ok(())
}

async fn create_instrument(client: &Client) -> anyhow::Result<String> {
    let body = json!({"name": "Plate reader", "instrument_type": "plate_reader"});
    text(&client.post("/api/v1/instruments", &body).await?, "id")
}

async fn open(client: &Client, job: &str) -> anyhow::Result<String> {
    let body = json!({"job_name": job, "timeout_minutes": 60});
    let execution = client.post("/api/v1/job-executions", &body).await?;
    ensure!(
        text(&execution, "status")? == "running",
        "the execution does not run: {execution}"
    );
    text(&execution, "job_execution_id")
}

async fn close(client: &Client, execution: &str, status: &str) -> anyhow::Result<()> {
    let path = format!("/api/v1/job-executions/{execution}");
    let closed = client
        .send(Method::PATCH, &path, &json!({"status": status}))
        .await?;
    ensure!(
        text(&closed, "status")? == status,
        "the execution was not closed: {closed}"
    );
    Ok(())
}

async fn revert(client: &Client, execution: &str) -> anyhow::Result<()> {
    let path = format!("/api/v1/job-executions/{execution}/revert");
    let reverted = client.post(&path, &Value::Null).await?;
    ensure!(
        number(&reverted, "deleted_count")? == 1,
        "not one row was deleted: {reverted}"
    );
    ensure!(
        number(&reverted, "raws_deleted_count")? == 3,
        "not three points: {reverted}"
    );
    Ok(())
}

/// Sends the write and checks the counts of the response.
async fn write_all(
    client: &Client,
    export: &KineticExport,
    write: &Value,
    dry_run: bool,
) -> anyhow::Result<()> {
    let mut body = write.clone();
    if let Some(fields) = body.as_object_mut() {
        fields.insert("dry_run".to_owned(), dry_run.into());
    }
    let response = client.post("/api/v1/data/write", &body).await?;
    let created: u64 = items(&response, "tables")?
        .iter()
        .map(|table| number(table, "created"))
        .sum::<Result<_, _>>()?;
    let points: u64 = items(&response, "series")?
        .iter()
        .map(|series| number(series, "points_written"))
        .sum::<Result<_, _>>()?;
    let (wells, reads) = (
        u64::try_from(export.wells.len())?,
        u64::try_from(export.hours.len())?,
    );
    ensure!(created == 1 + 2 * wells, "{created} rows were created");
    ensure!(points == wells * reads, "{points} points were written");
    ensure!(
        dry_run == field(&response, "job_execution_id").is_null(),
        "dry_run is {dry_run}: {response}"
    );
    Ok(())
}

/// Reads every point of a plate, compares it with the file's and checks that `execution` wrote it;
/// returns the number of pages.
async fn check_points(
    client: &Client,
    export: &KineticExport,
    plate: &str,
    execution: &str,
) -> anyhow::Result<usize> {
    let filters = json!({"plate__name": plate});
    let (samples, _) = client.read_all("sample", &filters).await?;
    ensure!(
        samples
            .iter()
            .all(|sample| field(sample, "created_by_execution_id") == execution),
        "there are samples of {plate} that {execution} did not write"
    );
    let ids: Vec<&Value> = samples.iter().map(|sample| field(sample, "id")).collect();
    let filters = json!({"sample__in": ids});
    let (points, pages) = client.read_all("growth_curve", &filters).await?;
    ensure!(
        samples.len() == export.wells.len(),
        "{} samples",
        samples.len()
    );
    ensure!(
        points.len() == export.wells.len() * export.hours.len(),
        "{} points",
        points.len()
    );
    for well in &export.wells {
        let sample = samples
            .iter()
            .find(|sample| field(sample, "well").as_str() == Some(&well.name))
            .with_context(|| format!("no sample of the well {}", well.name))?;
        let mut curve: Vec<&Value> = points
            .iter()
            .filter(|point| field(point, "sample") == field(sample, "id"))
            .collect();
        curve.sort_by_key(|point| field(point, "order").as_u64());
        ensure!(
            curve.len() == export.hours.len(),
            "{} has {} points",
            well.name,
            curve.len()
        );
        let expected = export.hours.iter().zip(&well.values).zip(0_u64..);
        for (point, ((hour, value), order)) in curve.into_iter().zip(expected) {
            let same = field(point, "order").as_u64() == Some(order)
                && same(field(point, "time_h").as_f64(), Some(*hour))
                && same(field(point, "od600").as_f64(), *value);
            ensure!(
                same,
                "{} reads back {point} for {hour} h, {value:?}",
                well.name
            );
        }
    }
    Ok(pages)
}

async fn check_results(client: &Client, export: &KineticExport) -> anyhow::Result<()> {
    for well in &export.wells {
        let filters = json!({"sample__well": well.name});
        let (rows, _) = client.read_all("growth_result", &filters).await?;
        let [row] = rows.as_slice() else {
            bail!("{} results of {}", rows.len(), well.name)
        };
        let growth = crate::growth::Growth::of(well, &export.hours);
        let same = same(field(row, "start_od").as_f64(), growth.start)
            && same(field(row, "max_od").as_f64(), growth.max)
            && same(field(row, "max_od_per_h").as_f64(), growth.max_rate);
        ensure!(same, "{} reads back {row} for {growth:?}", well.name);
    }
    Ok(())
}

/// Compares two values bit for bit.
fn same(left: Option<f64>, right: Option<f64>) -> bool {
    left.map(f64::to_bits) == right.map(f64::to_bits)
}

fn text(value: &Value, field: &str) -> anyhow::Result<String> {
    let text = value.get(field).and_then(Value::as_str);
    Ok(text
        .with_context(|| format!("no {field} in {value}"))?
        .to_owned())
}

fn field<'a>(value: &'a Value, name: &str) -> &'a Value {
    value.get(name).unwrap_or(&Value::Null)
}

fn number(value: &Value, field: &str) -> anyhow::Result<u64> {
    value
        .get(field)
        .and_then(Value::as_u64)
        .with_context(|| format!("no {field} in {value}"))
}

fn items<'a>(value: &'a Value, field: &str) -> anyhow::Result<&'a [Value]> {
    let items = value.get(field).and_then(Value::as_array);
    Ok(items.with_context(|| format!("no {field} in {value}"))?)
}
