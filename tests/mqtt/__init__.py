"""Tests of the link to the broker."""
