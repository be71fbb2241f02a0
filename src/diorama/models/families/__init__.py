"""Families of networks, one readable file each: those that FunnyBirds compares, in their authors' layout of weights."""
