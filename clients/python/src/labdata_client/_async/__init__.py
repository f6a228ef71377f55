"""The asynchronous client; the synchronous one is generated from it."""
