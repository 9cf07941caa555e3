"""Intervals, paired tests, multiplicity, agreement: arrays in, frozen records out, generator passed in."""
