"""Methods, by track: one file each."""
