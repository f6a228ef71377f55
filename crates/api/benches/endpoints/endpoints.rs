//! A request of each endpoint. What one endpoint creates, the next ones read, change and delete.

use serde_json::{Value, json};

use crate::{
    connection::Request,
    files, jobs,
    report::Report,
    requests::{FEW, READS, WRITES, delete, each, get, ids, many, patch, post, same},
    support::KEY,
    tables,
};

pub(crate) async fn measure(report: &mut Report) {
    operations(report).await;
    people(report).await;
    users_and_keys(report).await;
    groups(report).await;
    invitations(report).await;
    saved_views(report).await;
    instruments(report).await;
    webhooks(report).await;
    notifications(report).await;
    tables::measure(report).await;
    files::files(report).await;
    files::images(report).await;
    jobs::measure(report).await;
    rest(report).await;
}

async fn operations(report: &mut Report) {
    for path in ["/healthz", "/readyz", "/metrics"] {
        let request = Request::to("GET", path.to_owned());
        report
            .run(&format!("GET {path}"), "", same(READS, &request))
            .await;
    }
}

/// Number of sessions: a key keeps its newest hundred.
const SESSIONS: usize = 100;

async fn people(report: &mut Report) {
    report.run("GET /me", "", same(READS, &get("/me"))).await;
    let sign_in =
        post("/session", &json!({ "api_key": KEY })).header("sec-fetch-site", "same-origin");
    let responses = report
        .run("POST /session", "", same(SESSIONS, &sign_in))
        .await;
    let cookies: Vec<String> = responses
        .iter()
        .filter_map(|response| response.header("set-cookie")?.split(';').next())
        .map(str::to_owned)
        .collect();
    report
        .run(
            "GET /session",
            "",
            each(&cookies, |cookie| get("/session").session(cookie)),
        )
        .await;
    report
        .run(
            "DELETE /session",
            "",
            each(&cookies, |cookie| delete("/session").session(cookie)),
        )
        .await;
}

async fn users_and_keys(report: &mut Report) {
    let user = |n| {
        post(
            "/users",
            &json!({ "email": format!("user{n}@example.org") }),
        )
    };
    let users = ids(
        &report.run("POST /users", "", many(WRITES, user)).await,
        "/id",
    );
    report
        .run("GET /users", "50 of 321", same(READS, &get("/users")))
        .await;
    let disable = |id: &str| patch(format!("/users/{id}"), &json!({ "disabled": true }));
    report
        .run("PATCH /users/{user_id}", "", each(&users, disable))
        .await;
    report
        .run(
            "GET /audit",
            "the newest 50",
            same(READS, &get("/audit?limit=50")),
        )
        .await;

    let key = |n| {
        post(
            "/api-keys",
            &json!({ "name": format!("key {n}"), "scopes": ["read"] }),
        )
    };
    let keys = ids(
        &report.run("POST /api-keys", "", many(WRITES, key)).await,
        "/id",
    );
    report
        .run("GET /api-keys", "50 of 321", same(READS, &get("/api-keys")))
        .await;
    report
        .run(
            "DELETE /api-keys/{api_key_id}",
            "",
            each(&keys, |id| delete(format!("/api-keys/{id}"))),
        )
        .await;
}

async fn groups(report: &mut Report) {
    let group = |n| post("/groups", &json!({ "name": format!("Group {n}") }));
    let groups = ids(
        &report.run("POST /groups", "", many(FEW, group)).await,
        "/id",
    );
    report
        .run("GET /groups", "48", same(READS, &get("/groups")))
        .await;
    let change = |id: &str| patch(format!("/groups/{id}"), &json!({ "members": [] }));
    report
        .run("PATCH /groups/{group_id}", "", each(&groups, change))
        .await;
    let remove = |id: &str| delete(format!("/groups/{id}"));
    report
        .run("DELETE /groups/{group_id}", "", each(&groups, remove))
        .await;
}

