//! Every operation.

use labdata_api::routes::openapi;
use labdata_domain::people::scope::Scope;
use labdata_operations::{About, Access, Operation};
use reqwest::Method;
use serde_json::{Value, json};

use super::{Lab, Records, example, naming, path_of, without_ids};
use crate::server::{Client, Reply, send};

/// Operations that the key of a run does not have, although it has their scope: those that change what others
/// run or stored, and personal records. Adding one is a decision, and so is leaving one out.
const NOT_FOR_RUNS: &[&str] = &[
    "cancel_job_execution",
    "change_notification_preferences",
    "close_job_execution",
    "count_unread_notifications",
    "create_job",
    "create_sql_login",
    "delete_agent_chat",
    "delete_file",
    "get_agent_chat",
    "get_agent_chat_file",
    "get_notification_preferences",
    "get_sql_login",
    "list_agent_chats",
    "list_notifications",
    "list_sql_logins",
    "mark_notification",
    "record_heartbeat",
    "restore_from_trash",
    "revert_job_execution",
    "revoke_sql_login",
    "run_agent",
    "start_job_execution",
    "update_job",
];

/// Operations on personal records: to another user of the organization, they do not exist.
const PERSONAL: &[&str] = &[
    "delete_agent_chat",
    "get_agent_chat",
    "get_agent_chat_file",
    "mark_notification",
];

/// Operations that need the scope to read besides their own: some grant it by their examples, one reads what it writes.
const NEED_READ: &[&str] = &["create_api_key", "create_invitation", "restore_row"];

/// A call of an operation with these records.
struct Call<'c> {
    operation: &'c Operation,
    example: Option<&'c Value>,
    records: &'c Records,
}

impl Call<'_> {
    async fn by(&self, client: &Client, cookie: Option<&str>) -> Reply {
        let About { method, .. } = self.operation.about;
        let method = Method::from_bytes(method.as_str().as_bytes()).unwrap();
        let mut request = client.request(method, &path_of(self.operation, self.records));
        if let Some(example) = self.example {
            request = request.json(&naming(example, self.records));
        }
        if let Some(cookie) = cookie {
            let request_of_page = request.header("cookie", cookie);
            request = request_of_page.header("sec-fetch-site", "same-origin");
        }
        send(request).await
    }
}

/// An operation under test, and what was found to be wrong with it.
struct Case {
    operation: Operation,
    scope: Scope,
    example: Option<Value>,
    problems: Vec<String>,
}

impl Case {
    fn name(&self) -> &'static str {
        self.operation.about.name
    }

    /// Calls the operation with these records.
    async fn call(&self, records: &Records, client: &Client, cookie: Option<&str>) -> Reply {
        let call = Call {
            operation: &self.operation,
            example: self.example.as_ref(),
            records,
        };
        call.by(client, cookie).await
    }

    fn expect(&mut self, holds: bool, caller: &str, reply: &Reply) {
        if !holds {
            let (name, status) = (self.name(), reply.status.as_u16());
            let text: String = reply.text.chars().take(200).collect();
            self.problems
                .push(format!("{name} by {caller}: {status} {text}"));
        }
    }

    fn expect_allowed(&mut self, caller: &str, reply: &Reply) {
        let is_allowed = ![401, 403, 405, 500].contains(&reply.status.as_u16());
        self.expect(is_allowed, caller, reply);
    }

    /// To another organization, what exists looks like what does not.
    async fn try_strangers(&mut self, lab: &Lab) {
        let named = |records| {
            let body = self
                .example
                .as_ref()
                .map(|example| naming(example, records));
            (path_of(&self.operation, records), body)
        };
        if named(&lab.records) == named(&lab.unknown) {
            return;
        }
        let stranger = lab.server.stranger().await;
        let found = self.call(&lab.records, &stranger, None).await;
        let missing = self.call(&lab.unknown, &stranger, None).await;
        let alike = found.status == missing.status
            && without_ids(&found.text, &lab.records) == without_ids(&missing.text, &lab.unknown);
        self.expect(alike, "a stranger", &found);
    }

    async fn try_scopes(&mut self, lab: &Lab) {
        let lacking = format!("this API key lacks the {} scope", self.scope);
        for held in [Scope::Read, Scope::Write, Scope::Admin] {
            let client = lab.server.client(&[held]).await;
            let reply = self.call(&lab.records, &client, None).await;
            if held == self.scope && NEED_READ.contains(&self.name()) {
                let lacking = "this API key lacks the read scope";
                let is_refused = reply.status == 403 && reply.text.contains(lacking);
                self.expect(is_refused, held.as_str(), &reply);
            } else if held == self.scope {
                self.expect_allowed(held.as_str(), &reply);
            } else {
                let is_refused = reply.status == 403 && reply.text.contains(&lacking);
                self.expect(is_refused, held.as_str(), &reply);
            }
        }
    }

    async fn try_run(&mut self, lab: &Lab) {
        let reply = self.call(&lab.records, &lab.run().await, None).await;
        let code = if self.scope == Scope::Admin {
            "scope_missing"
        } else if NOT_FOR_RUNS.contains(&self.name()) {
            "not_for_runs"
        } else {
            return self.expect_allowed("a run", &reply);
        };
        let is_refused = reply.status == 403 && reply.text.contains(code);
        self.expect(is_refused, "a run", &reply);
    }

    async fn try_people(&mut self, lab: &Lab) {
        let reply = self
            .call(&lab.records, &lab.server.colleague().await, None)
            .await;
        if PERSONAL.contains(&self.name()) {
            self.expect(reply.status == 404, "a colleague", &reply);
        } else {
            self.expect_allowed("a colleague", &reply);
        }
        let key = lab.server.key(&Scope::ALL, |_| {}).await;
        let browser = lab.server.anonymous();
        let signed_in = json!({ "api_key": key });
        let signed_in = browser.post("/api/v1/session", &signed_in).await;
        let cookie = signed_in.header("set-cookie").unwrap().to_owned();
        let cookie = cookie.split(';').next();
        let reply = self.call(&lab.records, &browser, cookie).await;
        self.expect_allowed("a session", &reply);
    }
}

#[tokio::test]
async fn each_operation_gives_each_caller_what_its_scope_and_the_exceptions_say() {
    let document = openapi();
    let mut problems = Vec::new();
    for operation in labdata_operations::all() {
        let Access::Scope(scope) = operation.access else {
            continue;
        };
        let mut case = Case {
            example: example(&document, operation.about.name),
            scope,
            operation,
            problems: Vec::new(),
        };
        // Those who get nothing come first, so that all find the records.
        let lab = Lab::start().await;
        case.try_strangers(&lab).await;
        case.try_scopes(&lab).await;
        case.try_run(&Lab::start().await).await;
        case.try_people(&Lab::start().await).await;
        problems.append(&mut case.problems);
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn the_exceptions_name_operations_that_exist() {
    let operations = labdata_operations::all();
    for name in NOT_FOR_RUNS.iter().chain(PERSONAL).chain(NEED_READ) {
        assert!(operations.iter().any(|it| it.about.name == *name), "{name}");
    }
}
