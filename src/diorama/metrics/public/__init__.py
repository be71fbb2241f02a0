"""The functions of `diorama.metrics`: arrays in, a number with its interval out."""
