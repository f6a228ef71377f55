//! Notifications in memory.

use async_trait::async_trait;
use labdata_domain::{
    ids::{NotificationId, OrganizationId, UserId},
    notifications::{Caps, ChannelChange, DAY, HOUR, Notification, Preferences, Sender, Sent},
    page::{Cursor, Page, PageRequest},
};
use labdata_ports::{
    PortError,
    notifications::{
        ClaimedEmail, EmailClaim, EmailCounts, EmailFate, NewNotification, NotificationRepository,
        SendError,
    },
};
use time::{Duration, OffsetDateTime};

use crate::{Memory, memory::State, paging::page};

/// A notification with what its row holds besides.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    organization: OrganizationId,
    user: UserId,
    dedupe_key: String,
    notification: Notification,
    email: Option<Outgoing>,
}

/// An e-mail in the outbox.
#[derive(Clone, Debug)]
struct Outgoing {
    state: EmailState,
    tries: u32,
    due_at: OffsetDateTime,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EmailState {
    Pending,
    Sent,
    Dead,
}

/// Notifications in memory.
#[derive(Clone, Debug)]
pub struct InMemoryNotificationRepository {
    memory: Memory,
}

impl InMemoryNotificationRepository {
    /// The repository over that store.
    #[must_use]
    pub fn new(memory: &Memory) -> Self {
        Self {
            memory: memory.clone(),
        }
    }
}

impl State {
    fn require_user(&self, organization: OrganizationId, user: UserId) -> Result<(), PortError> {
        let known = self
            .users
            .iter()
            .any(|other| other.organization == organization && other.id == user);
        if known {
            Ok(())
        } else {
            Err(PortError::NotFound("user"))
        }
    }

    fn preferences_of(&self, user: UserId) -> Preferences {
        self.preferences.get(&user).copied().unwrap_or_default()
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
            .ok_or(PortError::NotFound("API key"))?;
        Ok(Sender::ApiKey {
            id,
            name: key.name.clone(),
        })
    }
}

/// When the `cap`-th newest of these was delivered, of those within the window.
fn newest_but(
    delivered: impl Iterator<Item = OffsetDateTime>,
    since: OffsetDateTime,
    cap: u32,
) -> Option<OffsetDateTime> {
    let mut within: Vec<_> = delivered.filter(|at| *at > since).collect();
    within.sort_unstable();
    let index = usize::try_from(cap).ok()?.checked_sub(1)?;
    within.into_iter().rev().nth(index)
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
        let repeated = state
            .notifications
            .iter()
            .any(|row| row.user == user && row.dedupe_key == new.draft.dedupe_key);
        if repeated {
            return Ok(Sent::Deduplicated);
        }
        let channels = state.preferences_of(user).message;
        if !channels.inbox {
            return Ok(Sent::Muted);
        }
        let times = state.inbox(organization, user).map(|one| one.created_at);
        let hour = newest_but(times, new.now - HOUR, caps.per_user_and_hour);
        let all = state
            .notifications
            .iter()
            .filter(|row| row.organization == organization)
            .map(|row| row.notification.created_at);
        let day = newest_but(all, new.now - DAY, caps.per_organization_and_day);
        caps.place(new.now, hour, day)?;
        let sender = state.sender(organization, new)?;
        let draft = new.draft.clone();
        state.notifications.push(Row {
            organization,
            user,
            dedupe_key: draft.dedupe_key,
            notification: Notification {
                id: new.id,
                title: draft.title,
                body: draft.body,
                action_url: draft.action_url,
                data: draft.data,
                sender,
                created_at: new.now,
                read_at: None,
            },
            email: channels.email.then_some(Outgoing {
                state: EmailState::Pending,
                tries: 0,
                due_at: new.now,
            }),
        });
        Ok(Sent::Delivered(new.id))
    }

    async fn list(
        &self,
        organization: OrganizationId,
        user: UserId,
        unread: bool,
        request: PageRequest,
    ) -> Result<Page<Notification>, PortError> {
        let state = self.memory.lock();
        let notifications = state
            .inbox(organization, user)
            .filter(|one| !unread || one.read_at.is_none())
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
        Ok(count(unread))
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
            .ok_or(PortError::NotFound("notification"))?;
        notification.read_at = read_at.map(|now| notification.read_at.unwrap_or(now));
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
        let mut due: Vec<(&mut Outgoing, _)> = state
            .notifications
            .iter_mut()
            .filter_map(|row| {
                let claim = EmailClaim {
                    organization: row.organization,
                    user: row.user,
                    notification: row.notification.id,
                    tries: 0,
                };
                Some((row.email.as_mut()?, (claim, row.notification.clone())))
            })
            .filter(|(email, _)| email.state == EmailState::Pending && email.due_at <= now)
            .collect();
        due.sort_by_key(|(email, (claim, _))| (email.due_at, claim.notification));
        due.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        let claimed = due.into_iter().map(|(email, (claim, notification))| {
            email.tries += 1;
            email.due_at = now + lease;
            let to = state.users.iter().find(|user| user.id == claim.user);
            ClaimedEmail {
                claim: EmailClaim {
                    tries: email.tries,
                    ..claim
                },
                to: to.map(|user| user.email.clone()).unwrap_or_default(),
                notification,
            }
        });
        Ok(claimed.collect())
    }

    async fn settle_email(&self, claim: EmailClaim, fate: &EmailFate) -> Result<bool, PortError> {
        let mut state = self.memory.lock();
        let email = state
            .notifications
            .iter_mut()
            .filter(|row| row.organization == claim.organization)
            .find(|row| row.notification.id == claim.notification)
            .and_then(|row| row.email.as_mut())
            .filter(|email| email.state == EmailState::Pending && email.tries == claim.tries);
        let Some(email) = email else {
            return Ok(false);
        };
        match fate {
            EmailFate::Sent { .. } => email.state = EmailState::Sent,
            EmailFate::Dead { .. } => email.state = EmailState::Dead,
            EmailFate::Retry { at, .. } => email.due_at = *at,
        }
        Ok(true)
    }

    async fn count_emails(&self, organization: OrganizationId) -> Result<EmailCounts, PortError> {
        let state = self.memory.lock();
        let in_state = |wanted: EmailState| {
            count(state.notifications.iter().filter(|row| {
                row.organization == organization
                    && row
                        .email
                        .as_ref()
                        .is_some_and(|email| email.state == wanted)
            }))
        };
        Ok(EmailCounts {
            pending: in_state(EmailState::Pending),
            sent: in_state(EmailState::Sent),
            dead: in_state(EmailState::Dead),
        })
    }
}

fn count<T>(things: impl Iterator<Item = T>) -> u64 {
    u64::try_from(things.count()).unwrap_or(u64::MAX)
}
