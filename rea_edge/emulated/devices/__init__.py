"""Simulated third-party devices, each after its public documentation, for tests of your own. Holds this sentence only."""
