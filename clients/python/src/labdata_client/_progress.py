"""Progress bars on a terminal and in notebooks, nothing elsewhere."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import TracebackType


class Progress:
    """A progress bar, or nothing where no one would see it."""

    def __init__(self, shown: bool | None, description: str, unit: str, total: int | None) -> None:
        self._bar: Any = None
        if shown is None:
            shown = _is_watched()
        if shown:
            tqdm: Any = importlib.import_module("tqdm.auto").tqdm
            self._bar = tqdm(
                total=total, desc=description, unit=unit, unit_scale=unit == "B", unit_divisor=1024
            )
        self._done = 0

    def advance(self, count: int) -> None:
        """Add `count` units."""
        self._done += count
        if self._bar is not None:
            self._bar.update(count)

    def restart(self) -> None:
        """Begin at zero, as a retried upload does."""
        self.advance(-self._done)

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.close()


def _is_watched() -> bool:
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is not None and "IPKernelApp" in getattr(shell, "config", {}):
        return True
    return sys.stderr is not None and sys.stderr.isatty()  # pyright: ignore[reportUnnecessaryComparison] - pythonw
