"""What is behind docs/results: each study computes its rows and writes its page (scripts/reproduce NAME)."""
