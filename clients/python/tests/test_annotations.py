"""Annotations of images."""

import base64
import io
import uuid
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from labdata_client import _masks
from labdata_client.errors import BadRequest, InvalidArgument, LocalFileNotFound, NotFound


def picture(width=12, height=5):
    """Return a PNG of that size."""
    file = io.BytesIO()
    Image.new("RGB", (width, height), "red").save(file, "PNG")
    return file.getvalue()


def square():
    """Return a mask of two by three pixels at (3, 1)."""
    mask = np.zeros((5, 12), dtype=bool)
    mask[1:4, 3:5] = True
    return mask


@pytest.fixture
def image(lab):
    name = f"camera {uuid.uuid4().hex[:8]}"
    lab.request("POST", "/instruments", json={"name": name}, creates=True)
    return lab.upload(picture(), name="cells.png", instrument=name)


class TestAnnotate:
    def test_masks_of_every_form_are_saved_in_their_order(self, lab, image, tmp_path):
        path = tmp_path / "mask.png"
        path.write_bytes(_masks.png(square().tolist()))
        text = base64.b64encode(path.read_bytes()).decode()
        sparse = np.where(square(), 1.0, np.nan)
        forms = [
            square(),
            square().tolist(),
            path,
            path.read_bytes(),
            text,
            str(path),
            sparse,
            list(square()),
        ]
        saved = lab.annotate(image, [{"mask": mask, "label": f"form {at}"} for at, mask in enumerate(forms)])
        assert [it["label"] for it in saved] == [f"form {at}" for at in range(len(forms))]
        for annotation in saved:
            assert annotation["bbox"] == {"x": 3, "y": 1, "width": 2, "height": 3}
            assert annotation["foreground_fraction"] == 0.1
        assert [it["id"] for it in lab.annotations(image["file_id"])] == [it["id"] for it in saved]

    def test_masks_of_an_execution_go_with_its_revert(self, lab, image):
        with lab.execution("Label by script") as run:
            run.annotate(image, [{"mask": square(), "label": "cell", "is_human_vetted": True}])
        assert lab.annotations(image)[0]["is_human_vetted"] is True
        run.revert()
        assert lab.annotations(image) == []

    def test_a_dataset_is_made_of_vetted_masks(self, lab, image):
        lab.annotate(image, [{"mask": square(), "label": "client", "is_human_vetted": True}])
        dataset = lab.create_dataset("cells", label="client", annotated=True)
        assert (dataset.row_count, dataset.label) == (1, "client")
        assert [column["name"] for column in dataset.columns] == ["image", "mask"]

    def test_refusals_are_errors(self, lab, image):
        with pytest.raises(BadRequest, match="empty"):
            lab.annotate(image, [{"mask": np.zeros((5, 12)), "label": "cell"}])
        with pytest.raises(InvalidArgument, match="label"):
            lab.annotate(image, [{"mask": square()}])
        with pytest.raises(InvalidArgument, match="one length"):
            lab.annotate(image, [{"mask": [[1, 0], [1]], "label": "cell"}])
        with pytest.raises(BadRequest, match="empty"):
            lab.annotate(image, [{"mask": np.full((5, 12), np.nan), "label": "cell"}])
        with pytest.raises(InvalidArgument, match=r"mask\.png.*neither a file"):
            lab.annotate(image, [{"mask": "mask.png", "label": "cell"}])
        with pytest.raises(LocalFileNotFound):
            lab.annotate(image, [{"mask": Path("mask.png"), "label": "cell"}])
        for mask in (
            7,
            None,
            [1, 0],
            [["a", "b"]],
            [[[1], [0]]],
            np.zeros(5),
            np.zeros((5, 12, 3)),
            object(),
        ):
            with pytest.raises(InvalidArgument, match="mask"):
                lab.annotate(image, [{"mask": mask, "label": "cell"}])
        for annotation in ("mask", 7, None):
            with pytest.raises(InvalidArgument, match="mapping"):
                lab.annotate(image, [annotation])
        for file in (None, {"id": "x"}, 1.5):
            with pytest.raises(InvalidArgument, match="file is a name or an id"):
                lab.annotations(file)
        with pytest.raises(NotFound):
            lab.annotations("00000000-0000-7000-8000-000000000000")


def test_a_mask_is_white_on_transparent():
    pixels = np.asarray(Image.open(io.BytesIO(_masks.png(square().tolist()))).convert("RGBA"))
    assert (pixels[..., :3] == 255).all()
    assert ((pixels[..., 3] == 255) == square()).all()
