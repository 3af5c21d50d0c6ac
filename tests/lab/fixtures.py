"""Fixtures of the lab."""
