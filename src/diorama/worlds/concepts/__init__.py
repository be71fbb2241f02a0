"""Staged concept sets, and the test and random scenes that go with them."""
