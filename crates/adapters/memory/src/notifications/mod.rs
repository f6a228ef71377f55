//! Notifications in memory.

pub(crate) mod rows;

use async_trait::async_trait;
use labdata_domain::{
    ids::{NotificationId, OrganizationId, UserId},
    notifications::{
        Caps, ChannelChange, DAY, Delivery, DeliveryFacts, EmailOutcome, Ended, HOUR, Notification,
        Preferences, Sender, Sent, full_since,
    },
    page::{Cursor, Page, PageRequest},
    refusal::Resource,
};
use labdata_ports::{
    PortError,
    notifications::{
        ClaimedEmail, DecideNotice, EmailClaim, NewNotification, NotificationRepository, SendError,
    },
};
use time::{Duration, OffsetDateTime};

use crate::{
    memory::{State, fake},
    notifications::rows::{NoticeRow, NoticeSubject, NotificationRow},
    paging::page,
};

fake!(
    /// Notifications in memory.
    pub struct InMemoryNotificationRepository;
);

impl State {
    fn preferences_of(&self, user: UserId) -> Preferences {
        self.preferences.get(&user).copied().unwrap_or_default()
    }

    /// The ended work of a notice, and the user who started it.
    fn ended(&mut self, notice: &NoticeRow) -> Result<(Ended, UserId), PortError> {
        match notice.subject {
            NoticeSubject::Execution(id) => {
                let execution = self.execution_mut(notice.organization, id)?.clone();
                Ok((
                    Ended::Execution(Box::new(execution)),
                    self.started_by(id)?.user,
                ))
            }
            NoticeSubject::Training(id) => {
                let row = self
                    .version_mut(id)
                    .ok_or(PortError::NotFound(Resource::ModelVersion))?;
                let version = row.version.clone();
                let user = version.requested_by;
                Ok((Ended::Training(Box::new(version)), user))
            }
        }
    }

    /// Facts about a notification for a user, without those about caps.
    fn delivery_facts(&self, user: UserId, new: &NewNotification) -> DeliveryFacts {
        let mut to_user = self.notifications.iter().filter(|row| row.user == user);
        DeliveryFacts {
            repeated: to_user.any(|row| row.dedupe_key == new.draft.dedupe_key),
            channels: self.preferences_of(user).message,
            hour: None,
            day: None,
        }
    }

    /// Those of a user, in the order in which they were delivered.
    fn inbox(
        &self,
        organization: OrganizationId,
        user: UserId,
    ) -> impl Iterator<Item = &Notification> {
        self.notifications
            .iter()
            .filter(move |row| row.organization == organization && row.user == user)
            .map(|row| &row.notification)
    }

    fn sender(
        &self,
        organization: OrganizationId,
        notification: &NewNotification,
    ) -> Result<Sender, PortError> {
        let Some(id) = notification.api_key else {
            return Ok(Sender::Platform);
        };
        let key = self
            .api_keys
            .iter()
            .find(|key| key.organization == organization && key.id == id)
            .ok_or(PortError::NotFound(Resource::ApiKey))?;
        Ok(Sender::ApiKey {
            id,
            name: key.name.clone(),
        })
    }
}

#[async_trait]
impl NotificationRepository for InMemoryNotificationRepository {
    async fn send(
        &self,
        organization: OrganizationId,
        user: UserId,
        new: &NewNotification,
        caps: Caps,
    ) -> Result<Sent, SendError> {
        let mut state = self.memory.lock();
        state.require_user(organization, user)?;
        let counted = || state.notifications.iter().filter(|row| row.is_counted);
        let at = |row: &NotificationRow| row.notification.created_at;
        let to_user = counted().filter(|row| row.user == user).map(at);
        let in_organization = counted()
            .filter(|row| row.organization == organization)
            .map(at);
        let facts = DeliveryFacts {
            hour: full_since(to_user, HOUR, caps.per_user_and_hour, new.now),
            day: full_since(in_organization, DAY, caps.per_organization_and_day, new.now),
            ..state.delivery_facts(user, new)
        };
        let email = match caps.deliver(new.now, &facts)? {
            Delivery::Deduplicated => return Ok(Sent::Deduplicated),
            Delivery::Muted => return Ok(Sent::Muted),
            Delivery::Inbox { email } => email,
        };
        let sender = state.sender(organization, new)?;
        state.notifications.push(NotificationRow {
            is_counted: true,
            ..NotificationRow::new(organization, user, new, sender, email)
        });
        state.log_notification(organization, user, new.now, new.id);
        Ok(Sent::Delivered(new.id))
    }

