"""What a call may do of which the source does not tell: run what it is given, change it, or compute from it."""

from __future__ import annotations

# ruff: noqa: ARG002  # the functions of the tables share one signature
import ast

from mragaudit.hookaudit.interpreter.calls import Calls
from mragaudit.hookaudit.interpreter.machine import CallArgs, Spot
from mragaudit.hookaudit.interpreter.operators import UNIT
from mragaudit.hookaudit.interpreter.state import Seq, root_of, settle
from mragaudit.hookaudit.interpreter.values import (
    Bound,
    Const,
    Func,
    One,
    Opaque,
    Part,
    Partial,
    Ref,
    Same,
    Unknown,
    Value,
    describe,
    flags_of,
    is_subject,
)

THREADS = {  # position of the function to run in another thread
    "asyncio.to_thread": 0,
    "anyio.to_thread.run_sync": 0,
    "starlette.concurrency.run_in_threadpool": 0,
    "fastapi.concurrency.run_in_threadpool": 0,
    "asgiref.sync.sync_to_async": 0,
    "run_in_executor": 1,
}
NOISE_WITH_SCALE = frozenset("gauss normal laplace normalvariate logistic gumbel uniform".split())


class OutsideCalls(Calls):
    """Calls that are not followed."""

    def _run_unknown(self, what: str, args: CallArgs, *, node: ast.AST, spot: Spot) -> Value:
        """Return the outcome of code outside the tree: it may change whatever of the subject it is given."""
        values = args.all()
        subjects = [value for value in (settle(v, spot.state) for v in values) if is_subject(value)]
        if any(map(_may_hold_subject, values)):
            self.notes.risks += 1
            return self.unknown(
                f"{what}, which is not in the tree, and gives it a function that knows the input", node, spot
            )
        if not subjects:
            return Opaque(f"{what}, which is not in the tree", kind=_kind_of_node(node))
        self.notes.risks += 1
        reason = f"{what}, which is not in the tree"
        if not self.text_subject:
            for value in subjects:
                self._may_touch(value, self.unknown(f"{reason} and may change what it is given", node, spot), spot)
        return self.unknown(reason, node, spot)

    def _may_touch(self, value: Value, doubt: Unknown, spot: Spot) -> None:
        if isinstance(value, Same):
            spot.state.touch(value.tops | value.elements, doubt)
        elif isinstance(value, Part) and value.step[0] in {"elem", "value"}:
            spot.state.touch(root_of(value).elements, doubt)

    def _in_thread(self, name: str, args: CallArgs, *, node: ast.AST, spot: Spot) -> Value:
        position = THREADS.get(name, 1)
        if position >= len(args.positional):
            return self._run_unknown(f"calls `{name}`", args, node=node, spot=spot)
        if name.endswith("sync_to_async"):
            return args.positional[position]
        return self.call_through(position, args, node=node, spot=spot)

    def _computed(self, name: str, args: CallArgs, *, node: ast.AST, spot: Spot) -> Value:
        values = args.all()
        if name in {"random.shuffle", "numpy.random.shuffle"}:
            self._mutate(values[0] if values else Opaque(), name, node=node, spot=spot)
            return Const(None)
        if name in {"max", "min"} and len(args.positional) == 1:
            known = self.known_elements(values[0], spot)
            if known is not None and len(known) == 1:
                return known[0]
        if name == "sorted" and not any(map(is_subject, values)):
            return values[0] if values else Opaque()
        last = name.rsplit(".", 1)[-1]
        if last in NOISE_WITH_SCALE and name.split(".", 1)[0] in {"random", "numpy"}:
            return self._noise(args, node=node, spot=spot)
        made = self._derived(f"`{describe(node)}`", values, node=node, spot=spot)
        if isinstance(made, Opaque) and last in {"random", "rand"}:
            return Opaque("noise", kind=UNIT, settled=True)
        return (
            Opaque(name, flags_of(made), kind=_kind_of_call(name), settled=True) if isinstance(made, Opaque) else made
        )

    def _any(self, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        value = args.get(0) or Opaque()
        thing = spot.state.heap.get(value.name) if isinstance(value, Ref) else None
        wants_all = isinstance(node, ast.Call) and describe(node.func) == "all"
        known = [] if isinstance(thing, Seq) and not thing.segments else self.known_elements(value, spot)
        truths = None if known is None else [self._truth(item, spot) for item in known]
        if truths is not None and ((not wants_all) in truths or None not in truths):
            flags = frozenset().union(flags_of(value), *map(flags_of, known or ()))
            return Const(wants_all if (not wants_all) not in truths else not wants_all, flags)
        values = [segment.value for segment in thing.segments] if isinstance(thing, Seq) else [value]
        return self._derived("a test of it", values, node=node, spot=spot)

    def _noise(self, args: CallArgs, *, node: ast.AST, spot: Spot) -> Value:
        """Return noise; with a mean and a scale of nought it is nought."""
        scale = args.get(1, "scale") or args.keywords.get("sigma")
        mean = args.get(0, "loc")
        drawn = describe(node.func).rsplit(".", 1)[-1] if isinstance(node, ast.Call) else ""
        if drawn == "uniform":
            low, high = args.get(0, "low"), args.get(1, "high")
            flags = frozenset().union(*map(flags_of, args.all()))
            self.decide(flags, describe(node))
            if isinstance(low, Const) and isinstance(high, Const) and low.value == high.value:
                return Const(low.value, flags)
        elif isinstance(scale, Const) and scale.value == 0 and (mean is None or isinstance(mean, Const)):
            self.decide(scale.flags, describe(node))
            return Const(mean.value if isinstance(mean, Const) else 0, scale.flags)
        if isinstance(scale, Const):
            self.decide(scale.flags, describe(node))
        return Opaque("noise", kind="noise", settled=True)

    def _mutate(self, owner: Value, name: str, *, node: ast.AST, spot: Spot) -> None:
        """Note that an object is changed in place."""
        change = self.changed(f"`.{name}()` changes it in place", node, spot)
        if isinstance(owner, Same):
            spot.state.touch(owner.tops, change)
        elif isinstance(owner, Part):
            spot.state.touch(root_of(owner).elements, change)
        elif isinstance(owner, Ref):
            thing = spot.state.heap.get(owner.name)
            if isinstance(thing, Seq) and thing.segments:
                spot.state.heap[owner.name] = Seq(thing.kind, (*thing.segments, One(change)))


def _may_hold_subject(value: Value) -> bool:
    """Return whether a callable was made inside a function, or together with the subject."""
    if isinstance(value, Func):
        return value.frame is not None
    if isinstance(value, Partial):
        return _may_hold_subject(value.func) or any(map(is_subject, value.args))
    return isinstance(value, Bound) and (_may_hold_subject(value.func) or is_subject(value.receiver))


def _kind_of_call(name: str) -> str:
    return {"random.Random": "random.Random", "numpy.random.default_rng": "numpy.random.Generator"}.get(name, name)


def _kind_of_node(node: ast.AST) -> str:
    return describe(node.func) if isinstance(node, ast.Call) else ""
