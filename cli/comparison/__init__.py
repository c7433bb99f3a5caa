"""The comparison of toy models: running it, the walkthrough before it, and the report of both."""
