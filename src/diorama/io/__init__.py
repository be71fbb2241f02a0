"""Files: safe readers of images, arrays and tables; atomic writes; locks; digests; the layout of run directories."""
