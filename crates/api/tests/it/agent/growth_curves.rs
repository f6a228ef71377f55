//! A whole analysis: the doubling times of a plate, computed by a script of the model's and written.

use std::collections::BTreeMap;

use labdata_domain::people::scope::Scope::Read;
use labdata_test_llm::{Reply as Answer, Request};
use reqwest::Method;
use serde_json::{Value, json};

use super::lab::{AgentLab, CHATS, call};
use crate::server::send;

/// Signature of PNG images.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

/// Optical density of a well without cells.
const BLANK: f64 = 0.08;

/// Carrying capacities and doubling times in hours of the rows of the plate, as the header of the export
/// states them.
const ROWS: [(char, f64, f64); 4] = [
    ('A', 1.5, 0.75),
    ('B', 1.35, 1.0),
    ('C', 1.1, 1.5),
    ('D', 0.9, 2.25),
];

/// Code of the scripted model: a logistic curve for each well, and two figures.
const SNIPPET: &str = r#"
import json
import matplotlib.pyplot as plt
import numpy as np
import plotly.express as px
from scipy.optimize import curve_fit

curves, samples = inputs["curves"], inputs["samples"]
wells = dict(zip(samples["id"], samples["well"]))
blank = curves[curves["parent"].map(wells) == "D6"]["od600"].mean()

def logistic(t, capacity, rate, middle):
    return capacity / (1 + np.exp(-rate * (t - middle)))

figure, axes = plt.subplots()
times = {}
for parent, curve in curves.groupby("parent"):
    axes.plot(curve["time_h"], curve["od600"], label=wells[parent])
    if wells[parent] == "D6":
        continue
    curve = curve.dropna()
    od = (curve["od600"] - blank).to_numpy()
    # Cells grow exponentially, up to their capacity, after a lag.
    grown = od > max(0.01, 1.5 * od[:3].mean())
    fitted, _ = curve_fit(logistic, curve["time_h"][grown], od[grown], p0=[1, 0.7, 8],
                          bounds=([0.3, 0.1, 0], [3, 2, 40]))
    times[parent] = round(float(np.log(2) / fitted[1]), 4)
axes.set(xlabel="time in h", ylabel="OD at 600 nm", title="Plate P1")
print(json.dumps(times))
px.bar(x=[wells[parent] for parent in times], y=list(times.values()), title="Doubling times")
"#;

/// Hours of the reads, and the values of each well; none where the reader overflowed.
fn export() -> (Vec<f64>, BTreeMap<String, Vec<Option<f64>>>) {
    let lines = include_str!("../../../../../docs/demo/simulated_growth_curves.txt").lines();
    let mut lines = lines.skip_while(|line| !line.starts_with("Time\tT"));
    let names: Vec<&str> = lines.next().unwrap().split('\t').skip(2).collect();
    let mut hours = Vec::new();
    let mut wells: BTreeMap<String, Vec<Option<f64>>> = BTreeMap::new();
    // Then come reads that were planned and not taken.
    for line in lines.take_while(|line| line.matches('.').count() > 1) {
        let mut cells = line.split('\t');
        let time = cells.next().unwrap().split(':');
        let time: Vec<f64> = time.map(|part| part.parse().unwrap()).collect();
        hours.push(time[0] + time[1] / 60.0 + time[2] / 3600.0);
        for (name, cell) in names.iter().zip(cells.skip(1)) {
            let values = wells.entry((*name).to_owned()).or_default();
            values.push(cell.trim().parse().ok());
        }
    }
    (hours, wells)
}

/// The doubling time by another way than the model's: with the known capacity K, ln(y / (K - y)) of a
/// logistic curve is a straight line, whose slope is the growth rate.
fn doubling_time(hours: &[f64], values: &[Option<f64>], capacity: f64) -> f64 {
    let points = hours.iter().zip(values).filter_map(|(hour, value)| {
        let share = ((*value)? - BLANK) / capacity;
        Some((*hour, share))
    });
    let points: Vec<(f64, f64)> = points
        .filter(|(_, share)| (0.05..0.8).contains(share))
        .map(|(hour, share)| (hour, (share / (1.0 - share)).ln()))
        .collect();
    let count = f64::from(u32::try_from(points.len()).unwrap());
    let mean = |part: fn(&(f64, f64)) -> f64| points.iter().map(part).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let above: f64 = points
        .iter()
        .map(|point| (point.0 - x) * (point.1 - y))
        .sum();
    let below: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    std::f64::consts::LN_2 * below / above
}

