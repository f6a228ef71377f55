//! Contract of [`SessionRepository`].

use futures::future::join_all;
use labdata_domain::{
    ids::{ApiKeyId, UserId},
    people::{
        ApiKey, ApiKeyHash,
        session::{
            FoundSession, LINK_LIFETIME, MAX_SESSIONS_PER_KEY, PlainToken, SESSION_LIFETIME,
            SESSION_PAUSE, Session, SignInLink,
        },
        tenancy::UserChange,
    },
};
use labdata_ports::people::sessions::SessionRepository;
use time::{Duration, OffsetDateTime};

use crate::{
    assertions::assert_not_found,
    given::{self, at},
    lab::lab,
};

lab!(
    /// Sessions of users.
    pub struct SessionsLab {
        /// Sessions.
        pub sessions: dyn SessionRepository,
    }
);

impl SessionsLab {
    async fn add(&self, session: &Session) {
        self.sessions.add(session).await.unwrap();
    }

    /// The session of a token.
    async fn find(&self, number: u8) -> Option<FoundSession> {
        self.sessions.find(token(number)).await.unwrap()
    }

    /// A sign-in link of a lab.ada.
    fn link(&self, number: u8, user: UserId, expires_at: OffsetDateTime) -> SignInLink {
        SignInLink {
            token: token(number),
            organization: self.ours,
            user,
            expires_at,
        }
    }
}

fn token(number: u8) -> ApiKeyHash {
    PlainToken::from_random([number; 32]).hash()
}

fn session(key: &ApiKey, number: u8) -> Session {
    Session::begin(token(number), key.organization, key.id, at(0))
}

