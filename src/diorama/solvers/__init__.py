"""Numerical solvers shared by methods; they import nothing of ours."""
