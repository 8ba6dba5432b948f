"""Tests of the store on real files: what is acknowledged is there, whatever happens to process, disk and file."""
