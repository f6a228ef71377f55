"""Masks from the probabilities of pixels: thresholds, small regions, holes.

Only numpy, SciPy and Pillow are needed here, no model.
"""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image
from scipy import ndimage

# Pixels that touch at a corner belong to one region; a hole is closed by pixels that do.
REGION = np.ones((3, 3), dtype=bool)


@dataclass(frozen=True)
class Options:
    """Thresholds. `max_hole_pixels` of none fills every hole."""

    pixel_threshold: float = 0.5
    min_region_pixels: int = 0
    max_hole_pixels: int | None = None
    min_confidence: float = 0.0


def options(given: Any) -> Options:
    """Returns the thresholds of a request, which the platform has checked."""
    if not isinstance(given, dict):
        return Options()
    known = {name: given[name] for name in Options.__dataclass_fields__ if name in given}
    return Options(**known)


def foreground(probabilities: np.ndarray, chosen: Options) -> np.ndarray:
    """Returns which pixels belong to the mask."""
    mask = probabilities >= chosen.pixel_threshold
    return fill_holes(drop_regions(mask, chosen.min_region_pixels), chosen.max_hole_pixels)


def drop_regions(mask: np.ndarray, least: int) -> np.ndarray:
    """Drops connected regions with fewer pixels."""
    if least <= 1:
        return mask
    regions, _ = ndimage.label(mask, structure=REGION)
    sizes = np.bincount(regions.ravel())
    is_kept = sizes >= least
    # The background.
    is_kept[0] = False
    return is_kept[regions]


def fill_holes(mask: np.ndarray, most: int | None) -> np.ndarray:
    """Fills holes: background that the mask encloses, all of it or up to a number of pixels."""
    if most == 0:
        return mask
    holes, _ = ndimage.label(~mask)
    sizes = np.bincount(holes.ravel())
    is_filled = np.ones(len(sizes), dtype=bool) if most is None else sizes <= most
    # What reaches the edge of the image is no hole.
    for edge in (holes[0], holes[-1], holes[:, 0], holes[:, -1]):
        is_filled[edge] = False
    # The mask itself.
    is_filled[0] = True
    return is_filled[holes]


def described(mask: np.ndarray, probabilities: np.ndarray, label: int | None) -> dict[str, Any]:
    """Returns a mask with foreground as an answer has it."""
    height, width = mask.shape
    return {
        "class": label,
        "mask": transparent_png(mask),
        "width": width,
        "height": height,
        "foreground_fraction": float(mask.mean()),
        "confidence": float(np.clip(probabilities[mask].mean(), 0, 1)),
    }


def of_classes(
    probabilities: np.ndarray, chosen: Options
) -> tuple[np.ndarray, list[dict[str, Any]]]:
    """Returns the image of an answer, and its masks: one of each class with enough confidence.

    `probabilities` is of one class (height, width), or of the background and further classes
    (class, height, width), of which the likeliest counts. Values of the image are 0 and 255 for one
    class, else the number of the class.
    """
    if probabilities.ndim == 2:
        candidates = [(None, 255, probabilities)]
    else:
        likeliest = probabilities.argmax(axis=0)
        candidates = [
            (label, label, np.where(likeliest == label, probabilities[label], -1.0))
            for label in range(1, len(probabilities))
        ]
    image = np.zeros(probabilities.shape[-2:], dtype="uint8")
    masks = []
    for label, value, values in candidates:
        mask = foreground(values, chosen)
        if not mask.any():
            continue
        # Filled holes have probabilities as well, those of another class none.
        found = described(mask, np.clip(values, 0, 1), label)
        if found["confidence"] >= chosen.min_confidence:
            image[mask] = value
            masks.append(found)
    return image, masks


def transparent_png(mask: np.ndarray) -> str:
    """Returns a PNG in base64 that is white in the mask, and transparent elsewhere."""
    image = Image.fromarray(mask.astype("uint8"))
    image.putpalette([255] * 6)
    file = io.BytesIO()
    image.save(file, "PNG", bits=1, transparency=0)
    return base64.b64encode(file.getvalue()).decode()
