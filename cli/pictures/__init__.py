"""Pictures for the terminal: plain functions from plain data to what rich can print."""
