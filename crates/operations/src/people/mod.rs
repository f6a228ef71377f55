//! Users, sessions and API keys.

use crate::Operation;
pub mod api_keys;
pub mod groups;
pub mod invitations;
pub mod me;
pub mod session;
pub mod users;

pub(crate) fn operations() -> Vec<Operation> {
    let mut operations = vec![me::operation()];
    operations.extend(session::operations());
    operations.extend(users::operations());
    operations.extend(groups::operations());
    operations.extend(invitations::operations());
    operations.extend(api_keys::operations());
    operations
}
