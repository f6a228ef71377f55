# Generated from ../_async by scripts/generate_sync.py: change that one.
"""Operations for administrators: users, groups, invitations and webhooks."""

from __future__ import annotations

import contextlib
import uuid
from typing import TYPE_CHECKING, Any

from labdata_client._arguments import key_text, names, path_part
from labdata_client._results import Record, Rows
from labdata_client.errors import LabdataError

from ._operations import Operations

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Administration(Operations):
    """Operations of one platform, with one key. Most of this class need the scope `admin`."""

    # --- users, groups, rights ----------------------------------------------------------------------------

    def users(self) -> Rows:
        """Return the users of the organization, with `role` and `groups`."""
        return self._list("/users", {}, None)

    def create_user(self, email: str, *, name: str | None = None, role: str = "member") -> Record:
        """Add a user, without a key; `role` is `viewer`, `member` or `admin`."""
        body = _given(email=email, name=name, role=role)
        return Record(self.request("POST", "/users", json=body, creates=True))

    def update_user(
        self, user: str, *, name: str | None = None, role: str | None = None, disabled: bool | None = None
    ) -> Record:
        """Change a user, given by e-mail address or id. Keys and sessions follow within 5 s."""
        body = _given(name=name, role=role, disabled=disabled)
        user_id = self._user_id(user)
        return Record(self.request("PATCH", f"/users/{user_id}", json=body))

    def groups(self) -> Rows:
        """Return the groups of the organization; `members` are ids of users."""
        return self._list("/groups", {}, None)

    def create_group(self, name: str, members: Sequence[str] = ()) -> Record:
        """Create a group of users, given by e-mail addresses or ids."""
        body = {"name": name, "members": self._user_ids(members)}
        return Record(self.request("POST", "/groups", json=body, creates=True))

    def update_group(
        self, group: str, *, name: str | None = None, members: Sequence[str] | None = None
    ) -> Record:
        """Rename a group, or set its members; tables that name it follow."""
        group_id = self._group_id(group)
        ids = None if members is None else self._user_ids(members)
        return Record(self.request("PATCH", f"/groups/{group_id}", json=_given(name=name, members=ids)))

    def delete_group(self, group: str) -> None:
        """Delete a group, given by name or id. A group that a table names is a `Conflict`."""
        group_id = self._group_id(group)
        self.request("DELETE", f"/groups/{group_id}")

    def access(self, table: str) -> Record:
        """Return who may read and write a table: `access` by groups, and `users` with `may_write`."""
        return Record(self.request("GET", f"/tables/{path_part(table, 'table')}/access"))

    # --- invitations --------------------------------------------------------------------------------------

    def invitations(self) -> Rows:
        """Return the invitations that nobody has accepted yet, newest first."""
        return self._list("/invitations", {}, None)

    def invite(
        self, email: str, *, role: str = "member", groups: Sequence[str] = (), send_email: bool = True
    ) -> Record:
        """Invite a colleague: `url` signs in once, within 7 days.

        The platform sends the link by e-mail unless `send_email` is false; `email_error` says why it did not.
        """
        body = {"email": email, "role": role, "groups": names(groups, "groups"), "send_email": send_email}
        return Record(self.request("POST", "/invitations", json=body))

    def revoke_invitation(self, invitation_id: str) -> None:
        """Revoke an invitation: its link is refused from then on."""
        self.request("DELETE", f"/invitations/{path_part(invitation_id, 'invitation_id')}")

    # --- webhooks -----------------------------------------------------------------------------------------

    def webhooks(self) -> Rows:
        """Return the webhooks of the organization."""
        return self._list("/webhooks", {}, None)

    def create_webhook(
        self,
        url: str,
        events: Sequence[str] = ("*",),
        *,
        table: str | None = None,
        instrument: str | None = None,
        job: str | None = None,
        body_format: str = "standard",
    ) -> Record:
        """Send events of these types to an address; `secret`, which verifies them, is given this once.

        `table`, `instrument` and `job` (name or id) restrict the events to those that refer to them.
        `body_format` is `standard`, `slack` or `teams`.
        """
        filters = _given(
            table=table,
            instrument_id=None if instrument is None else self.instrument_id(instrument),
            job_id=None if job is None else self._id_of("job", "/jobs", job),
        )
        body = {"url": url, "events": names(events, "events"), "filters": filters, "format": body_format}
        return Record(self.request("POST", "/webhooks", json=body))

    def update_webhook(
        self,
        webhook_id: str,
        *,
        url: str | None = None,
        events: Sequence[str] | None = None,
        filters: Mapping[str, str] | None = None,
        enabled: bool | None = None,
    ) -> Record:
        """Change a webhook, disable or enable it."""
        known = None if events is None else names(events, "events")
        body = _given(url=url, events=known, filters=filters, enabled=enabled)
        return Record(self.request("PATCH", _webhook(webhook_id), json=body))

    def rotate_webhook(self, webhook_id: str) -> Record:
        """Make another secret; for 24 hours deliveries bear signatures of both."""
        return Record(self.request("POST", f"{_webhook(webhook_id)}/rotate"))

    def test_webhook(self, webhook_id: str) -> Record:
        """Send a delivery of the type `webhook.test`, and return it as it waits."""
        return Record(self.request("POST", f"{_webhook(webhook_id)}/test"))

    def deliveries(self, webhook_id: str, *, limit: int | None = None) -> Rows:
        """Return the deliveries of the last 14 days, newest first, with `status` and `error`."""
        return self._list(f"{_webhook(webhook_id)}/deliveries", {}, limit)

    def resend(self, webhook_id: str, delivery_id: str) -> Record:
        """Send a delivery again, under its id."""
        path = f"{_webhook(webhook_id)}/deliveries/{path_part(delivery_id, 'delivery_id')}/resend"
        return Record(self.request("POST", path))

    def delete_webhook(self, webhook_id: str) -> None:
        """Delete a webhook with its deliveries."""
        self.request("DELETE", _webhook(webhook_id))

    def _group_id(self, group: str) -> str:
        group = key_text(group, "group")
        with contextlib.suppress(ValueError):
            return str(uuid.UUID(group))
        known = {record["name"]: record["id"] for record in self.groups()}
        if group not in known:
            message = f"no group {group!r}; there are: {', '.join(map(repr, known)) or 'none'}"
            raise LabdataError(message)
        return known[group]

    def _user_id(self, user: str) -> str:
        return (self._user_ids([user]))[0]

    def _user_ids(self, users: Sequence[str]) -> list[str]:
        """Return the ids of users that are given by e-mail addresses or ids."""
        users = [key_text(user, "users") for user in names(users, "users")]
        if not any("@" in user for user in users):
            return users
        known = {user["email"].lower(): user["id"] for user in self.users()}
        unknown = [user for user in users if "@" in user and user.lower() not in known]
        if unknown:
            message = f"no user {unknown[0]!r}; there are: {', '.join(sorted(known))}"
            raise LabdataError(message)
        return [known[user.lower()] if "@" in user else user for user in users]


def _webhook(webhook_id: str) -> str:
    return f"/webhooks/{path_part(webhook_id, 'webhook_id')}"


def _given(**fields: Any) -> dict[str, Any]:
    """Return the fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}
