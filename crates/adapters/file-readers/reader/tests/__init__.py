"""Tests of the program that reads files of instruments."""
