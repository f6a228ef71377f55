//! Files, their images and the trash.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::{
    connection::{Request, Response},
    report::{Report, timed},
    requests::{FEW, READS, WRITES, delete, each, get, ids, many, patch, post, same},
};

/// PNG of one white pixel.
const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAAC0lEQVR42mP4DwQACfsD/Wj6HMwAAAAASUVORK5CYII=";

pub(crate) async fn images(report: &mut Report) {
    let instrument = post("/instruments", &json!({ "name": "Microscope" }));
    let (_, responses) = timed(&report.base, 1, vec![instrument]).await;
    let instrument = responses[0].text("/id");
    let upload = Request::new("POST", "/files").form(
        &[("instrument_id", &instrument)],
        "pixel.png",
        &STANDARD.decode(PIXEL).unwrap(),
    );
    let (_, responses) = timed(&report.base, 1, vec![upload]).await;
    let image = format!("/images/{}/annotations", responses[0].text("/file_id"));
    let path = "/images/{file_id}/annotations";
    let mask = json!({ "mask": PIXEL, "label": "cell" });
    let save = post(&image, &json!({ "annotations": [mask] }));
    let saved = report
        .run(&format!("POST {path}"), "1 pixel", same(WRITES, &save))
        .await;
    let saved = ids(&saved, "/0/id");
    report
        .run(&format!("GET {path}"), "320 masks", same(FEW, &get(&image)))
        .await;
    let one = "/images/{file_id}/annotations/{annotation_id}";
    let vetted = json!({ "is_human_vetted": true });
    let vet = |id: &str| patch(format!("{image}/{id}"), &vetted);
    report
        .run(&format!("PATCH {one}"), "", each(&saved, vet))
        .await;
    let remove = |id: &str| delete(format!("{image}/{id}"));
    report
        .run(&format!("DELETE {one}"), "", each(&saved, remove))
        .await;
}

pub(crate) async fn files(report: &mut Report) {
    let instrument = post("/instruments", &json!({ "name": "Files" }));
    let (_, responses) = timed(&report.base, 1, vec![instrument]).await;
    let instrument = responses[0].text("/id");
    let bytes = vec![b'x'; 10_000];
    let upload = |n: usize| {
        Request::new("POST", "/files").form(
            &[("instrument_id", &instrument)],
            &format!("plate {n}.csv"),
            &bytes,
        )
    };
    let stored = report
        .run("POST /files", "10 kB", many(WRITES, upload))
        .await;
    let stored = ids(&stored, "/file_id");
    let url = |n: usize| {
        post(
            "/files/upload-url",
            &json!({ "file_name": format!("signed {n}.csv"), "instrument_id": instrument, "content_type": "text/csv" }),
        )
    };
    let signed = report
        .run("POST /files/upload-url", "", many(WRITES, url))
        .await;
    let put = |response: &Response| {
        let body: Value = serde_json::from_slice(&response.body).unwrap();
        let url = response.text("/upload_url");
        let path = url.trim_start_matches(&report.base).to_owned();
        let headers = body["headers"].as_object().unwrap().iter();
        headers
            .fold(
                Request::to("PUT", path).without_key(),
                |request, (name, value)| request.header(name, value.as_str().unwrap()),
            )
            .body(bytes.clone())
    };
    let puts: Vec<Request> = signed.iter().map(put).collect();
    report.run("PUT the signed URL", "10 kB", puts).await;
    let confirm = |id: &str| Request::new("POST", format!("/files/{id}/confirm-upload"));
    report
        .run(
            "POST /files/{file_id}/confirm-upload",
            "",
            each(&ids(&signed, "/file_id"), confirm),
        )
        .await;
    report
        .run("GET /files", "50 of 640", same(READS, &get("/files")))
        .await;
    report
        .run(
            "GET /files/{file_id}",
            "",
            each(&stored, |id| get(format!("/files/{id}"))),
        )
        .await;
    report
        .run("GET /files/usage", "", same(READS, &get("/files/usage")))
        .await;
    backfill(report).await;
    let content = |id: &str| get(format!("/files/{id}/content"));
    report
        .run("GET /files/{file_id}/content", "", each(&stored, content))
        .await;
    report
        .run(
            "DELETE /files/{file_id}",
            "",
            each(&stored, |id| delete(format!("/files/{id}"))),
        )
        .await;
    trash(report).await;
}

/// The files that were deleted.
async fn trash(report: &mut Report) {
    let listed = report
        .run(
            "GET /trash",
            "200 of 320",
            same(READS, &get("/trash?limit=200")),
        )
        .await;
    let all = listed.first().map(|response| &response.body);
    let all: Vec<Value> = serde_json::from_slice(all.unwrap()).unwrap();
    let files = all.iter().filter(|entry| entry["kind"] == "file");
    let files: Vec<String> = files
        .map(|entry| entry["id"].as_str().unwrap().to_owned())
        .collect();
    let (restored, purged) = files.split_at(files.len() / 2);
    report
        .run(
            "POST /trash/{id}/restore",
            "files",
            each(restored, |id| {
                post(format!("/trash/{id}/restore"), &Value::Null)
            }),
        )
        .await;
    report
        .run(
            "DELETE /trash/{id}",
            "files",
            each(purged, |id| delete(format!("/trash/{id}"))),
        )
        .await;
}

/// Measures runs of a job for all files.
async fn backfill(report: &mut Report) {
    let job = json!({ "name": "backfilled", "code": "print('done')", "trigger_enabled": true,
        "trigger_category": "file_uploaded" });
    let (_, responses) = timed(&report.base, 1, vec![post("/jobs", &job)]).await;
    let all = post(
        format!("/jobs/{}/backfill", responses[0].text("/id")),
        &json!({}),
    );
    report
        .run_at(
            2,
            "POST /jobs/{job_id}/backfill",
            "640 files",
            same(4, &all),
        )
        .await;
}
