//! Contract of [`OidcStore`].

use futures::future::join_all;
use labdata_domain::{
    ids::{ApiKeyId, UserId},
    people::{ApiKeyHash, session::Session},
};
use labdata_ports::people::{
    oidc::{OidcStore, ProviderSession},
    sessions::SessionRepository,
};
use time::OffsetDateTime;

use crate::{assertions::assert_not_found, given::at, lab::lab};

lab!(
    /// Users of two organizations who sign in with a provider.
    pub struct OidcLab {
        /// Sign-ins, accounts, and sessions of the provider.
        pub store: dyn OidcStore,
        /// Sessions.
        pub sessions: dyn SessionRepository,
    }
);

const ISSUER: &str = "https://id.example.org";

impl OidcLab {
    async fn link(&self, user: UserId, subject: &str) -> bool {
        let linked = self.store.link_account(self.ours, user, ISSUER, subject);
        linked.await.unwrap()
    }

    /// A session of Ada's that the provider began.
    async fn session(&self, number: u8, check_at: i64) -> ProviderSession {
        let key = self.api_key(&self.ada).await.id;
        let token = ApiKeyHash([number; 32]);
        let session = Session::begin(token, self.ours, key, at(0));
        self.sessions.add(&session).await.unwrap();
        let session = ProviderSession {
            session: token,
            organization: self.ours,
            key,
            user: self.ada.id,
            subject: "ada".to_owned(),
            refresh: vec![1, 2, 3],
            check_at: at(check_at),
        };
        self.store.add_session(&session).await.unwrap();
        session
    }

    async fn due(&self, now: i64, next: i64, limit: u32) -> Vec<DueSession> {
        let due = self.store.due_sessions(at(now), at(next), limit);
        let due = due.await.unwrap().into_iter();
        due.map(|it| {
            (
                it.session.0,
                it.key,
                it.user,
                it.subject,
                it.refresh,
                it.check_at,
            )
        })
        .collect()
    }
}

/// The parts of a session that is due at that time, to be compared.
type DueSession = ([u8; 32], ApiKeyId, UserId, String, Vec<u8>, OffsetDateTime);

fn due_at(check_at: i64, session: &ProviderSession) -> DueSession {
    (
        session.session.0,
        session.key,
        session.user,
        session.subject.clone(),
        session.refresh.clone(),
        at(check_at),
    )
}

crate::suite!(
    use people::oidc;

    /// Of racing uses one is the first; it counts until the sign-in ends.
    async fn a_sign_in_is_used_once(lab: &OidcLab) {
        let attempt = ApiKeyHash([7; 32]);
        let uses = join_all((0..6).map(|_| lab.store.use_attempt(attempt, at(10)))).await;
        assert_eq!(
            uses.into_iter()
                .filter(|used| *used.as_ref().unwrap())
                .count(),
            1
        );
        assert!(
            lab.store
                .use_attempt(ApiKeyHash([8; 32]), at(11))
                .await
                .unwrap()
        );
        assert_eq!(lab.store.remove_ended_attempts(at(9)).await.unwrap(), 0);
        assert_eq!(lab.store.remove_ended_attempts(at(10)).await.unwrap(), 1);
        assert!(
            !lab.store
                .use_attempt(ApiKeyHash([8; 32]), at(11))
                .await
                .unwrap()
        );
    }

    /// A user keeps the account of the first sign-in, and an account its user; other organizations have their own.
    async fn a_user_and_an_account_belong_together(lab: &OidcLab) {
        let bob = lab.user(lab.ours, "bob@example.org").await;
        assert!(lab.link(lab.ada.id, "ada").await);
        assert!(lab.link(lab.ada.id, "ada").await);
        assert!(!lab.link(lab.ada.id, "eve").await);
        assert!(!lab.link(bob.id, "ada").await);
        assert!(lab.link(bob.id, "eve").await);
        let theirs = lab
            .store
            .link_account(lab.theirs, lab.eve.id, ISSUER, "ada");
        assert!(theirs.await.unwrap());
        let other =
            lab.store
                .link_account(lab.ours, lab.ada.id, "https://other.example.org", "ada");
        assert!(!other.await.unwrap());
        let unknown = lab
            .store
            .link_account(lab.ours, lab.eve.id, ISSUER, "mallory");
        assert_not_found(unknown.await);
    }

    /// The user of an account is found in its organization alone.
    async fn a_linked_user_is_found(lab: &OidcLab) {
        let find = async |organization, issuer: &str, subject: &str| {
            let found = lab.store.linked_user(organization, issuer, subject);
            found.await.unwrap()
        };
        assert_eq!(find(lab.ours, ISSUER, "ada").await, None);
        assert!(lab.link(lab.ada.id, "ada").await);
        assert_eq!(find(lab.ours, ISSUER, "ada").await, Some(lab.ada.id));
        assert_eq!(find(lab.theirs, ISSUER, "ada").await, None);
        assert_eq!(
            find(lab.ours, "https://other.example.org", "ada").await,
            None
        );
        assert_eq!(find(lab.ours, ISSUER, "eve").await, None);
    }

    /// Due sessions are taken once, the longest due first, and are due again later.
    async fn due_sessions_are_taken_once(lab: &OidcLab) {
        let late = lab.session(1, 20).await;
        let early = lab.session(2, 10).await;
        assert_eq!(lab.due(9, 90, 9).await, []);
        assert_eq!(lab.due(30, 90, 1).await, [due_at(90, &early)]);
        assert_eq!(lab.due(30, 90, 9).await, [due_at(90, &late)]);
        assert_eq!(lab.due(89, 99, 9).await, []);
        let checked = ProviderSession {
            refresh: vec![4],
            check_at: at(95),
            ..late
        };
        lab.store.checked(&checked).await.unwrap();
        assert_eq!(lab.due(92, 200, 9).await, [due_at(200, &early)]);
        assert_eq!(lab.due(95, 99, 9).await, [due_at(99, &checked)]);
    }

    /// Of servers that look at the same time one gets each.
    async fn racing_servers_share_the_due_sessions(lab: &OidcLab) {
        for number in 1..=4 {
            lab.session(number, 10).await;
        }
        let taken = join_all((0..6).map(|_| lab.due(20, 90, 2))).await.concat();
        let mut tokens: Vec<_> = taken.iter().map(|it| it.0).collect();
        tokens.sort_unstable();
        tokens.dedup();
        assert_eq!((tokens.len(), taken.len()), (4, 4));
    }

    /// A session that ends takes its refresh token along.
    async fn an_ended_session_is_not_checked(lab: &OidcLab) {
        let session = lab.session(1, 10).await;
        lab.sessions.remove(session.session).await.unwrap();
        assert_eq!(lab.due(20, 90, 9).await, []);
        lab.store.checked(&session).await.unwrap();
        assert_eq!(lab.due(20, 90, 9).await, []);
    }

    /// A session that does not exist is not found.
    async fn an_unknown_session_is_not_found(lab: &OidcLab) {
        let unknown = ProviderSession {
            session: ApiKeyHash([9; 32]),
            ..lab.session(1, 0).await
        };
        assert_not_found(lab.store.add_session(&unknown).await);
    }
);