/// Writes the demo's measurement as plate P1.
async fn measured(lab: &AgentLab) {
    let sample = json!({ "name": "sample", "data_type": "string", "references": "sample",
        "is_nullable": false });
    let definitions = [
        (
            "sample",
            json!({ "semantic_category": "curated", "columns": [
            { "name": "name", "data_type": "string", "is_nullable": false, "is_unique": true },
            { "name": "well", "data_type": "string", "is_nullable": false },
            { "name": "plate", "data_type": "string", "references": "carrier" },
        ] }),
        ),
        (
            "growth_result",
            json!({ "semantic_category": "curated", "columns": [
            sample.clone(),
            { "name": "doubling_time_h", "data_type": "float" },
        ] }),
        ),
        (
            "growth_curve",
            json!({ "semantic_category": "raw", "columns": [
            sample,
            { "name": "order", "data_type": "integer", "is_nullable": false },
            { "name": "time_h", "data_type": "float", "is_nullable": false },
            { "name": "od600", "data_type": "float" },
        ] }),
        ),
    ];
    for (name, definition) in definitions {
        lab.on.define(name, definition).await;
    }
    let (hours, wells) = export();
    let samples = wells.keys().map(|well| {
        json!({ "_ref": well, "name": format!("P1 {well}"), "well": well, "plate": "@plate" })
    });
    let series = wells.iter().map(|(well, values)| {
        json!({ "table": "growth_curve", "parent": format!("@{well}"),
            "columns": { "time_h": hours, "od600": values } })
    });
    let plate = json!([{ "_ref": "plate", "name": "P1", "carrier_type": "plate" }]);
    let body = json!({
        "tables": [
            { "table": "carrier", "rows": plate },
            { "table": "sample", "rows": samples.collect::<Vec<_>>() },
        ],
        "series": series.collect::<Vec<_>>(),
    });
    lab.on.write(body).await.json(200);
}

/// Outputs of the tools that the model has called so far.
fn outputs(request: &Request) -> Vec<Value> {
    let messages = request.body["messages"].as_array().unwrap().iter();
    let outputs = messages.filter(|message| message["role"] == "tool");
    outputs
        .map(|message| {
            let text = message["content"].as_str().unwrap();
            serde_json::from_str(text).unwrap_or_else(|_| panic!("no JSON: {text}"))
        })
        .collect()
}

/// The next step of the model, from what the former ones returned.
fn next_step(request: &Request) -> Answer {
    let outputs = outputs(request);
    let samples = "SELECT s.id, s.well FROM sample s JOIN carrier c ON c.id = s.plate_id \
        WHERE c.name = $1 ORDER BY s.well";
    let rows = || {
        let printed = outputs[2]["stdout"].as_str().unwrap();
        let times: BTreeMap<String, f64> = serde_json::from_str(printed).unwrap();
        let rows = times.into_iter();
        rows.map(|(sample, time)| json!({ "sample": sample, "doubling_time_h": time }))
            .collect::<Vec<_>>()
    };
    let write = |dry_run: bool| json!({ "tables": [{ "table": "growth_result", "rows": rows() }], "dry_run": dry_run });
    match outputs.len() {
        0 => Answer::call(
            "1",
            "get_schema",
            &json!({ "tables": ["sample", "growth_curve"] }),
        ),
        1 => Answer::call(
            "2",
            "query_data",
            &json!({ "query": samples, "params": ["P1"] }),
        ),
        2 => {
            let data = outputs[1]["data"].as_array().unwrap().iter();
            let parents: Vec<&Value> = data.map(|row| &row[0]).collect();
            let inputs = json!([
                { "name": "samples", "query": samples, "params": ["P1"] },
                { "name": "curves", "series": { "table": "growth_curve", "parents": parents } },
            ]);
            Answer::call(
                "3",
                "run_python",
                &json!({ "code": SNIPPET, "inputs": inputs }),
            )
        }
        3 => Answer::call("4", "write_data", &write(true)),
        4 => Answer::call("5", "write_data", &write(false)),
        _ => Answer::text("The doubling times of the 23 cultures are in growth_result."),
    }
}

