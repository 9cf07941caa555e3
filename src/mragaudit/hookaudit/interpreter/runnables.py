"""LangChain's runnables, as far as they only run functions: a lambda, a passthrough, and several in a row."""

from __future__ import annotations

import ast

from mragaudit.hookaudit.interpreter.functions import Functions
from mragaudit.hookaudit.interpreter.machine import CallArgs, Spot
from mragaudit.hookaudit.interpreter.values import Bound, External, Func, Method, Partial, Value

LAMBDA, PASSTHROUGH, SEQUENCE = "RunnableLambda", "RunnablePassthrough", "RunnableSequence"
MOST_ARGUMENTS = {LAMBDA: 1, PASSTHROUGH: 0, SEQUENCE: 24}
PACKAGES = frozenset({"langchain", "langchain_core"})


def runnable_name(name: str) -> str:
    """Return which of the known runnables a dotted name is, or nothing."""
    last = name.rsplit(".", 1)[-1]
    known = name.split(".", 1)[0] in PACKAGES and last in {LAMBDA, PASSTHROUGH, SEQUENCE}
    return last if known else ""


class Runnables(Functions):
    """What runnables do; each is kept as a call of its class that is still to come."""

    def piped(self, left: Value, right: Value) -> Value | None:
        """Return `left | right` where one of them is a known runnable."""
        if not any(map(is_runnable, (left, right))):
            return None
        return Partial(External(f"langchain_core.runnables.{SEQUENCE}"), (left, right), ())

    def run_runnable(self, value: Value, args: CallArgs, *, node: ast.AST, spot: Spot) -> Value | None:
        """Return what a known runnable gives for its input; None where it is given more than functions in a row."""
        given = args.get(0, "input")
        if not isinstance(value, Partial) or given is None or dict(value.kwargs).keys() - {"name"}:
            return None
        if len(value.args) > MOST_ARGUMENTS.get(_kind(value), 0):
            return None
        for part in value.args:
            given = self._run_part(part, given, node=node, spot=spot)
        return given

    def _run_part(self, part: Value, given: Value, *, node: ast.AST, spot: Spot) -> Value:
        inner = CallArgs((given,))
        plain = isinstance(part, Func | Bound | External) or (isinstance(part, Partial) and not is_runnable(part))
        return self.call(part if plain else Method(part, "invoke"), inner, node=node, spot=spot)


def is_runnable(value: Value) -> bool:
    """Return whether a value is one of the known runnables."""
    return bool(_kind(value))


def _kind(value: Value) -> str:
    func = value.func if isinstance(value, Partial) else None
    return runnable_name(func.name) if isinstance(func, External) else ""
