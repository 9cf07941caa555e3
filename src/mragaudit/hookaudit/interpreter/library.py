"""What builtins, the standard library and NumPy do to a value: keep it, copy it, change it, or run a callable.

A name that is not listed here and not in the tree is unknown: nothing is concluded from what it is called.
"""

from __future__ import annotations

# ruff: noqa: PLR0911  # an interpreter has one way out for each kind of value
import ast
import json
import math
from collections.abc import Callable
from typing import Any

from mragaudit.hookaudit.interpreter.machine import CallArgs, Spot
from mragaudit.hookaudit.interpreter.methods import Methods
from mragaudit.hookaudit.interpreter.outside import THREADS
from mragaudit.hookaudit.interpreter.runnables import is_runnable, runnable_name
from mragaudit.hookaudit.interpreter.state import settle
from mragaudit.hookaudit.interpreter.values import (
    Changed,
    ClassRef,
    Const,
    External,
    Method,
    One,
    Opaque,
    Part,
    Partial,
    Same,
    Unknown,
    Value,
    describe,
    flags_of,
    is_subject,
)

COPIES = frozenset(
    "list tuple copy.copy numpy.array numpy.asarray numpy.copy numpy.ascontiguousarray numpy.atleast_1d iter aiter "
    "float bytes collections.deque collections.OrderedDict".split()
)
KEPT = frozenset(
    "sys.intern os.fspath asyncio.run asyncio.shield asyncio.ensure_future asyncio.create_task asyncio.wait_for".split()
)
QUIET = frozenset("logging warnings time traceback print structlog loguru prometheus_client gc opentelemetry".split())
COMPUTES = frozenset(
    "html textwrap unicodedata hashlib base64 zlib string urllib difflib shlex binascii codecs quopri hmac statistics "
    "math heapq bisect re random secrets numpy uuid pprint".split()
)
CALCULATIONS = frozenset(
    "sorted set frozenset abs round int min max sum repr ascii format hash ord chr bool any all complex "
    "dict.fromkeys divmod pow hex oct bin slice memoryview bytearray id type len".split()
)
ROUND_TRIPS = {
    "json.loads": "json.dumps",
    "pickle.loads": "pickle.dumps",
    "base64.b64decode": "base64.b64encode",
    "base64.urlsafe_b64decode": "base64.urlsafe_b64encode",
    "urllib.parse.unquote": "urllib.parse.quote",
    "zlib.decompress": "zlib.compress",
    "html.unescape": "html.escape",
    "chr": "ord",
}


FOLDED: dict[str, Callable[..., Any]] = {  # what is worked out on constants, where it takes no time
    "bool": bool,
    "int": int,
    "abs": abs,
    "math.isinf": math.isinf,
    "math.isnan": math.isnan,
    "math.isfinite": math.isfinite,
    "math.sqrt": math.sqrt,
    "math.log": math.log,
    "math.exp": math.exp,
    "numpy.isinf": math.isinf,
    "numpy.isfinite": math.isfinite,
    "json.loads": json.loads,
    "max": max,
    "min": min,
    "str.maketrans": str.maketrans,
}
FRAME_READERS = frozenset("locals vars eval globals sys._getframe inspect.currentframe".split())
LONGEST_CONSTANT = 200


