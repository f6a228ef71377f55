"""Users, groups, invitations and webhooks."""

import uuid

import pytest

from labdata_client.errors import BadRequest, Conflict, LabdataError, NotFound


def unique(word):
    return f"{word} {uuid.uuid4().hex[:8]}"


@pytest.fixture
def colleague(lab):
    return lab.create_user(f"{uuid.uuid4().hex[:8]}@lab.example", name="Grace", role="viewer")


class TestGroups:
    def test_members_are_given_by_address_and_by_id(self, lab, colleague):
        name = unique("Microscopy")
        group = lab.create_group(name, [colleague.email.upper()])
        assert group.members == [colleague.id]
        assert name in {it["name"] for it in lab.groups()}
        assert lab.update_group(name, members=[]).members == []
        assert lab.update_group(group.id, members=[colleague.id]).members == [colleague.id]
        (user,) = [it for it in lab.users() if it["id"] == colleague.id]
        assert (user["role"], user["groups"]) == ("viewer", [name])
        lab.delete_group(name)
        assert name not in {it["name"] for it in lab.groups()}

    def test_a_table_says_who_may(self, lab, colleague):
        name = unique("Chemistry")
        lab.create_group(name, [colleague.email])
        table = f"titration_{uuid.uuid4().hex[:8]}"
        lab.define_table(table, [{"name": "ph", "data_type": "float"}], access={"read": [name]})
        access = lab.access(table)
        assert access.access["read"] == [name]
        assert {user["email"]: user["may_write"] for user in access.users}[colleague.email] is False
        with pytest.raises(Conflict, match=table):
            lab.delete_group(name)
        with pytest.raises(NotFound):
            lab.access("no_such_table")

    def test_unknown_names_are_errors_that_say_so(self, lab):
        with pytest.raises(LabdataError, match=r"no user 'nobody@lab\.example'"):
            lab.create_group(unique("x"), ["nobody@lab.example"])
        with pytest.raises(LabdataError, match="no group 'Nobody'"):
            lab.delete_group("Nobody")


class TestUsers:
    def test_a_role_changes_and_a_user_is_disabled(self, lab, colleague):
        assert lab.update_user(colleague.email, role="member").role == "member"
        assert lab.update_user(colleague.id, disabled=True).disabled_at is not None
        with pytest.raises(BadRequest, match="last"):
            lab.update_user("admin@localhost", role="viewer")


class TestInvitations:
    def test_an_invitation_has_a_link_once_and_says_why_no_email_was_sent(self, lab):
        made = lab.invite("ada@lab.example", role="viewer")
        assert "#token=" in made.url
        assert made.email_sent is False
        assert "no mail server" in made.email_error
        (listed,) = [it for it in lab.invitations() if it["id"] == made.id]
        assert "url" not in listed
        lab.revoke_invitation(made.id)
        assert made.id not in {it["id"] for it in lab.invitations()}
        assert lab.invite("ada@lab.example", send_email=False).email_error is None


class TestWebhooks:
    def test_a_webhook_is_made_changed_tested_and_deleted(self, lab):
        # The address is of a network for documentation: nothing listens there.
        made = lab.create_webhook("http://192.0.2.1/hook", ["data.written"], table="experiment")
        assert made.secret.startswith("whsec_")
        assert made.filters == {"table": "experiment"}
        assert made.id in {it["id"] for it in lab.webhooks()}
        delivery = lab.test_webhook(made.id)
        assert [it["id"] for it in lab.deliveries(made.id, limit=5)] == [delivery.id]
        assert lab.rotate_webhook(made.id).secret != made.secret
        changed = lab.update_webhook(made.id, events=["*"], filters={}, enabled=False)
        assert (changed.events, changed.filters, changed.enabled) == (["*"], {}, False)
        lab.update_webhook(made.id, enabled=True)
        assert lab.resend(made.id, delivery.id).id == delivery.id
        lab.delete_webhook(made.id)
        with pytest.raises(NotFound):
            lab.deliveries(made.id)
