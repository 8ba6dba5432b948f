"""Fixtures of every test: the brokers and the small model live in modules of their own."""

pytest_plugins = ["tests.brokers", "tests.model"]
