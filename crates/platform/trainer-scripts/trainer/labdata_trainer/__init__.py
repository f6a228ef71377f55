"""Trainer and predictor of ML models. Runs in the sandbox; README.md describes its interface."""
