"""The answers that accepted_answers.toml lists."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

_LISTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())


def is_listed_refusal(operation: str, status: int, body: bytes) -> bool:
    """Tell whether each problem that the answer reports is listed."""
    rules = [rule for rule in _LISTS["refusal"] if rule["status"] == status and _applies(rule, operation)]
    return all(any(re.search(rule["says"], problem) for rule in rules) for problem in _problems(body))


def is_listed_leniency(operation: str, failure: str) -> bool:
    """Tell whether it is listed that the operation accepts a request with what schemathesis made invalid in it."""
    return any(_applies(rule, operation) and re.search(rule["invalid"], failure) for rule in _LISTS["leniency"])


def _applies(rule: dict[str, Any], operation: str) -> bool:
    return operation in rule.get("operations", [operation])


def _problems(body: bytes) -> list[str]:
    """The messages of an error, whatever its form; the whole text where it is none of the API's."""
    try:
        error = json.loads(body)
        details = error["errors"] if "errors" in error else error["detail"]
    except (ValueError, KeyError, TypeError):
        return [body.decode("utf-8", "replace")]
    if isinstance(details, str):
        return [details]
    return [_message(detail) for detail in details]


def _message(detail: dict[str, Any]) -> str:
    if "message" in detail:
        return detail["message"]
    # What is wrong with the JSON stands beside the message.
    reason = detail.get("ctx", {}).get("error")
    return f"{detail['msg']}: {reason}" if detail["type"] == "json_invalid" else detail["msg"]
