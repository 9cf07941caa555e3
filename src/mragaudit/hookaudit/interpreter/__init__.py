"""The abstract interpreter: what a hook does to its input, found by running its source on one symbolic value.

`statements.Interpreter` is the whole; each module adds one kind of construct to the class of the one before, from
`machine` (names, settings, budget) and `truth` on. `values` and `state` hold what it computes with.
"""
