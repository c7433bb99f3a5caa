"""Byte pair encoding: training, encoding, and the file formats of others."""
