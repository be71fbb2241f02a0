"""Launchers: `local`, `ray` and `slurm` have the units of a run computed and its rows written; see `contract`."""
