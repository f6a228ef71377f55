# Generated from ../_async by scripts/generate_sync.py: change that one.
"""The client."""
