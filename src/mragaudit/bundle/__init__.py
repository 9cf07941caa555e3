"""The archive of one run: what it holds, how it is written, and how it is read without trusting it."""
