"""Recorded worlds: published data sets and folders of your own, one file each."""
