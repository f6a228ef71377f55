//! Jobs and executions.

use serde_json::json;

use crate::{
    connection::Request,
    report::{Report, timed},
    requests::{READS, WRITES, each, get, ids, many, patch, post, same},
    tables::rows,
};

pub(crate) async fn measure(report: &mut Report) {
    let runs = jobs(report).await;
    executions(report, &runs).await;
}

/// Measures jobs; returns queued executions.
async fn jobs(report: &mut Report) -> Vec<String> {
    let job = |n: usize| {
        post(
            "/jobs",
            &json!({ "name": format!("job {n}"), "code": "print('done')" }),
        )
    };
    let jobs = ids(
        &report.run("POST /jobs", "", many(WRITES, job)).await,
        "/id",
    );
    report
        .run(
            "GET /jobs",
            "50 of 320",
            same(WRITES, &get("/jobs?limit=50")),
        )
        .await;
    report
        .run(
            "GET /jobs/{job_id}",
            "",
            each(&jobs, |id| get(format!("/jobs/{id}"))),
        )
        .await;
    let change = |id: &str| {
        patch(
            format!("/jobs/{id}"),
            &json!({ "code": "print('changed')" }),
        )
    };
    report
        .run("PATCH /jobs/{job_id}", "new code", each(&jobs, change))
        .await;
    report
        .run(
            "GET /jobs/{job_id}/versions",
            "",
            each(&jobs, |id| get(format!("/jobs/{id}/versions"))),
        )
        .await;
    let version = |id: &str| get(format!("/jobs/{id}/versions/2"));
    report
        .run(
            "GET /jobs/{job_id}/versions/{version_number}",
            "",
            each(&jobs, version),
        )
        .await;
    let preview = get("/triggers/preview?cron=30+6+*+*+1-5&timezone=Europe/Berlin");
    report
        .run("GET /triggers/preview", "", same(READS, &preview))
        .await;
    let run = |id: &str| post(format!("/jobs/{id}/run"), &json!({}));
    ids(
        &report
            .run("POST /jobs/{job_id}/run", "queued", each(&jobs, run))
            .await,
        "/job_execution_id",
    )
}

async fn executions(report: &mut Report, runs: &[String]) {
    let open = post("/job-executions", &json!({ "job_name": "bench" }));
    let opened = report
        .run("POST /job-executions", "", same(WRITES, &open))
        .await;
    let opened = ids(&opened, "/job_execution_id");
    let one = "/job-executions/{execution_id}";
    report
        .run(
            "GET /job-executions",
            "50 of 3,000",
            same(READS, &get("/job-executions")),
        )
        .await;
    report
        .run(
            &format!("GET {one}"),
            "",
            each(&opened, |id| get(format!("/job-executions/{id}"))),
        )
        .await;
    for id in &opened {
        let write = json!({ "job_execution_id": id, "tables": [{ "table": "sample", "rows": rows(id, 0, 10) }] });
        timed(&report.base, 1, vec![post("/data/write", &write)]).await;
    }
    let changes = |id: &str| get(format!("/job-executions/{id}/changes"));
    report
        .run(
            &format!("GET {one}/changes"),
            "10 rows",
            each(&opened, changes),
        )
        .await;
    let rows_of = |id: &str| get(format!("/job-executions/{id}/changes/sample"));
    report
        .run(
            &format!("GET {one}/changes/{{table}}"),
            "10 rows",
            each(&opened, rows_of),
        )
        .await;
    let close = |id: &str| {
        patch(
            format!("/job-executions/{id}"),
            &json!({ "status": "completed" }),
        )
    };
    report
        .run(&format!("PATCH {one}"), "", each(&opened, close))
        .await;
    let revert = |id: &str| Request::new("POST", format!("/job-executions/{id}/revert"));
    report
        .run(
            &format!("POST {one}/revert"),
            "10 rows",
            each(&opened, revert),
        )
        .await;
    report
        .run(
            &format!("GET {one}/logs"),
            "empty",
            each(runs, |id| get(format!("/job-executions/{id}/logs"))),
        )
        .await;
    let cancel = |id: &str| Request::new("POST", format!("/job-executions/{id}/cancel"));
    report
        .run(&format!("POST {one}/cancel"), "queued", each(runs, cancel))
        .await;
}
