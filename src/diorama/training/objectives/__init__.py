"""What learners of codes minimise beside the reconstruction: one file per objective, its formula in the docstring."""
