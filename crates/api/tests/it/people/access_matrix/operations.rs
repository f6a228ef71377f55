//! Each operation, with the example of its body, about a hidden table and about none.

use labdata_api::routes::openapi;
use labdata_operations::Access;
use serde_json::Value;

use super::{HIDDEN, Lab, MARK, NOTHING, leak};
use crate::people::rights_matrix::{Records, UNKNOWN, example, naming, path_of};

/// Operations that are left out: those of sessions would end that of the caller, and the log of what was done is the
/// administrators', whose keys may be narrowed.
const LEFT_OUT: &[&str] = &["begin_session", "end_session", "list_audit_log"];

#[tokio::test]
async fn no_operation_tells_of_a_hidden_table() {
    let document = openapi();
    let lab = Lab::start().await;
    let (hidden, nothing) = (lab.records(HIDDEN, &lab.row), lab.records(NOTHING, UNKNOWN));
    let mut leaks = Vec::new();
    for operation in labdata_operations::all() {
        let about = &operation.about;
        if LEFT_OUT.contains(&about.name) || operation.access == Access::Open {
            continue;
        }
        let example = example(&document, about.name);
        let request = |records: &Records| {
            let body = example.as_ref().map(|example| naming(example, records));
            (path_of(&operation, records), body)
        };
        for outsider in &lab.outsiders {
            // A stranger would define the table in another organization.
            if outsider.name == "a stranger" && about.name == "define_table" {
                continue;
            }
            let ask = async |(path, body): &(String, Option<Value>)| {
                let method = about.method.as_str();
                outsider.send(method, path, body.as_ref()).await
            };
            let (about_hidden, about_nothing) = (request(&hidden), request(&nothing));
            let found = ask(&about_hidden).await;
            let leak = if about_hidden == about_nothing {
                found.text.contains(MARK).then(|| found.text.clone())
            } else {
                let missing = ask(&about_nothing).await;
                let is_alike = found.status == missing.status;
                let differs = || Some(format!("not {}", missing.status));
                leak(&found.text, &missing.text).or_else(|| (!is_alike).then(differs).flatten())
            };
            if let Some(leak) = leak {
                leaks.push(format!(
                    "{} by {}: {} {leak}",
                    about.name, outsider.name, found.status
                ));
            }
        }
    }
    assert!(leaks.is_empty(), "{}", leaks.join("\n"));
}
