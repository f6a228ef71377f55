"""Tests of the trainer: `just test-trainer`, and `just test-multimodal` for `multimodal_*.py`."""
