//! Contract of [`InvitationRepository`].

use futures::future::join_all;
use labdata_domain::{
    ids::{GroupId, InvitationId, OrganizationId, UserId},
    people::{
        ApiKeyHash,
        invitation::{INVITATION_LIFETIME, Invitation},
        role::Role,
    },
};
use labdata_ports::people::invitations::InvitationRepository;

use crate::{
    assertions::assert_not_found,
    given::{self, at},
    lab::lab,
};

lab!(
    /// Invitations of two organizations.
    pub struct InvitationsLab {
        /// Invitations.
        pub invitations: dyn InvitationRepository,
    }
);

fn invitation(
    organization: OrganizationId,
    created_by: UserId,
    token: u8,
    seconds: i64,
) -> Invitation {
    Invitation {
        id: InvitationId::new(given::uuid()),
        organization,
        email: format!("colleague{token}@example.org"),
        role: Role::Viewer,
        groups: vec![GroupId::new(given::uuid())],
        token: ApiKeyHash([token; 32]),
        created_by,
        created_at: at(seconds),
        expires_at: at(seconds) + INVITATION_LIFETIME,
    }
}

fn assert_same(left: &Invitation, right: &Invitation) {
    assert_eq!(format!("{left:?}"), format!("{right:?}"));
}

impl InvitationsLab {
    async fn stored(&self, token: u8, seconds: i64) -> Invitation {
        let invitation = invitation(self.ours, self.ada.id, token, seconds);
        self.invitations.add(&invitation).await.unwrap();
        invitation
    }
}

crate::suite!(
    use people::invitations;

    /// Every field is stored, and the invitation is found by its token, or not at all.
    async fn an_invitation_reads_back_as_it_was_added(lab: &InvitationsLab) {
        let stored = lab.stored(1, 0).await;
        let found = lab.invitations.find(stored.token).await.unwrap();
        assert_same(&found.unwrap(), &stored);
        assert!(
            lab.invitations
                .find(ApiKeyHash([2; 32]))
                .await
                .unwrap()
                .is_none()
        );
        let of_stranger = invitation(lab.ours, lab.eve.id, 3, 0);
        assert_not_found(lab.invitations.add(&of_stranger).await);
    }

    /// The list is newest first, and has the invitations of no other organization.
    async fn the_list_of_invitations_is_newest_first(lab: &InvitationsLab) {
        let theirs = invitation(lab.theirs, lab.eve.id, 9, 15);
        lab.invitations.add(&theirs).await.unwrap();
        let (first, second) = (lab.stored(1, 10).await, lab.stored(2, 20).await);
        let listed = lab.invitations.list(lab.ours).await.unwrap();
        let ids: Vec<InvitationId> = listed.iter().map(|it| it.id).collect();
        assert_eq!(ids, [second.id, first.id]);
    }

    /// Of racing removals one gets the invitation; another organization gets none.
    async fn an_invitation_is_removed_once(lab: &InvitationsLab) {
        let stored = lab.stored(1, 0).await;
        assert_not_found(lab.invitations.remove(lab.theirs, stored.id).await);
        let racing = (0..4).map(|_| lab.invitations.remove(lab.ours, stored.id));
        let outcomes = join_all(racing).await;
        let won = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
        assert_eq!(won, 1);
        assert!(lab.invitations.find(stored.token).await.unwrap().is_none());
    }

    /// Expired invitations are removed, of every organization, and no others.
    async fn expired_invitations_are_removed(lab: &InvitationsLab) {
        let theirs = invitation(lab.theirs, lab.eve.id, 9, 0);
        lab.invitations.add(&theirs).await.unwrap();
        lab.stored(1, 0).await;
        let later = lab.stored(2, 1).await;
        let now = at(0) + INVITATION_LIFETIME;
        assert_eq!(lab.invitations.remove_expired(now).await.unwrap(), 2);
        let listed = lab.invitations.list(lab.ours).await.unwrap();
        assert_eq!(listed.len(), 1);
        assert_same(&listed[0], &later);
    }
);
