"""`python -m diorama` is the command line."""

from diorama.cli import main

main()