    async fn deliver_notices(
        &self,
        limit: u32,
        decide: DecideNotice<'_>,
    ) -> Result<u32, PortError> {
        let mut state = self.memory.lock();
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let taken = limit.min(state.notices.len());
        let notices: Vec<_> = state.notices.drain(..taken).collect();
        let mut handled = 0;
        for notice in notices {
            handled += 1;
            let organization = notice.organization;
            let (ended, user) = state.ended(&notice)?;
            let Some(new) = decide(&ended) else {
                continue;
            };
            if let Delivery::Inbox { email } = state.delivery_facts(user, &new).deliver() {
                let sender = state.sender(organization, &new)?;
                let row = NotificationRow::new(organization, user, &new, sender, email);
                state.notifications.push(row);
                state.log_notification(organization, user, new.now, new.id);
            }
        }
        Ok(handled)
    }

    async fn list(
        &self,
        organization: OrganizationId,
        user: UserId,
        unread: Option<bool>,
        request: PageRequest,
    ) -> Result<Page<Notification>, PortError> {
        let state = self.memory.lock();
        let notifications = state
            .inbox(organization, user)
            .filter(|one| unread.is_none_or(|unread| one.read_at.is_none() == unread))
            .cloned();
        Ok(page(notifications, request, |one| Cursor {
            at: one.created_at,
            id: one.id.as_uuid(),
        }))
    }

    async fn count_unread(
        &self,
        organization: OrganizationId,
        user: UserId,
    ) -> Result<u64, PortError> {
        let state = self.memory.lock();
        let unread = state
            .inbox(organization, user)
            .filter(|one| one.read_at.is_none());
        Ok(u64::try_from(unread.count()).unwrap_or(u64::MAX))
    }

    async fn mark(
        &self,
        organization: OrganizationId,
        user: UserId,
        id: NotificationId,
        read_at: Option<OffsetDateTime>,
    ) -> Result<Notification, PortError> {
        let mut state = self.memory.lock();
        let notification = state
            .notifications
            .iter_mut()
            .filter(|row| row.organization == organization && row.user == user)
            .map(|row| &mut row.notification)
            .find(|one| one.id == id)
            .ok_or(PortError::NotFound(Resource::Notification))?;
        *notification = notification.clone().mark(read_at);
        Ok(notification.clone())
    }

    async fn preferences(
        &self,
        organization: OrganizationId,
        user: UserId,
    ) -> Result<Preferences, PortError> {
        let state = self.memory.lock();
        Ok(match state.require_user(organization, user) {
            Ok(()) => state.preferences_of(user),
            Err(_) => Preferences::default(),
        })
    }

    async fn change_preferences(
        &self,
        organization: OrganizationId,
        user: UserId,
        change: ChannelChange,
    ) -> Result<Preferences, PortError> {
        let mut state = self.memory.lock();
        state.require_user(organization, user)?;
        let changed = state.preferences_of(user).with_message(change);
        state.preferences.insert(user, changed);
        Ok(changed)
    }

    async fn claim_emails(
        &self,
        now: OffsetDateTime,
        lease: Duration,
        limit: u32,
    ) -> Result<Vec<ClaimedEmail>, PortError> {
        let mut guard = self.memory.lock();
        let state = &mut *guard;
        let mut due: Vec<(OffsetDateTime, &mut NotificationRow)> = state
            .notifications
            .iter_mut()
            .filter_map(|row| Some((row.email.as_ref()?.due_since(now)?, row)))
            .collect();
        due.sort_by_key(|(since, row)| (*since, row.notification.id));
        due.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        let mut claimed = Vec::new();
        for (_, row) in due {
            let Some((email, tries)) = row.email.clone().and_then(|it| it.claim(now, lease)) else {
                continue;
            };
            row.email = Some(email);
            let to = state.users.iter().find(|user| user.id == row.user);
            claimed.push(ClaimedEmail {
                claim: EmailClaim {
                    organization: row.organization,
                    user: row.user,
                    notification: row.notification.id,
                    tries,
                },
                to: to.map(|user| user.email.clone()).unwrap_or_default(),
                notification: row.notification.clone(),
            });
        }
        Ok(claimed)
    }

    async fn settle_email(
        &self,
        claim: EmailClaim,
        outcome: &EmailOutcome,
    ) -> Result<bool, PortError> {
        let mut state = self.memory.lock();
        let email = state
            .notifications
            .iter_mut()
            .filter(|row| row.organization == claim.organization)
            .find(|row| row.notification.id == claim.notification)
            .and_then(|row| row.email.as_mut());
        let Some(email) = email else {
            return Ok(false);
        };
        let settled = email.clone().settle(claim.tries, outcome);
        Ok(settled.map(|settled| *email = settled).is_some())
    }
}