class Library(Methods):
    """The interpreter's knowledge of what is not in the tree."""

    def call_outside(self, func: Value, args: CallArgs, *, node: ast.AST, spot: Spot) -> Value:
        """Return what a function, method or class outside the tree returns."""
        match func:
            case External():
                return self._external(func.name, args, node=node, spot=spot)
            case Method(receiver=ClassRef() as owner, name="__subclasses__"):
                return self._direct_subclasses(owner, spot)
            case Method(receiver=owner, name="invoke" | "ainvoke") if is_runnable(owner):
                run = self.run_runnable(owner, args, node=node, spot=spot)
                return run or self._run_unknown(f"calls `{describe(node)}`", args, node=node, spot=spot)
            case Method():
                return self._method(func, args, node=node, spot=spot)
            case Unknown():
                return self.unknown(f"calls what cannot be told: {func.reason}", node, spot)
            case Changed():
                return self.unknown("calls what it cannot be told to be", node, spot)
            case Same() | Part():
                return self._run_unknown("calls the input itself", args, node=node, spot=spot)
            case Opaque():
                return self._run_unknown(f"calls {func.why or 'a value'}", args, node=node, spot=spot)
            case _:
                return self._run_unknown("calls what is not a function of the tree", args, node=node, spot=spot)

    def _direct_subclasses(self, owner: ClassRef, spot: Spot) -> Value:
        found = self.project.subclasses(owner.info)
        direct = [info for info in found if owner.info in self.project.bases(info)]
        return self.new_list(tuple(One(ClassRef(info)) for info in direct), spot)

    def _external(self, name: str, args: CallArgs, *, node: ast.AST, spot: Spot) -> Value:
        handler = _FUNCTIONS.get(name)
        if handler is not None:
            return handler(self, args, node, spot)
        if runnable_name(name):
            return Partial(External(name), args.positional, tuple(args.keywords.items()))
        told = self._told(name, args, node=node, spot=spot)
        if told is not None:
            return told
        first = args.get(0)
        if name in THREADS or name.endswith(".run_in_executor"):
            return self._in_thread(name, args, node=node, spot=spot)
        if name in ROUND_TRIPS and isinstance(first, Part) and first.step == ("encoded", ROUND_TRIPS[name]):
            return self.shallow_copy(first.owner, spot, deep=True)
        if name in ROUND_TRIPS and first is not None and isinstance(settle(first, spot.state), Changed):
            return self.changed(f"`{describe(node)}` reads what was changed", node, spot)
        if name in ROUND_TRIPS.values() and isinstance(first, Same | Part):
            return Part(first, ("encoded", name))
        package = name.split(".", 1)[0]
        if package in QUIET or name.rsplit(".", 1)[-1] == "__init__":
            kind = "logging.Logger" if "ogger" in name else name
            return Opaque("a logger", kind=kind, settled=True)
        if name in CALCULATIONS or package in COMPUTES:
            return self._computed(name, args, node=node, spot=spot)
        return self._run_unknown(f"calls `{name}`", args, node=node, spot=spot)

    def _told(self, name: str, args: CallArgs, *, node: ast.AST, spot: Spot) -> Value | None:
        """Return what a call gives whose name says it all: of a record, a frame, constants, a method by its type."""
        if any(f".{name}".endswith(f".{record}") for record in self.records):
            return self._record(name, args, node=node, spot=spot)
        if name in FRAME_READERS:
            return self.unknown(f"calls `{name}`, which may read any variable", node, spot)
        owner, _, method = name.partition(".")
        first = args.get(0)
        if owner in {"str", "list", "dict"} and first is not None and method not in {"", "fromkeys", "maketrans"}:
            rest = CallArgs(args.positional[1:], args.keywords)
            return self._method(Method(first, method), rest, node=node, spot=spot)
        return self._folded(name, args)

    def _record(self, name: str, args: CallArgs, *, node: ast.AST, spot: Spot) -> Value:
        """Return a record of the framework: changed where something in it is; else whether all is in it stays open."""
        values = [settle(value, spot.state) for value in args.all()]
        changed = next((value for value in values if isinstance(value, Changed)), None)
        if changed is not None or not any(map(is_subject, values)):
            return changed or Opaque(f"a new `{name}`", settled=True)
        doubt = next((value for value in values if isinstance(value, Unknown)), None)
        return doubt or self.unknown(f"rebuilds `{name}` from fields of the input; whether from all", node, spot)

    def _folded(self, name: str, args: CallArgs) -> Value | None:
        """Return what a function that only computes gives for constants; the outcome rests on the same settings."""
        values = args.all()
        if name == "bool" and len(values) == 1 and isinstance(values[0], Opaque):
            return values[0]
        constants = [value.value for value in values if isinstance(value, Const)]
        if name not in FOLDED or args.keywords or not values or len(constants) < len(values):
            return None
        if any(isinstance(item, str) and len(item) > LONGEST_CONSTANT for item in constants):
            return None
        try:
            return Const(FOLDED[name](*constants), frozenset().union(*map(flags_of, values)))
        except (TypeError, ValueError, OverflowError):
            return None


_Function = Callable[[Any, CallArgs, ast.AST, Spot], Value]


_FUNCTIONS: dict[str, _Function] = {
    **dict.fromkeys(sorted(COPIES - {"float"}), Library._copy),
    **dict.fromkeys(sorted(KEPT), Library._first),
    "float": Library._number,
    "copy.deepcopy": Library._deep_copy,
    "str": Library._str,
    "dict": Library._dict_call,
    "len": Library._len,
    "set": Library._set,
    "frozenset": Library._set,
    "any": Library._any,
    "all": Library._any,
    "enumerate": Library._enumerate,
    "zip": Library._zip,
    "reversed": Library._reversed,
    "range": Library._range,
    "map": Library._map,
    "filter": Library._filter,
    "functools.reduce": Library._reduce,
    "getattr": Library._getattr,
    "setattr": Library._setattr,
    "hasattr": Library._hasattr,
    "callable": Library._callable,
    "isinstance": Library._isinstance,
    "type": Library._type,
    "typing.cast": Library._cast,
    "next": Library._next,
    "anext": Library._next,
    "itertools.chain": Library._chain,
    "asyncio.gather": Library._gather,
    "functools.partial": Library._partial,
    "functools.partialmethod": Library._partial_method,
    "staticmethod": Library._static,
    "classmethod": Library._class_method,
    "property": Library._property,
    **dict.fromkeys(("dataclasses.replace", "copy.replace", "attrs.evolve", "attr.evolve"), Library._replace),
    "os.getenv": Library._environment,
    "os.environ.get": Library._environment,
    "re.sub": Library._substitute,
    "re.split": Library._split_by,
    "re.compile": Library._compile,
    "string.Template": Library._template,
}
