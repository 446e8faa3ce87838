"""One table in, one self-contained HTML page out: what a classifier knows and how sure it is."""
