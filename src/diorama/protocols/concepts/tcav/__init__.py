"""Testing with concept activation vectors."""
