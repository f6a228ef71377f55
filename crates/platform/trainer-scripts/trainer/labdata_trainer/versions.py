"""Versions of Python and of the packages that an artifact depends on."""

from __future__ import annotations

import importlib.metadata
import platform

PACKAGES = (
    "autogluon.tabular",
    "autogluon.multimodal",
    "lightgbm",
    "numpy",
    "pandas",
    "pyarrow",
    "scikit-learn",
    "scipy",
    "torch",
    "transformers",
    "timm",
)


def versions() -> dict[str, str]:
    """Returns the installed versions by package."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
