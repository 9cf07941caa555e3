"""The checks of a bundle as text."""

from __future__ import annotations

from mragaudit import __version__
from mragaudit.bundle.kinds import AUDIT
from mragaudit.stages.verify import Verification


def render_verification(done: Verification, *, expected: bool) -> str:
    """Return the checks as text, one line each, faults below; the verdict last."""
    run = f"run {done.run}" if done.kind == AUDIT.name else f"the {done.kind} of run {done.run}"
    lines = [f"bundle of {run}, made with mragaudit {done.made_with}, checked with {__version__}"]
    width = max(16, *(len(check.name) for check in done.checks))
    for check in done.checks:
        state = "FAILED" if check.state == "failed" else check.state
        lines.append(f"{state:<13} {check.name:<{width}} {check.detail}".rstrip())
        lines += [f"{'':<13} -> {fault}" for fault in check.faults]
    lines.append(f"root digest: {done.digest}")
    return "\n".join([*lines, _verdict(done, expected=expected)])


def _verdict(done: Verification, *, expected: bool) -> str:
    failed = [check.name for check in done.checks if check.state == "failed"]
    if failed:
        return f"NOT VERIFIED: {', '.join(failed)}"
    open_points = [check.name for check in done.checks if check.state == "not compared"]
    apart = f"; not compared: {', '.join(open_points)}" if open_points else ""
    if expected:
        return f"verified{apart}"
    return f"verified as consistent{apart}; hold the root digest against the one that was published (--expect)"
