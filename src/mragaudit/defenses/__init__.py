"""The defenses of the hook audit's grid, as plug-ins on the hooks of the pipeline.

They are re-implementations of the baselines of "Mind the Hook" (arXiv 2608.09001), not code of the papers whose names
some of them carry. What the source leaves open is ours; each module says what.
"""