async fn invitations(report: &mut Report) {
    let invitation = |n| {
        post(
            "/invitations",
            &json!({ "email": format!("guest{n}@example.org") }),
        )
    };
    let invitations = ids(
        &report
            .run("POST /invitations", "", many(FEW, invitation))
            .await,
        "/id",
    );
    report
        .run("GET /invitations", "48", same(READS, &get("/invitations")))
        .await;
    let remove = |id: &str| delete(format!("/invitations/{id}"));
    report
        .run(
            "DELETE /invitations/{invitation_id}",
            "",
            each(&invitations, remove),
        )
        .await;
}

async fn saved_views(report: &mut Report) {
    let view = |n| {
        let body = json!({ "name": format!("View {n}"), "address": "#/tables/sample" });
        post("/saved-views", &body)
    };
    let created = report.run("POST /saved-views", "", many(FEW, view)).await;
    let views = ids(&created, "/id");
    report
        .run("GET /saved-views", "48", same(READS, &get("/saved-views")))
        .await;
    let change = |id: &str| patch(format!("/saved-views/{id}"), &json!({ "is_pinned": true }));
    report
        .run(
            "PATCH /saved-views/{saved_view_id}",
            "",
            each(&views, change),
        )
        .await;
    let remove = |id: &str| delete(format!("/saved-views/{id}"));
    report
        .run(
            "DELETE /saved-views/{saved_view_id}",
            "",
            each(&views, remove),
        )
        .await;
}

async fn instruments(report: &mut Report) {
    let instrument = |n| post("/instruments", &json!({ "name": format!("Reader {n}") }));
    let instruments = ids(
        &report
            .run("POST /instruments", "", many(WRITES, instrument))
            .await,
        "/id",
    );
    let one = "/instruments/{instrument_id}";
    report
        .run(
            "GET /instruments",
            "50 of 320",
            same(READS, &get("/instruments")),
        )
        .await;
    report
        .run("GET /readers", "53", same(READS, &get("/readers")))
        .await;
    let named = get("/instruments/by-name?name=Reader+1");
    report
        .run("GET /instruments/by-name", "", same(READS, &named))
        .await;
    report
        .run(
            &format!("GET {one}"),
            "",
            each(&instruments, |id| get(format!("/instruments/{id}"))),
        )
        .await;
    let change = |id: &str| {
        patch(
            format!("/instruments/{id}"),
            &json!({ "description": "moved" }),
        )
    };
    report
        .run(&format!("PATCH {one}"), "", each(&instruments, change))
        .await;
    let heartbeat = |id: &str| {
        post(
            format!("/instruments/{id}/heartbeat"),
            &json!({ "status": "online", "app_version": "1", "is_watching": true }),
        )
    };
    report
        .run(
            &format!("POST {one}/heartbeat"),
            "",
            each(&instruments, heartbeat),
        )
        .await;
    for read in ["device", "device-status"] {
        let read_one = |id: &str| get(format!("/instruments/{id}/{read}"));
        report
            .run(
                &format!("GET {one}/{read}"),
                "",
                each(&instruments, read_one),
            )
            .await;
    }
    report
        .run(
            &format!("DELETE {one}"),
            "",
            each(&instruments, |id| delete(format!("/instruments/{id}"))),
        )
        .await;
}

