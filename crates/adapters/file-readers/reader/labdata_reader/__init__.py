"""Reads files of instruments with allotropy, and makes rows of what it finds."""
