"""Models: one file each; `zoo` holds the bundled checkpoints with their cards."""
