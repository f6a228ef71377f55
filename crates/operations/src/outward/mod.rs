//! Access for other programs: SQL logins and webhooks.

use crate::Operation;

pub mod sql_logins;
pub mod webhooks;

pub(crate) fn operations() -> Vec<Operation> {
    let mut operations = sql_logins::operations();
    operations.extend(webhooks::operations());
    operations
}
