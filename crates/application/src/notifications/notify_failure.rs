//! Tells a user that an execution has failed.

use labdata_domain::{
    executions::Execution,
    ids::{OrganizationId, UserId},
    notifications::failure_notice,
};

use crate::{Ports, notifications::send_notification::deliver};

/// Tells a user that an execution which they caused has failed, if it has; once, however often it
/// is called. It goes the way of all notifications: preferences, caps, e-mail. What hinders it is
/// logged and hinders nothing else.
pub async fn notify_failure(
    ports: &Ports,
    organization: OrganizationId,
    user: UserId,
    execution: &Execution,
) {
    let Some(notice) = failure_notice(execution) else {
        return;
    };
    if let Err(error) = deliver(ports, organization, user, None, notice).await {
        tracing::warn!(execution = %execution.id, %error, "could not tell of a failed execution");
    }
}
