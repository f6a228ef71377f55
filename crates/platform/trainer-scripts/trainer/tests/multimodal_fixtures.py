"""Tiny checkpoints with random weights, and pictures with their masks.

`python -m tests.multimodal_fixtures DIRECTORY` writes them for tests in other languages: `checkpoints/image`,
`checkpoints/text`, `checkpoints/segmentation`, `images/image-0.png`, `images/mask-0.png` and so on.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

from PIL import Image, ImageDraw

ROWS = 40
SIDE = 32


def write_checkpoints(directory: Path) -> None:
    """Writes a checkpoint of each kind."""
    directory.mkdir(parents=True)
    image_checkpoint(directory / "image")
    text_checkpoint(directory / "text")
    segmentation_checkpoint(directory / "segmentation")


def image_checkpoint(directory: Path) -> None:
    """Writes a small convolutional network of timm."""
    import timm
    import torch

    directory.mkdir()
    model = timm.create_model("mobilenetv3_small_050", num_classes=0)
    torch.save(model.state_dict(), directory / "pytorch_model.bin")
    settings = {
        "architecture": "mobilenetv3_small_050",
        "num_features": model.num_features,
        "pretrained_cfg": {
            # Batch normalization needs more than one value, also for a last batch of one row.
            "input_size": [3, 4 * SIDE, 4 * SIDE],
            "mean": [0.5, 0.5, 0.5],
            "std": [0.5, 0.5, 0.5],
        },
    }
    (directory / "config.json").write_text(json.dumps(settings))


def text_checkpoint(directory: Path) -> None:
    """Writes a small BERT with a vocabulary of letters."""
    from transformers import BertConfig, BertModel, BertTokenizerFast

    directory.mkdir()
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = directory / "vocab.txt"
    vocabulary.write_text("\n".join([*special, *letters, *(f"##{it}" for it in letters)]))
    BertTokenizerFast(vocab_file=str(vocabulary)).save_pretrained(directory)
    settings = BertConfig(
        vocab_size=64,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=512,
    )
    BertModel(settings).save_pretrained(directory)


def segmentation_checkpoint(directory: Path) -> None:
    """Writes a small SAM."""
    from transformers import SamConfig, SamModel

    side, width = 64, 32
    settings = SamConfig(
        vision_config={
            "hidden_size": width,
            "output_channels": width,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "image_size": side,
            "patch_size": 16,
            "window_size": 2,
            "global_attn_indexes": [1],
            "mlp_dim": 64,
            "num_pos_feats": width // 2,
        },
        prompt_encoder_config={
            "hidden_size": width,
            "image_size": side,
            "patch_size": 16,
            "mask_input_channels": 4,
        },
        mask_decoder_config={
            "hidden_size": width,
            "mlp_dim": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "iou_head_hidden_dim": width,
        },
    )
    SamModel(settings).save_pretrained(directory)


def write_images(directory: Path) -> None:
    """Draws discs, blue in even rows and red in odd ones, and their masks."""
    directory.mkdir(parents=True)
    randomness = random.Random(3)
    for row in range(ROWS):
        image, mask = Image.new("RGB", (SIDE, SIDE), "white"), Image.new("L", (SIDE, SIDE), 0)
        left, top = randomness.randrange(2, 14), randomness.randrange(2, 14)
        box = (left, top, left + 14, top + 14)
        ImageDraw.Draw(image).ellipse(box, fill="red" if row % 2 else "blue")
        ImageDraw.Draw(mask).ellipse(box, fill=255)
        for name, picture in ((f"image-{row}", image), (f"mask-{row}", mask)):
            picture.save(directory / f"{name}.png")


if __name__ == "__main__":
    target = Path(sys.argv[1])
    write_checkpoints(target / "checkpoints")
    write_images(target / "images")
