"""Failures with an exit code, a stable code and a message for the requester of the model."""

from __future__ import annotations

import errno
from enum import IntEnum


class Exit(IntEnum):
    """Exit codes of a training."""

    OK = 0
    BAD_DATA = 10
    UNSUPPORTED = 11
    MISSING = 12
    TIME_LIMIT = 13
    MEMORY = 14
    INTERNAL = 20
    CANCELLED = 143


class Failure(Exception):
    """End of a training or of a predictor, as it is written to `error.json`."""

    def __init__(self, exit_code: Exit, code: str, message: str) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.code = code
        self.message = message

    def as_json(self) -> dict[str, object]:
        """Returns the content of `error.json`."""
        return {"code": self.code, "exit_code": int(self.exit_code), "message": self.message}


def bad_data(code: str, message: str) -> Failure:
    """Returns a failure that another dataset or other columns avoid."""
    return Failure(Exit.BAD_DATA, code, message)


def unsupported(code: str, message: str) -> Failure:
    """Returns a failure that another choice of task, problem type or columns avoids."""
    return Failure(Exit.UNSUPPORTED, code, message)


def out_of_memory() -> Failure:
    """Returns the failure of a training that needs more memory than it may use."""
    return Failure(
        Exit.MEMORY,
        "out_of_memory",
        "The training needs more memory than it may use. Use fewer rows or fewer feature columns, "
        "choose medium_quality, or ask the operator of the server for a higher memory limit.",
    )


def time_limit_too_short(seconds: float) -> Failure:
    """Returns the failure of a training that fitted no model within its time limit."""
    return Failure(
        Exit.TIME_LIMIT,
        "time_limit_too_short",
        f"No model was ready within the time limit of {seconds:g} seconds. Use fewer rows or fewer "
        "feature columns, choose medium_quality, or ask the operator of the server for a higher "
        "time limit.",
    )


# Names of exception classes, since the libraries that define them may not be installed.
MEMORY_ERRORS = {
    "MemoryError",
    "NotEnoughMemoryError",
    "NotEnoughCudaMemoryError",
    "OutOfMemoryError",
    "ArrowMemoryError",
}
# Texts of the linker and of native libraries.
MEMORY_SIGNS = (
    "annot allocate memory",
    "failed to map segment",
    "bad_alloc",
    "bad allocation",
)
TIME_ERRORS = {"TimeLimitExceeded", "InsufficientTime"}


def names(error: BaseException) -> set[str]:
    """Returns the class names of an error, of its base classes and of its causes."""
    found: set[str] = set()
    seen: set[int] = set()
    current: BaseException | None = error
    # An error can be its own cause.
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        found.update(base.__name__ for base in type(current).__mro__)
        current = current.__cause__ or current.__context__
    return found


def is_memory_error(error: BaseException) -> bool:
    """Returns true if the error means that memory ran out."""
    return bool(names(error) & MEMORY_ERRORS) or any(sign in str(error) for sign in MEMORY_SIGNS)


def dependency_missing(error: ImportError) -> Failure:
    """Returns the failure of an environment that lacks a package."""
    return Failure(
        Exit.MISSING,
        "dependency_missing",
        f"The training environment lacks a package: {error}. Ask the operator of the server to "
        "delete the environment, so that it is installed again.",
    )


def explain_loading(error: BaseException) -> Failure:
    """Returns the failure that an error means while a predictor starts."""
    if isinstance(error, Failure):
        return error
    if is_memory_error(error):
        return Failure(
            Exit.MEMORY,
            "out_of_memory",
            "The model needs more memory than a predictor may use. Train it with a lower quality "
            "preset, or ask the operator of the server for a higher memory limit.",
        )
    if isinstance(error, ImportError):
        return dependency_missing(error)
    return Failure(
        Exit.INTERNAL,
        "model_not_loadable",
        f"The model cannot be loaded: {type(error).__name__}: {error}",
    )


def explain(error: BaseException, time_limit: float) -> Failure:
    """Returns the failure that an error means."""
    if isinstance(error, Failure):
        return error
    if is_memory_error(error):
        return out_of_memory()
    if names(error) & TIME_ERRORS or "Not enough time left" in str(error):
        return time_limit_too_short(time_limit)
    if isinstance(error, ImportError):
        return dependency_missing(error)
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return Failure(
            Exit.INTERNAL,
            "disk_full",
            "The disk of the training machine is full. Ask the operator to free space.",
        )
    return Failure(
        Exit.INTERNAL,
        "internal",
        f"The training failed unexpectedly: {type(error).__name__}: {error}",
    )