crate::suite!(
    use people::sessions;

    /// By its token only.
    async fn a_session_is_found_with_its_key(lab: &SessionsLab) {
        let key = lab.api_key(&lab.ada).await;
        lab.add(&session(&key, 1)).await;
        let found = lab.find(1).await.unwrap();
        assert_eq!((found.key.key.id, found.key.key.user), (key.id, lab.ada.id));
        assert_eq!(found.key.key.scopes, key.scopes);
        assert_eq!(found.session.organization, lab.ada.organization);
        let times = (found.session.created_at, found.session.last_used_at);
        assert_eq!(times, (at(0), at(0)));
        assert!(lab.find(2).await.is_none());
    }

    /// A key that is unknown or another organization's is not found, and nothing is stored.
    async fn a_session_needs_a_key_of_its_organization(lab: &SessionsLab) {
        let foreign = lab.api_key(&lab.eve).await.id;
        for key in [foreign, ApiKeyId::new(given::uuid())] {
            let session = Session::begin(token(1), lab.ours, key, at(0));
            assert_not_found(lab.sessions.add(&session).await);
            assert!(lab.find(1).await.is_none());
        }
    }

    /// The order of their beginning counts, not that in which they were stored. Other keys keep theirs.
    async fn the_oldest_session_of_a_key_ends_when_it_has_too_many(lab: &SessionsLab) {
        let key = lab.api_key(&lab.ada).await;
        let other = lab.api_key(&lab.ada).await;
        let begun = |key: &ApiKey, number: u8, seconds: i64| Session {
            created_at: at(seconds),
            last_used_at: at(seconds),
            ..session(key, number)
        };
        lab.add(&begun(&other, 255, 0)).await;
        let limit = u8::try_from(MAX_SESSIONS_PER_KEY).unwrap();
        // The second that is stored is the oldest.
        for number in 0..limit {
            let seconds = if number == 1 {
                1
            } else {
                i64::from(number) + 10
            };
            let session = begun(&key, number, seconds);
            lab.add(&session).await;
        }
        let exists = async |number| lab.find(number).await.is_some();
        assert!(exists(0).await && exists(1).await);
        for (added, ended) in [(limit, 1), (limit + 1, 0)] {
            lab.add(&begun(&key, added, 1000)).await;
            assert!(!exists(ended).await, "{ended}");
            for left in (2..=added).chain([255]) {
                assert!(exists(left).await, "{left}");
            }
        }
    }

    /// The caller judges whether they are still valid.
    async fn a_found_session_tells_of_its_key_and_its_user(lab: &SessionsLab) {
        let key = lab.api_key(&lab.ada).await;
        lab.add(&session(&key, 1)).await;
        lab.keys.revoke(lab.ours, key.id, at(1)).await.unwrap();
        let change = UserChange {
            disabled: Some(true),
            ..UserChange::default()
        };
        let changed = lab
            .tenancy
            .update_user(lab.ada.organization, lab.ada.id, &change, at(2));
        changed.await.unwrap();
        let found = lab.find(1).await.unwrap();
        assert_eq!(found.key.key.revoked_at, Some(at(1)));
        assert_eq!(found.key.user_disabled_at, Some(at(2)));
    }

    /// Uses of unknown sessions are ignored.
    async fn a_use_is_noted_and_never_moves_back(lab: &SessionsLab) {
        let key = lab.api_key(&lab.ada).await;
        lab.add(&session(&key, 1)).await;
        for (number, seconds, expected) in [(1, 9, 9), (1, 5, 9), (2, 20, 9)] {
            lab.sessions
                .touch(token(number), at(seconds))
                .await
                .unwrap();
            let found = lab.find(1).await.unwrap();
            assert_eq!(found.session.last_used_at, at(expected));
        }
    }

    /// The rest stay.
    async fn a_removed_session_is_gone(lab: &SessionsLab) {
        let key = lab.api_key(&lab.ada).await;
        for number in [1, 2] {
            lab.add(&session(&key, number)).await;
        }
        for _ in 0..2 {
            lab.sessions.remove(token(1)).await.unwrap();
            assert!(lab.find(1).await.is_none());
            assert!(lab.find(2).await.is_some());
        }
    }

    /// It is of no use afterwards.
    async fn of_racing_followers_of_a_link_one_gets_it(lab: &SessionsLab) {
        let link = lab.link(1, lab.ada.id, at(0) + LINK_LIFETIME);
        lab.sessions.add_link(&link).await.unwrap();
        assert!(lab.sessions.take_link(token(2)).await.unwrap().is_none());
        let taken = join_all((0..4).map(|_| lab.sessions.take_link(token(1)))).await;
        let taken: Vec<SignInLink> = taken.into_iter().filter_map(Result::unwrap).collect();
        let [taken] = taken.as_slice() else {
            panic!("{taken:?}")
        };
        assert_eq!(
            (taken.organization, taken.user),
            (lab.ada.organization, lab.ada.id)
        );
        assert_eq!(taken.expires_at, link.expires_at);
    }

    /// A user who is unknown or another organization's is not found.
    async fn a_link_needs_a_user_of_its_organization(lab: &SessionsLab) {
        for user in [lab.eve.id, UserId::new(given::uuid())] {
            assert_not_found(lab.sessions.add_link(&lab.link(1, user, at(0))).await);
            assert!(lab.sessions.take_link(token(1)).await.unwrap().is_none());
        }
    }

    /// Sessions that paused or lasted too long, and links that expired.
    async fn what_has_ended_is_removed(lab: &SessionsLab) {
        let key = lab.api_key(&lab.ada).await;
        let now = at(0) + SESSION_LIFETIME;
        let second = Duration::SECOND;
        for (number, created_at, last_used_at) in [
            (1, at(0), now),
            (2, at(1), now - SESSION_PAUSE),
            (3, at(1), now - SESSION_PAUSE + second),
        ] {
            let session = Session {
                created_at,
                last_used_at,
                ..session(&key, number)
            };
            lab.add(&session).await;
        }
        for (number, expires_at) in [(4, now), (5, now + second)] {
            let link = lab.link(number, lab.ada.id, expires_at);
            lab.sessions.add_link(&link).await.unwrap();
        }
        assert_eq!(lab.sessions.remove_ended(now).await.unwrap(), 3);
        assert!(lab.find(3).await.is_some());
        assert!(lab.sessions.take_link(token(5)).await.unwrap().is_some());
        assert_eq!(lab.sessions.remove_ended(now).await.unwrap(), 0);
    }
);
