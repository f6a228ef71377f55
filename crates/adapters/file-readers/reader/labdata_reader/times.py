"""Times of files, which mostly name no zone."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from zoneinfo import ZoneInfo

from allotropy.parsers.utils.timestamp_parser import TimestampParser

# Day and month that can be exchanged.
AMBIGUOUS_DATE = re.compile(r"\b(0?[1-9]|1[0-2])[/.-](0?[1-9]|1[0-2])[/.-](\d{4}|\d\d)\b")


def in_utc(time: str) -> str:
    """Returns a time with an offset in UTC, as the platform's API writes it."""
    return datetime.fromisoformat(time).astimezone(timezone.utc).isoformat().replace("+00:00", "Z")


class Times(TimestampParser):
    """Reads times in the zone of the instrument, and notes what is uncertain about them."""

    def __init__(self, zone: str | None) -> None:
        self.zone = ZoneInfo(zone) if zone else None
        super().__init__(self.zone or timezone.utc)
        self.is_zone_assumed = False
        self.ambiguous_date: str | None = None
        self.unclear: dict[str, str] = {}

    def parse(self, time: str) -> str:
        """Reads a time as ISO 8601."""
        text = super().parse(time)
        date = AMBIGUOUS_DATE.search(time)
        if date and date[1].lstrip("0") != date[2].lstrip("0"):
            self.ambiguous_date = date[0]
        parsed = datetime.fromisoformat(text)
        if self._is_local(time, parsed):
            if self.zone is None:
                self.is_zone_assumed = True
            else:
                self._note_clock_change(text, parsed)
        return text

    @staticmethod
    def _is_local(time: str, parsed: datetime) -> bool:
        """Returns true if the text names no zone: another zone would then give another time."""
        other = TimestampParser(ZoneInfo("Pacific/Kiritimati")).parse(time)
        return datetime.fromisoformat(other) != parsed

    def _note_clock_change(self, text: str, parsed: datetime) -> None:
        local = parsed.replace(tzinfo=self.zone)
        if local.astimezone(timezone.utc).astimezone(self.zone).replace(tzinfo=None) != local.replace(tzinfo=None):
            self.unclear[text] = "the clocks of the zone leave this time out"
        elif local.utcoffset() != local.replace(fold=1).utcoffset():
            self.unclear[text] = "the clocks of the zone show this time twice"

    def doubts(self) -> list[str]:
        """Returns what a person should know about the times."""
        found = []
        if self.is_zone_assumed:
            found.append("the file's times name no zone and were taken as UTC: set the instrument's timezone")
        if self.ambiguous_date:
            found.append(f"dates such as {self.ambiguous_date} were read with the month first")
        return found
