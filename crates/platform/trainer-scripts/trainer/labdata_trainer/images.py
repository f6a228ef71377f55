"""Image files: checks that they can be read, and writes masks."""

from __future__ import annotations

import base64
import io
from pathlib import Path

import numpy as np
from PIL import Image, ImageFile

from .failure import bad_data
from .numbers import quoted


def unreadable(path: Path) -> str | None:
    """Returns the reason why an image cannot be read; none for a readable one."""
    # AutoGluon turns it on, and would read images that are cut off.
    ImageFile.LOAD_TRUNCATED_IMAGES = False
    try:
        with Image.open(path) as image:
            image.load()
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        return str(error).replace(repr(str(path)), "the file").replace(str(path), "the file")
    return None


def check(images: dict[str, Path]) -> None:
    """Rejects files that are no readable images."""
    for file, path in images.items():
        reason = unreadable(path)
        if reason is not None:
            raise bad_data(
                "image_unreadable",
                f"The file {quoted(file)} cannot be read as an image: {reason}. Upload it again, "
                "or leave its row out of the dataset.",
            )


def png(image: np.ndarray) -> str:
    """Returns a gray image as a PNG in base64."""
    file = io.BytesIO()
    Image.fromarray(image).save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()
