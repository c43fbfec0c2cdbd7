"""Peers of the benchmark that have no C library: worker.py runs one of them."""