async fn webhooks(report: &mut Report) {
    // Receives no event that the measured requests cause.
    let webhook = |_| {
        let body = json!({ "url": "https://lab.example.org/hook", "events": ["model.failed"] });
        post("/webhooks", &body)
    };
    let made = report.run("POST /webhooks", "", many(FEW, webhook)).await;
    let webhooks = ids(&made, "/id");
    let one = "/webhooks/{webhook_id}";
    report
        .run("GET /webhooks", "48", same(READS, &get("/webhooks")))
        .await;
    let shown = |id: &str| get(format!("/webhooks/{id}"));
    report
        .run(&format!("GET {one}"), "", each(&webhooks, shown))
        .await;
    let rotated = |id: &str| post(format!("/webhooks/{id}/rotate"), &Value::Null);
    report
        .run(&format!("POST {one}/rotate"), "", each(&webhooks, rotated))
        .await;
    let tried = |id: &str| post(format!("/webhooks/{id}/test"), &Value::Null);
    let tests = report
        .run(&format!("POST {one}/test"), "", each(&webhooks, tried))
        .await;
    let listed = |id: &str| get(format!("/webhooks/{id}/deliveries"));
    report
        .run(
            &format!("GET {one}/deliveries"),
            "",
            each(&webhooks, listed),
        )
        .await;
    let of_webhook: Vec<String> = ids(&tests, "/id")
        .iter()
        .zip(&webhooks)
        .map(|(delivery, webhook)| format!("/webhooks/{webhook}/deliveries/{delivery}/resend"))
        .collect();
    let resent = |path: &str| post(path, &Value::Null);
    report
        .run(
            &format!("POST {one}/deliveries/{{delivery_id}}/resend"),
            "",
            each(&of_webhook, resent),
        )
        .await;
    let changed = |id: &str| patch(format!("/webhooks/{id}"), &json!({ "enabled": false }));
    report
        .run(&format!("PATCH {one}"), "", each(&webhooks, changed))
        .await;
    let deleted = |id: &str| delete(format!("/webhooks/{id}"));
    report
        .run(&format!("DELETE {one}"), "", each(&webhooks, deleted))
        .await;
}

async fn notifications(report: &mut Report) {
    let notification = |n| {
        post(
            "/notifications",
            &json!({ "title": "Done", "dedupe_key": format!("{n}") }),
        )
    };
    let sent = report
        .run("POST /notifications", "", many(FEW, notification))
        .await;
    report
        .run(
            "GET /notifications",
            "48",
            same(READS, &get("/notifications")),
        )
        .await;
    report
        .run(
            "GET /notifications/unread-count",
            "",
            same(READS, &get("/notifications/unread-count")),
        )
        .await;
    let read = |id: &str| patch(format!("/notifications/{id}"), &json!({ "read": true }));
    report
        .run(
            "PATCH /notifications/{id}",
            "",
            each(&ids(&sent, "/id"), read),
        )
        .await;
    let preferences = "/notification-preferences";
    report
        .run(
            &format!("GET {preferences}"),
            "",
            same(READS, &get(preferences)),
        )
        .await;
    let change = patch(preferences, &json!({ "message": { "email": false } }));
    report
        .run(&format!("PATCH {preferences}"), "", same(WRITES, &change))
        .await;
}

async fn rest(report: &mut Report) {
    let dataset = |n: usize| {
        post(
            "/datasets",
            &json!({ "name": format!("set {n}"), "query": "select name, volume from sample limit 1000" }),
        )
    };
    let made = report
        .run_at(
            2,
            "POST /datasets",
            "1,000 rows, 2 at a time an organization",
            many(FEW, dataset),
        )
        .await;
    let made = ids(&made, "/id");
    report
        .run("GET /datasets", "48", same(WRITES, &get("/datasets")))
        .await;
    let one = "/datasets/{dataset_id}";
    report
        .run(
            &format!("GET {one}"),
            "",
            each(&made, |id| get(format!("/datasets/{id}"))),
        )
        .await;
    report
        .run(
            &format!("GET {one}/preview"),
            "",
            each(&made, |id| get(format!("/datasets/{id}/preview"))),
        )
        .await;
    report
        .run(
            &format!("GET {one}/download"),
            "",
            each(&made, |id| get(format!("/datasets/{id}/download"))),
        )
        .await;
    for path in ["/ml-models", "/agent/chats", "/agent/usage"] {
        report
            .run(&format!("GET {path}"), "none", same(READS, &get(path)))
            .await;
    }
}