#[tokio::test]
async fn the_doubling_times_of_a_plate_are_plotted_written_and_reverted() {
    let lab = AgentLab::with_python().await;
    measured(&lab).await;
    lab.provider.otherwise(next_step);
    let before = executions(&lab).await;
    let prompt = "plot the growth curves of plate P1 and write the doubling times";
    let body = json!({ "prompt": prompt, "save": true });
    let result = super::lab::run(&lab.client, body).await.json(200);
    let calls = result["tool_calls"].as_array().unwrap();
    for call in calls {
        assert_eq!(call["is_error"], false, "{call}");
    }
    assert_eq!(calls.len(), 5);

    // The numbers.
    let (hours, wells) = export();
    let samples = lab.on.rows("sample", json!({})).await;
    let name = |id: &Value| {
        let sample = samples.iter().find(|sample| &sample["id"] == id);
        sample.unwrap()["well"].as_str().unwrap().to_owned()
    };
    let written = lab.on.rows("growth_result", json!({})).await;
    assert_eq!(written.len(), 23);
    for row in &written {
        let (well, time) = (
            name(&row["sample"]),
            row["doubling_time_h"].as_f64().unwrap(),
        );
        let (_, capacity, stated) = ROWS.into_iter().find(|of| well.starts_with(of.0)).unwrap();
        let computed = doubling_time(&hours, &wells[&well], capacity);
        for expected in [stated, computed] {
            let error = (time / expected - 1.0).abs();
            assert!(error < 0.03, "{well}: {time} h instead of {expected} h");
        }
    }

    // The figures: an image and a figure of Plotly, both files of the chat.
    let chat = result["chat_id"].as_str().unwrap();
    let figures = calls[2]["output"]["figures"].as_array().unwrap();
    let types: Vec<&str> = figures
        .iter()
        .map(|figure| figure["media_type"].as_str().unwrap())
        .collect();
    assert_eq!(types, ["image/png", "application/vnd.plotly.v1+json"]);
    assert_eq!(figures[1]["figure"]["data"][0]["type"], "bar");
    let url = figures[0]["url"].as_str().unwrap();
    assert_eq!(
        url,
        format!(
            "{CHATS}/{chat}/files/{}",
            figures[0]["file_id"].as_str().unwrap()
        )
    );
    let image = lab.client.request(Method::GET, url).send().await.unwrap();
    assert_eq!(image.status(), 200);
    assert_eq!(image.headers()["content-type"], "image/png");
    assert_eq!(image.headers()["x-content-type-options"], "nosniff");
    assert_eq!(
        image.headers()["content-security-policy"],
        "default-src 'none'; sandbox"
    );
    let image = image.bytes().await.unwrap();
    assert!(
        image.starts_with(PNG) && image.len() > 10_000,
        "{}",
        image.len()
    );
    let plotly = send(
        lab.client
            .request(Method::GET, figures[1]["url"].as_str().unwrap()),
    )
    .await;
    assert_eq!(plotly.json(200), figures[1]["figure"]);
    let saved = call(&lab.client, Method::GET, &format!("{CHATS}/{chat}"))
        .await
        .json(200);
    let shown = &saved["messages"][3]["tool_calls"][0]["output"]["figures"][0];
    assert_eq!(shown, &figures[0]);

    // The model got names and sizes, and no image.
    for request in lab.provider.requests() {
        assert!(!request.body.to_string().contains("iVBORw0KGgo"));
    }

    // Others get nothing.
    assert_only_its_user_reads(&lab, chat, &figures[0]).await;

    // One execution, reverted by one call.
    let after = executions(&lab).await;
    assert_eq!(after.len(), before.len() + 1);
    lab.on.revert(&calls[4]["output"]).await;
    assert_eq!(lab.on.rows("growth_result", json!({})).await.len(), 0);

    // The files go with the chat.
    let path = format!("{CHATS}/{chat}");
    assert_eq!(call(&lab.client, Method::DELETE, &path).await.status, 204);
    assert_eq!(
        call(&lab.client, Method::GET, url).await.detail(404),
        "file not found"
    );
}

#[tokio::test]
async fn a_run_that_is_not_saved_has_its_image_in_the_answer() {
    let lab = AgentLab::with_python().await;
    let code = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nprint('plotted')";
    let reader = lab.on.server.client(&[Read]).await;
    lab.will_call("run_python", &json!({ "code": code }), "Done.");
    let result = super::lab::run(&reader, json!({ "prompt": "Plot." }))
        .await
        .json(200);
    let output = &result["tool_calls"][0]["output"];
    assert_eq!(output["stdout"], "plotted\n", "{result}");
    let figure = &output["figures"][0];
    let image = figure["base64"].as_str();
    assert!(
        image.is_some_and(|image| image.starts_with("iVBORw0KGgo")),
        "{result}"
    );
    assert_eq!(figure.get("file_id"), None);
}

/// Checks that a figure of a chat of the lab's client is found in that chat, by that client alone.
async fn assert_only_its_user_reads(lab: &AgentLab, chat: &str, figure: &Value) {
    let [url, id] = ["url", "file_id"].map(|field| figure[field].as_str().unwrap());
    for other in [
        lab.on.server.stranger().await,
        lab.on.server.colleague().await,
    ] {
        let reply = call(&other, Method::GET, url).await;
        assert_eq!(reply.detail(404), "file not found");
    }
    for (path, detail) in [
        (format!("{CHATS}/{chat}/files/x"), "file not found"),
        (format!("{CHATS}/{id}/files/{id}"), "file not found"),
        (format!("{CHATS}/x/files/{id}"), "chat not found"),
    ] {
        let reply = call(&lab.client, Method::GET, &path).await;
        assert_eq!(reply.detail(404), detail, "{path}");
    }
    let head = call(&lab.client, Method::HEAD, url).await;
    assert_eq!(head.status, 200);
    let size = figure["size"].to_string();
    assert_eq!(head.header("content-length"), Some(&*size));
}

/// Ids of all executions.
async fn executions(lab: &AgentLab) -> Vec<Value> {
    let list = lab.client.get("/api/v1/job-executions").await.json(200);
    let list = list.as_array().unwrap().iter();
    list.map(|execution| execution["id"].clone()).collect()
}
