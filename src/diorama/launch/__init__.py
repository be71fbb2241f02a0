"""Launchers: `local`, `ray` and `slurm` hand out the units of a run and bring its rows home; see `contract`."""
