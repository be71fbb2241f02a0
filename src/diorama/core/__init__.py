"""What every evaluation shares: scenes, frames, answers, rows, keys, specs, plans and runs."""
