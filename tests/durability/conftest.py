"""The daemon of the end-to-end tests, for those here that need a whole one."""

from tests.e2e.conftest import make_house

__all__ = ["make_house"]
