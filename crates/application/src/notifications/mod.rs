//! The inbox, e-mails and preferences.

pub mod deliver_notices;
pub mod list_notifications;
pub mod mark_notification;
pub mod notification_preferences;
pub mod send_emails;
pub mod send_notification;
