"""Adjusts requests of schemathesis and drops the failures that accepted_answers.toml lists."""

from __future__ import annotations

import itertools
import os
import uuid

import schemathesis
from schemathesis.core.failures import AcceptedNegativeData, Failure, ServerError
from schemathesis.openapi.checks import RejectedPositiveData

from accepted_answers import is_listed_leniency, is_listed_refusal

_OWN_KEY = os.environ["OPENAPI_TEST_KEY_ID"]
_requests = itertools.count()


@schemathesis.hook
def before_call(context: schemathesis.HookContext, case: schemathesis.Case, kwargs: dict) -> None:
    # Without its key it would see nothing but 401.
    if case.path_parameters and case.path_parameters.get("api_key_id") == _OWN_KEY:
        case.path_parameters["api_key_id"] = str(uuid.uuid4())
    # The same key for two bodies is refused, before anything else of the request is looked at.
    is_valid = case.meta is not None and case.meta.generation.mode.is_positive
    if is_valid and case.headers and "Idempotency-Key" in case.headers:
        case.headers["Idempotency-Key"] = f"request-{next(_requests)}"


@schemathesis.hook
def filter_failure(
    context: schemathesis.HookContext, failure: Failure, case: schemathesis.Case, response: schemathesis.Response
) -> bool:
    operation = case.operation.definition.raw["operationId"]
    match failure:
        case RejectedPositiveData() | ServerError():
            return not is_listed_refusal(operation, response.status_code, response.content)
        case AcceptedNegativeData():
            return not is_listed_leniency(operation, failure.message)
    return True
