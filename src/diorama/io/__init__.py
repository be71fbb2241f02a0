"""Files: images, arrays and tables read with care, files written whole, locks, digests, and what lies where in a run."""
