//! The inbox, e-mails and preferences.

pub mod list_notifications;
pub mod mark_notification;
pub mod notification_preferences;
pub mod notify_failure;
pub mod send_emails;
pub mod send_notification;
