"""Masks from probabilities."""

from __future__ import annotations

import base64
import io
import unittest

import numpy as np
from PIL import Image

from labdata_trainer import masks
from labdata_trainer.masks import Options


def drawn(*rows: str) -> np.ndarray:
    """Returns probabilities: `#` is 0.9, `+` 0.6, `.` 0.1."""
    values = {"#": 0.9, "+": 0.6, ".": 0.1}
    return np.array([[values[pixel] for pixel in row] for row in rows])


def shown(mask: np.ndarray) -> list[str]:
    """Returns a mask as rows of text."""
    return ["".join("#" if pixel else "." for pixel in row) for row in mask]


RING = drawn("......", ".####.", ".#..#.", ".####.", ".....#")


class Foreground(unittest.TestCase):
    """Which pixels belong to a mask."""

    def test_pixels_count_from_the_threshold(self) -> None:
        probabilities = drawn("#+.", ".+#")
        for threshold, expected in [
            (0.0, ["###", "###"]),
            (0.5, ["##.", ".##"]),
            (0.6, ["##.", ".##"]),
            (0.61, ["#..", "..#"]),
            (1.0, ["...", "..."]),
        ]:
            chosen = Options(pixel_threshold=threshold, max_hole_pixels=0)
            self.assertEqual(shown(masks.foreground(probabilities, chosen)), expected, threshold)

    def test_small_regions_are_dropped(self) -> None:
        probabilities = drawn("##...", "##..#", "...#.", "#....")
        chosen = Options(min_region_pixels=2)
        expected = ["##...", "##..#", "...#.", "....."]
        self.assertEqual(shown(masks.foreground(probabilities, chosen)), expected)
        chosen = Options(min_region_pixels=5)
        self.assertFalse(masks.foreground(probabilities, chosen).any())

    def test_holes_are_filled_up_to_their_size(self) -> None:
        filled = ["......", ".####.", ".####.", ".####.", ".....#"]
        ring = ["......", ".####.", ".#..#.", ".####.", ".....#"]
        for most, expected in [(None, filled), (2, filled), (1, ring), (0, ring)]:
            chosen = Options(max_hole_pixels=most)
            self.assertEqual(shown(masks.foreground(RING, chosen)), expected, most)

    def test_background_at_the_edge_is_no_hole(self) -> None:
        open_ring = drawn("####", "#..#", "#..#", "#..#")
        self.assertEqual(shown(masks.foreground(open_ring, Options()))[-1], "#..#")

    def test_a_region_that_is_dropped_encloses_no_hole(self) -> None:
        chosen = Options(min_region_pixels=12)
        self.assertFalse(masks.foreground(RING, chosen).any())

    def test_an_image_without_background_and_one_without_foreground(self) -> None:
        for value, expected in [(0.9, True), (0.1, False)]:
            found = masks.foreground(np.full((3, 4), value), Options(min_region_pixels=2))
            self.assertEqual(found.all(), expected)
            self.assertEqual(found.any(), expected)


class Classes(unittest.TestCase):
    """Masks of an answer."""

    def test_a_mask_is_white_on_transparent(self) -> None:
        image, found = masks.of_classes(drawn("#+..", "...."), Options())
        self.assertEqual(image.tolist(), [[255, 255, 0, 0], [0, 0, 0, 0]])
        (mask,) = found
        self.assertEqual((mask["width"], mask["height"], mask["class"]), (4, 2, None))
        self.assertAlmostEqual(mask["foreground_fraction"], 0.25)
        self.assertAlmostEqual(mask["confidence"], 0.75)
        picture = Image.open(io.BytesIO(base64.b64decode(mask["mask"]))).convert("RGBA")
        pixels = np.asarray(picture)
        self.assertEqual((pixels[..., 3] == 255).tolist(), (image == 255).tolist())
        self.assertTrue((pixels[..., :3] == 255).all())

    def test_a_mask_without_confidence_or_foreground_is_left_out(self) -> None:
        for probabilities, chosen in [
            (drawn("#+..", "...."), Options(min_confidence=0.76)),
            (drawn("....", "...."), Options()),
        ]:
            image, found = masks.of_classes(probabilities, chosen)
            self.assertEqual((image.max(), found), (0, []))

    def test_several_classes_have_a_mask_each(self) -> None:
        first = drawn("##..", "##..")
        second = drawn("..##", "....") / 2 + 0.25
        background = np.full((2, 4), 0.2)
        image, found = masks.of_classes(np.stack([background, first, second]), Options())
        self.assertEqual([it["class"] for it in found], [1, 2])
        self.assertEqual(image.tolist(), [[1, 1, 2, 2], [1, 1, 0, 0]])

    def test_options_of_a_request_are_read(self) -> None:
        self.assertEqual(masks.options(None), Options())
        given = {"pixel_threshold": 0.3, "max_hole_pixels": None, "unknown": 1}
        self.assertEqual(masks.options(given), Options(pixel_threshold=0.3))


if __name__ == "__main__":
    unittest.main()
