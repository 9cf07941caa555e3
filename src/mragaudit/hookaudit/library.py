"""What builtins, the standard library and NumPy do to a value: keep it, copy it, change it, or run a callable.

A name that is not listed here and not in the tree is unknown: nothing is concluded from what it is called.
"""

from __future__ import annotations

# ruff: noqa: PLR0911, C901  # an interpreter has one way out for each kind of value
# ruff: noqa: ARG002  # the functions of the tables below share one signature
import ast
from collections.abc import Callable
from typing import Any

from mragaudit.hookaudit.calls import Calls, dotted_name
from mragaudit.hookaudit.expressions import UNIT
from mragaudit.hookaudit.machine import CallArgs, Spot
from mragaudit.hookaudit.state import Clone, Instance, Seq, owners_of, root_of, settle
from mragaudit.hookaudit.values import (
    Bound,
    Changed,
    Choice,
    ClassRef,
    Const,
    Each,
    External,
    Func,
    Method,
    One,
    Opaque,
    Part,
    Partial,
    Ref,
    Same,
    Segment,
    Spread,
    Text,
    Tup,
    Unknown,
    Value,
    View,
    Wrapped,
    describe,
    flags_of,
    is_subject,
)

COPIES = frozenset(
    "list tuple copy.copy numpy.array numpy.asarray numpy.copy numpy.ascontiguousarray numpy.atleast_1d iter aiter "
    "float bytes collections.deque collections.OrderedDict".split()
)
KEPT = frozenset("sys.intern os.fspath asyncio.run asyncio.shield asyncio.ensure_future asyncio.create_task".split())
QUIET = frozenset("logging warnings time traceback print structlog loguru prometheus_client gc opentelemetry".split())
QUIET_METHODS = frozenset("debug info warning warn error exception critical log trace success isEnabledFor".split())
COMPUTES = frozenset(
    "html textwrap unicodedata hashlib base64 zlib string urllib difflib shlex binascii codecs quopri hmac statistics "
    "math heapq bisect re random secrets numpy uuid pprint".split()
)
CALCULATIONS = frozenset(
    "sorted reversed set frozenset abs round int min max sum repr ascii format hash ord chr bool any all complex "
    "divmod pow hex oct bin slice memoryview bytearray id type len".split()
)
ROUND_TRIPS = {
    "json.loads": "json.dumps",
    "pickle.loads": "pickle.dumps",
    "base64.b64decode": "base64.b64encode",
    "base64.urlsafe_b64decode": "base64.urlsafe_b64encode",
    "urllib.parse.unquote": "urllib.parse.quote",
    "zlib.decompress": "zlib.compress",
    "html.unescape": "html.escape",
}
THREADS = {  # position of the function to run in another thread
    "asyncio.to_thread": 0,
    "anyio.to_thread.run_sync": 0,
    "starlette.concurrency.run_in_threadpool": 0,
    "fastapi.concurrency.run_in_threadpool": 0,
    "asgiref.sync.sync_to_async": 0,
    "run_in_executor": 1,
}
NOISE_WITH_SCALE = frozenset("gauss normal laplace normalvariate logistic gumbel".split())

TEXT_COPIES = frozenset("__str__ tolist model_copy copy __copy__ __deepcopy__ deepcopy toString".split())
TEXT_TESTS = frozenset(
    "startswith endswith find rfind index rindex count isdigit isalpha isalnum isspace islower isupper isnumeric "
    "isascii istitle isdecimal isidentifier __len__ __contains__ __eq__ has_key".split()
)
TEXT_CHANGES = frozenset(
    "replace lower upper strip lstrip rstrip title capitalize casefold swapcase translate zfill center ljust rjust "
    "removeprefix removesuffix expandtabs format format_map splitlines partition rpartition hex join sum mean clip "
    "round astype reshape argsort argmax max min dot flatten cumsum union intersection difference "
    "symmetric_difference fromkeys most_common __add__ __mul__ __getitem__ group".split()
)
MUTATORS = frozenset(
    "append extend insert remove pop clear sort reverse update setdefault popitem add discard appendleft "
    "popleft rotate __setitem__ __delitem__ __setattr__ fill put resize move_to_end".split()
)
PATTERN_TESTS = frozenset("search match fullmatch findall finditer split groups groupindex".split())


class Library(Calls):
    """The interpreter's knowledge of what is not in the tree."""

    def call_outside(self, func: Value, args: CallArgs, *, node: ast.AST, spot: Spot) -> Value:
        """Return what a function, method or class outside the tree returns."""
        match func:
            case External():
                return self._external(func.name, args, node=node, spot=spot)
            case Method():
                return self._method(func, args, node=node, spot=spot)
            case Unknown() | Changed():
                return self.unknown("calls what it cannot be told to be", node, spot)
            case Same() | Part():
                return self._run_unknown("calls the input itself", args, node=node, spot=spot)
            case Opaque():
                return self._run_unknown(f"calls {func.why or 'a value'}", args, node=node, spot=spot)
            case _:
                return self._run_unknown("calls what is not a function of the tree", args, node=node, spot=spot)

    # functions
    def _external(self, name: str, args: CallArgs, *, node: ast.AST, spot: Spot) -> Value:
        handler = _FUNCTIONS.get(name)
        if handler is not None:
            return handler(self, args, node, spot)
        if name in THREADS or name.endswith(".run_in_executor"):
            return self._in_thread(name, args, node=node, spot=spot)
        first = args.get(0)
        if name in ROUND_TRIPS and isinstance(first, Part) and first.step == ("encoded", ROUND_TRIPS[name]):
            return self.shallow_copy(first.owner, spot, deep=True)
        if name in ROUND_TRIPS.values() and isinstance(first, Same | Part):
            return Part(first, ("encoded", name))
        package = name.split(".", 1)[0]
        if package in QUIET or name.rsplit(".", 1)[-1] == "__init__":
            kind = "logging.Logger" if "ogger" in name else name
            return Opaque("a logger", kind=kind, settled=True)
        if name in CALCULATIONS or package in COMPUTES:
            return self._computed(name, args, node=node, spot=spot)
        return self._run_unknown(f"calls `{name}`", args, node=node, spot=spot)

    def _computed(self, name: str, args: CallArgs, *, node: ast.AST, spot: Spot) -> Value:
        values = args.all()
        if name in {"random.shuffle", "numpy.random.shuffle"}:
            self._mutate(values[0] if values else Opaque(), name, node=node, spot=spot)
            return Const(None)
        if name in {"sorted", "reversed"} and not any(map(is_subject, values)):
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
        known = self.known_elements(value, spot)
        if known == [] or (isinstance(thing, Seq) and not thing.segments):
            return Const(isinstance(node, ast.Call) and describe(node.func) == "all", flags_of(value))
        values = [segment.value for segment in thing.segments] if isinstance(thing, Seq) else [value]
        return self._derived("a test of it", values, node=node, spot=spot)

    def _noise(self, args: CallArgs, *, node: ast.AST, spot: Spot) -> Value:
        """Return noise; with a mean and a scale of nought it is nought."""
        scale = args.get(1, "scale") or args.keywords.get("sigma")
        mean = args.get(0, "loc")
        if isinstance(scale, Const) and scale.value == 0 and (mean is None or isinstance(mean, Const)):
            self.decide(scale.flags, describe(node))
            return Const(mean.value if isinstance(mean, Const) else 0, scale.flags)
        if isinstance(scale, Const):
            self.decide(scale.flags, describe(node))
        return Opaque("noise", kind="noise", settled=True)

    def _in_thread(self, name: str, args: CallArgs, *, node: ast.AST, spot: Spot) -> Value:
        position = THREADS.get(name, 1)
        if position >= len(args.positional):
            return self._run_unknown(f"calls `{name}`", args, node=node, spot=spot)
        if name.endswith("sync_to_async"):
            return args.positional[position]
        return self.call_through(position, args, node=node, spot=spot)

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

    # builtins
    def _copy(self, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        return self._copied(args, node=node, spot=spot, deep=False)

    def _deep_copy(self, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        return self._copied(args, node=node, spot=spot, deep=True)

    def _copied(self, args: CallArgs, *, node: ast.AST, spot: Spot, deep: bool) -> Value:
        if not args.positional:
            return self.new_list((), spot)
        value = args.positional[0]
        if isinstance(value, Choice):
            parts = [CallArgs((item,)) for item in value.values]
            return self.merged([self._copied(part, node=node, spot=spot, deep=deep) for part in parts])
        if isinstance(value, Ref) and not isinstance(spot.state.heap.get(value.name), Seq):
            return self._copy_object(value, spot)
        settled = settle(value, spot.state)
        if isinstance(settled, Same | Part):
            plain_element = isinstance(settled, Part) and settled.step[0] not in {"elem", "item", "attr", "value"}
            return settled if plain_element else self.shallow_copy(settled, spot, deep=deep)
        inner = self.segments(value, spot)
        if inner is not None and not isinstance(settled, Changed | Unknown):
            return self.new_list(inner, spot)
        known = self.known_elements(value, spot)
        return self.new_list(tuple(One(item) for item in known), spot) if known is not None else value

    def _copy_object(self, ref: Ref, spot: Spot) -> Value:
        thing = spot.state.heap.get(ref.name)
        return self.allocate(thing, spot.state) if isinstance(thing, Clone | Instance) else ref

    def _number(self, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        value = args.get(0) or Const(0.0)
        if isinstance(value, Const):
            try:
                return Const(float(value.value), value.flags)
            except (TypeError, ValueError, OverflowError):
                return Opaque("a number", value.flags)
        return value

    def _str(self, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        return self.as_text(args.positional[0], node, spot) if args.positional else Const("")

    def _dict_call(self, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        base: Value | None = args.get(0)
        extra = [One(Tup((Const(name), value))) for name, value in args.keywords.items()]
        if base is None:
            return self.new_list(tuple(extra), spot, kind="dict")
        settled = settle(base, spot.state)
        if isinstance(settled, View) and settled.how == "items":
            settled = settled.inner[0]
        if isinstance(settled, Same | Part):
            copy = self.shallow_copy(settled, spot)
            for segment in extra:
                self.write_pairs(copy, segment, spot)
            return copy
        inner = self.segments(base, spot) or ()
        return self.new_list((*inner, *extra), spot, kind="dict")

    def _len(self, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        value = args.get(0) or Opaque()
        settled = settle(value, spot.state)
        if isinstance(settled, Same) or (isinstance(settled, Part) and settled.step[0] == "reversed"):
            return View("length", (settled,))
        known = self.known_elements(value, spot)
        if known is not None:
            return Const(len(known), flags_of(value))
        return self._derived("its length", [settled], node=node, spot=spot)

    def _enumerate(self, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        return View("enumerate", args.positional[:1]) if args.positional else Opaque()

    def _zip(self, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        return View("zip", args.positional) if args.positional else Opaque()

    def _range(self, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        last = args.positional[1] if len(args.positional) > 1 else args.get(0)
        whole = len(args.positional) == 1 or (args.positional and args.positional[0] == Const(0))
        if isinstance(last, View) and last.how == "length" and whole and len(args.positional) < 3:  # noqa: PLR2004
            return View("range", last.inner)
        numbers = [value.value for value in args.positional if isinstance(value, Const)]
        if len(numbers) == len(args.positional) and all(isinstance(number, int) for number in numbers):
            values = range(*numbers) if numbers and 0 not in numbers[2:] else range(0)
            if len(values) <= 24:  # noqa: PLR2004  # as many as a loop is unrolled for
                return Tup(tuple(Const(number) for number in values))
        flags = frozenset().union(*map(flags_of, args.positional))
        return Opaque("numbers", flags, settled=True)

    def _map(self, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        if len(args.positional) < 2:  # noqa: PLR2004  # a function and what it runs over
            return Opaque()
        func, *sources = args.positional
        source = sources[0] if len(sources) == 1 else View("zip", tuple(sources))
        source = self.iterated(source, spot)
        known = self.known_elements(source, spot)
        if known is not None:
            values = [self.call(func, CallArgs((item,)), node=node, spot=spot) for item in known]
            return self.new_list(tuple(One(value) for value in values), spot)
        items = [self.element(self.iterated(item, spot), node, spot) for item in sources]
        value = self.call(func, CallArgs(tuple(items)), node=node, spot=spot)
        return self.new_list((Each(source, value),), spot)

    def _filter(self, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        if len(args.positional) < 2:  # noqa: PLR2004
            return Opaque()
        func, source = args.positional[0], self.iterated(args.positional[1], spot)
        item = self.element(source, node, spot)
        if isinstance(func, Const):
            return self.new_list((Each(source, item, self._truth(item, spot) is True),), spot)
        kept = self._truth(self.call(func, CallArgs((item,)), node=node, spot=spot), spot)
        return self.new_list((Each(source, item, exact=kept is True),) if kept is not False else (), spot)

    def _reduce(self, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        if len(args.positional) < 2:  # noqa: PLR2004
            return Opaque()
        func, source = args.positional[:2]
        known = self.known_elements(source, spot)
        self.decide(flags_of(source), describe(node))
        if len(args.positional) > 2:  # noqa: PLR2004
            total, items = args.positional[2], known
        elif known:
            total, items = known[0], known[1:]
        else:
            return self._derived("a reduction", [source], node=node, spot=spot)
        if items is None:
            once = self.call(func, CallArgs((total, self.element(source, node, spot))), node=node, spot=spot)
            return self.merged([total, once])
        for item in items:
            total = self.call(func, CallArgs((total, item)), node=node, spot=spot)
        return total

    def _getattr(self, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        if len(args.positional) < 2:  # noqa: PLR2004
            return Opaque()
        owner, name = args.positional[:2]
        default = args.get(2)
        if not isinstance(name, Const):
            if isinstance(owner, Ref):
                return self.unknown("gets an attribute by a name that cannot be told", node, spot)
            return self._derived("an attribute", [owner, name], node=node, spot=spot)
        self.decide(name.flags, describe(node))
        found = self.attribute(owner, str(name.value), node=ast.Attribute(ast.Name("self"), str(name.value)), spot=spot)
        if default is not None and isinstance(owner, Ref) and self._is_missing(owner, str(name.value), spot):
            text = describe(node)
            return self.setting(f"item:{text}", text, default) if isinstance(default, Const) else default
        return found

    def _is_missing(self, owner: Ref, name: str, spot: Spot) -> bool:
        thing = spot.state.heap.get(owner.name)
        if not isinstance(thing, Instance) or name in thing.attributes:
            return False
        return self.find_in_class(thing.cls, name, spot) is None

    def _setattr(self, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        if len(args.positional) == 3 and isinstance(args.positional[1], Const):  # noqa: PLR2004
            owner, name, value = args.positional
            step = ("attr", name.value if isinstance(name, Const) else None)
            self.write(owner, step, value, node=node, spot=spot)
        elif args.positional:
            self._mutate(args.positional[0], "setattr", node=node, spot=spot)
        return Const(None)

    def _hasattr(self, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        owner, name = args.get(0), args.get(1)
        if isinstance(owner, Ref) and isinstance(name, Const):
            return Const(not self._is_missing(owner, str(name.value), spot))
        return self._derived("a test of it", [owner or Opaque()], node=node, spot=spot)

    def _callable(self, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        if isinstance(args.get(0), Func | Bound | ClassRef | Partial):
            return Const(True)
        return self._derived("a test of it", list(args.positional), node=node, spot=spot)

    def _isinstance(self, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        owner, wanted = args.get(0), args.get(1)
        names = _type_names(wanted, self.known_elements(wanted, spot) if wanted is not None else None)
        if isinstance(owner, Same):
            answer = self._is_of_type(owner, names)
            return Const(answer) if answer is not None else Opaque("a test of its type", settled=True)
        if isinstance(owner, Const) and names <= set(_BUILTIN_TYPES):
            return Const(isinstance(owner.value, tuple(_BUILTIN_TYPES[name] for name in names)), owner.flags)
        if isinstance(owner, Part):
            return Opaque("a test of its type", settled=True)
        return self._derived("a test of its type", [owner or Opaque()], node=node, spot=spot)

    def _is_of_type(self, owner: Same, names: set[str]) -> bool | None:
        expected = {"str"} if self.text_subject else {"list", "Sequence", "Iterable", "Collection", "tuple"}
        annotated = owner.hint.name if owner.hint else ""
        if annotated:
            expected = {annotated.rsplit(".", 1)[-1]} if annotated in _BUILTIN_TYPES else expected
        if names & expected:
            return True
        return False if names and names <= set(_BUILTIN_TYPES) and annotated in _BUILTIN_TYPES else None

    def _cast(self, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        return args.get(1, "val") or Opaque()

    def _first(self, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        return args.get(0) or Opaque()

    def _next(self, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        return self.element(args.get(0) or Opaque(), node, spot)

    def _chain(self, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        segments: list[Segment] = []
        for value in args.positional:
            inner = self.segments(value, spot)
            segments += inner if inner is not None else (Spread(value),)
        return self.new_list(tuple(segments), spot)

    def _gather(self, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        if len(args.positional) == 1 and is_subject(args.positional[0]) and isinstance(node, ast.Call):
            starred = [item for item in node.args if isinstance(item, ast.Starred)]
            if starred:
                return self.evaluate(starred[0].value, spot)
        return self.new_list(tuple(One(value) for value in args.positional), spot)

    def _partial(self, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        if not args.positional:
            return Opaque()
        return Partial(args.positional[0], args.positional[1:], tuple(args.keywords.items()))

    def _partial_method(self, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        if not args.positional:
            return Opaque()
        return Partial(args.positional[0], args.positional[1:], tuple(args.keywords.items()), method=True)

    def _static(self, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        return Wrapped("static", args.get(0) or Opaque())

    def _class_method(self, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        return Wrapped("class", args.get(0) or Opaque())

    def _property(self, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        return Wrapped("property", args.get(0) or Opaque())

    def _replace(self, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        owner = args.get(0)
        if not isinstance(owner, Same | Part):
            return self._derived("a changed copy", args.all(), node=node, spot=spot)
        copy = self.allocate(Clone(owner), spot.state)
        for name, value in args.keywords.items():
            self.write(copy, ("attr", name), value, node=node, spot=spot)
        return copy

    def _environment(self, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        text = describe(node)
        return self.setting(f"env:{text}", text, args.get(1, "default") or Const(None))

    def _substitute(self, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        return self._sub(CallArgs(args.positional[1:], args.keywords), node=node, spot=spot)

    def _sub(self, args: CallArgs, *, node: ast.AST, spot: Spot) -> Value:
        """Return what a pattern's `sub` does: nothing where each match is put back as it was."""
        repl, text = args.get(0, "repl") or Opaque(), args.get(1, "string") or Opaque()
        subject = settle(text, spot.state)
        if isinstance(subject, Unknown | Changed) or not is_subject(subject):
            return self._derived(f"`{describe(node)}`", [subject], node=node, spot=spot)
        if isinstance(repl, Const) and repl.value in {"\\g<0>"}:
            return subject
        if isinstance(repl, Func | Bound | Partial):
            put_back = self.call(repl, CallArgs((Opaque("a match", kind="re.Match"),)), node=node, spot=spot)
            if isinstance(put_back, Opaque) and put_back.kind == "re.Match.group":
                return subject
        return self.changed(f"`{describe(node)}`", node, spot)

    def _compile(self, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        flags = frozenset().union(*map(flags_of, args.all()))
        return Opaque("a pattern", flags, truthy=True, kind="re.Pattern")

    # methods
    def _method(self, method: Method, args: CallArgs, *, node: ast.AST, spot: Spot) -> Value:
        owner, name = method.receiver, method.name
        if name == "run_in_executor" and len(args.positional) > 1:
            return self._in_thread("run_in_executor", args, node=node, spot=spot)
        match owner:
            case Const():
                return self._constant_method(owner, name, args=args, node=node, spot=spot)
            case Opaque():
                return self._opaque_method(owner, name, args=args, node=node, spot=spot)
            case Ref():
                return self._object_method(owner, name, args=args, node=node, spot=spot)
            case Same() | Part():
                return self._subject_method(owner, name, args=args, node=node, spot=spot)
            case Text() | Tup() | View():
                settled = settle(owner, spot.state)
                if isinstance(settled, Same | Part):
                    return self._subject_method(settled, name, args=args, node=node, spot=spot)
                return self._derived(f"`{describe(node)}`", [settled, *args.all()], node=node, spot=spot)
            case Changed():
                return self.changed(f"`{describe(node)}`", node, spot, truthy=None) if not owner.what else owner
            case Unknown():
                return owner
            case Choice():
                return self.merged(
                    [self._method(Method(item, name), args, node=node, spot=spot) for item in owner.values]
                )
            case _:
                return self._run_unknown(f"calls `{describe(node)}`", args, node=node, spot=spot)

    def _constant_method(self, owner: Const, name: str, *, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        if isinstance(owner.value, str) and name == "join" and args.positional:
            return self._join(owner.value, args.positional[0], node=node, spot=spot)
        if isinstance(owner.value, str) and name == "format":
            return self._format(owner, args, node=node, spot=spot)
        values = args.all()
        if all(isinstance(value, Const) for value in values) and isinstance(owner.value, str | bytes | int | float):
            flags = owner.flags.union(*map(flags_of, values))
            try:
                result = getattr(owner.value, name)(*[v.value for v in args.positional if isinstance(v, Const)])
            except Exception:  # whatever the audited call raises
                return Opaque("a constant", flags)
            plain = isinstance(result, str | bytes | int | float | bool | type(None))
            return Const(result, flags) if plain else Opaque("a constant", flags, settled=True)
        return self._derived(f"`{describe(node)}`", values, node=node, spot=spot)

    def _join(self, separator: str, value: Value, *, node: ast.AST, spot: Spot) -> Value:
        settled = settle(value, spot.state)
        if isinstance(settled, Part) and settled.step == ("split", separator):
            return settled.owner
        if isinstance(settled, Same) and separator == "" and self.text_subject:
            return settled
        known = self.known_elements(value, spot)
        if known is not None:
            pieces: list[Value] = []
            for item in known:
                pieces += [Const(separator), item] if pieces else [item]
            return self.text(pieces)
        if isinstance(settled, Part) and separator == "" and settled.step[0] in {"elem", "item", "attr", "value"}:
            return settled
        return self._derived(f"`{describe(node)}`", [settled], node=node, spot=spot)

    def _format(self, owner: Const, args: CallArgs, *, node: ast.AST, spot: Spot) -> Value:
        positional = list(args.positional)
        pieces: list[Value] = []
        rest = owner.value
        for number, value in enumerate(positional):
            for mark in ("{}", f"{{{number}}}"):
                if mark in rest:
                    before, rest = rest.split(mark, 1)
                    pieces += [Const(before), self.as_text(value, node, spot)]
                    break
        for name, value in args.keywords.items():
            if f"{{{name}}}" in rest:
                before, rest = rest.split(f"{{{name}}}", 1)
                pieces += [Const(before), self.as_text(value, node, spot)]
        if "{" in rest or len(pieces) != 2 * (len(positional) + len(args.keywords)):
            return self._derived(f"`{describe(node)}`", args.all(), node=node, spot=spot, combine=True)
        return self.text([*pieces, Const(rest)])

    def _opaque_method(self, owner: Opaque, name: str, *, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        values = args.all()
        if owner.kind == "re.Match":
            whole = not values or values == [Const(0)]
            return (
                Opaque("the match", kind="re.Match.group")
                if name == "group" and whole
                else Opaque("a group", settled=True)
            )
        if owner.kind == "re.Pattern" and name == "sub":
            return self._sub(args, node=node, spot=spot)
        if owner.kind == "re.Pattern":
            return self._derived(f"`{describe(node)}`", values, node=node, spot=spot)
        if owner.kind.startswith(("logging.", "structlog", "loguru")) or name in QUIET_METHODS:
            return Const(None)
        if name == "get" and values and isinstance(values[0], Const) and not any(map(is_subject, values)):
            text = describe(node)
            return self.setting(f"item:{text}", text, args.get(1, "default") or Const(None))
        if name in {"map", "submit"} and ("Executor" in owner.kind or "Pool" in owner.kind):
            return (
                self._map(args, node, spot)
                if name == "map"
                else self.call(args.positional[0], CallArgs(args.positional[1:]), node=node, spot=spot)
            )
        if owner.kind.startswith(("numpy.random", "random.")):
            return self._computed(f"numpy.random.{name}", args, node=node, spot=spot)
        if name in NOISE_WITH_SCALE and not any(map(is_subject, values)):
            return self._noise(args, node=node, spot=spot)
        if name == "random" and not values:
            return Opaque("noise", kind=UNIT, settled=True)
        if not any(map(is_subject, values)):
            return Opaque(f"calls {describe(node)}", owner.flags, settled=owner.settled)
        return self._run_unknown(_where(owner, node), args, node=node, spot=spot)

    def _object_method(self, ref: Ref, name: str, *, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        thing = spot.state.heap.get(ref.name)
        if isinstance(thing, Clone):
            return self._clone_method(ref, thing, name, args=args, node=node, spot=spot)
        if not isinstance(thing, Seq):
            return self._run_unknown(f"calls `{describe(node)}`", args, node=node, spot=spot)
        if thing.kind == "dict":
            return self._dict_method(ref, thing, name, args=args, node=node, spot=spot)
        return self._list_method(ref, thing, name, args=args, node=node, spot=spot)

    def _list_method(self, ref: Ref, thing: Seq, name: str, *, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        first = args.get(0)
        added: tuple[Segment, ...] | None = None
        if name in {"append", "add"} and first is not None:
            added = (*thing.segments, One(first))
        elif name in {"extend", "update"} and first is not None:
            inner = self.segments(first, spot)
            added = (*thing.segments, *(inner if inner is not None else (Spread(first),)))
        elif name == "insert" and len(args.positional) > 1:
            last = self.changed("an element is put in front", node, spot)
            added = (One(args.positional[1]), *thing.segments) if not thing.segments else (*thing.segments, One(last))
        elif name == "copy":
            return self.new_list(thing.segments, spot, kind=thing.kind)
        elif name in MUTATORS:
            added = () if name == "clear" else (*thing.segments, One(self.changed(f"`.{name}()`", node, spot)))
        if added is None:
            settled = settle(ref, spot.state)
            if isinstance(settled, Same | Part):
                return self._subject_method(settled, name, args=args, node=node, spot=spot)
            return self._derived(f"`{describe(node)}`", [settled, *args.all()], node=node, spot=spot)
        spot.state.heap[ref.name] = Seq(thing.kind, added)
        return self.element(ref, node, spot) if name in {"pop", "popleft"} else Const(None)

    def _dict_method(self, ref: Ref, thing: Seq, name: str, *, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        if name in {"items", "keys", "values"}:
            settled = settle(ref, spot.state)
            return View(name, (settled if isinstance(settled, Same | Part) else ref,))
        if name == "copy":
            return self.new_list(thing.segments, spot, kind="dict")
        if name in {"get", "pop"} and args.positional:
            return self._dict_get(ref, thing, args=args, node=node, spot=spot)
        if name == "update":
            inner = self.segments(args.positional[0], spot) if args.positional else ()
            extra = tuple(One(Tup((Const(key), value))) for key, value in args.keywords.items())
            spot.state.heap[ref.name] = Seq("dict", (*thing.segments, *(inner or ()), *extra))
            return Const(None)
        if name == "setdefault" and len(args.positional) > 1:
            self.write(ref, ("item", None), args.positional[1], node=node, spot=spot, key=args.positional[0])
            return args.positional[1]
        return self._derived(f"`{describe(node)}`", args.all(), node=node, spot=spot)

    def _dict_get(self, ref: Ref, thing: Seq, *, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        key = args.positional[0]
        pairs = [s.value for s in thing.segments if isinstance(s.value, Tup)]
        keys = [pair.items[0] for pair in pairs]
        complete = len(pairs) == len(thing.segments) and all(isinstance(item, Const) for item in keys)
        default = args.get(1, "default") or Const(None)
        known = isinstance(key, Const) and any(isinstance(k, Const) and k.value == key.value for k in keys)
        if isinstance(key, Const) and complete and not known:
            self.decide(flags_of(ref) | key.flags, describe(node))
            if not thing.segments:  # keyword arguments or a config that nobody gave
                text = describe(node)
                return self.setting(f"item:{text}", text, default)
            return default
        if isinstance(key, Const):
            return self.item(ref, key, node=node, spot=spot)
        found = self.item(ref, key, node=node, spot=spot)
        return self.merged([found, default])

    def _clone_method(self, ref: Ref, clone: Clone, name: str, *, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        if name == "get" and args.positional:
            return self.item(ref, args.positional[0], node=node, spot=spot)
        if name in {"copy", "model_copy", "dict", "model_dump"}:
            copy = self.allocate(clone, spot.state)
            self._apply_updates(copy, args, node=node, spot=spot)
            return copy
        if name in {"update", "__setitem__", "setdefault"}:
            self._apply_updates(ref, CallArgs((), {"update": args.get(0) or Opaque()}), node=node, spot=spot)
            for key, value in args.keywords.items():
                self.write(ref, ("item", key), value, node=node, spot=spot)
            return Const(None)
        values = args.all()
        written = self.changed(f"`{describe(node)}`", node, spot)
        if name in MUTATORS:
            self.write(ref, ("item", name), written, node=node, spot=spot)
            return Const(None)
        if name in TEXT_CHANGES | TEXT_TESTS | {"split", "items", "keys", "values", "encode", "decode"}:
            return self._subject_method(clone.original, name, args=args, node=node, spot=spot)
        doubt = self.unknown(f"calls `{describe(node)}` on a copy, which is not in the tree", node, spot)
        changed = any(isinstance(settle(value, spot.state), Changed) for value in values)
        self.write(ref, ("item", name), written if changed and name.startswith("set_") else doubt, node=node, spot=spot)
        return doubt

    def _apply_updates(self, copy: Value, args: CallArgs, *, node: ast.AST, spot: Spot) -> None:
        update = args.keywords.get("update")
        thing = spot.state.heap.get(update.name) if isinstance(update, Ref) else None
        for segment in thing.segments if isinstance(thing, Seq) else ():
            if isinstance(segment.value, Tup):
                key, value = segment.value.items
                step = ("attr", key.value) if isinstance(key, Const) else ("item", key)
                self.write(copy, step, value, node=node, spot=spot)

    def _subject_method(self, owner: Same | Part, name: str, *, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        handler = _SUBJECT_METHODS.get(name)
        if handler is not None:
            return handler(self, owner, args, node, spot)
        if name in TEXT_COPIES:
            copy = self.shallow_copy(owner, spot, deep="deep" in name)
            if "update" in args.keywords:
                copy = copy if isinstance(copy, Ref) else self.allocate(Clone(owner), spot.state)
                self._apply_updates(copy, args, node=node, spot=spot)
            return copy
        if name in TEXT_TESTS:
            return self.changed("a test of it", node, spot)
        if name in {"items", "keys", "values"}:
            return View(name, (owner,))
        if name in MUTATORS:
            self._mutate(owner, name, node=node, spot=spot)
            return self.changed(f"`{describe(node)}`", node, spot)
        if name == "translate" and args.positional and self.constants(args.positional[0], spot) == []:
            self.decide(flags_of(args.positional[0]), describe(node))
            return owner
        if name in TEXT_CHANGES:
            blank = name in {"strip", "lstrip", "rstrip"} and not args.positional
            return self.changed(f"`{describe(node)}`", node, spot, truthy=True if blank else None)
        reason = f"calls `{describe(node)}`, a method that is not in the tree"
        self.notes.risks += 1
        doubt = self.unknown(reason, node, spot)
        if not self.text_subject:
            self._may_touch(owner if isinstance(owner, Same) else Part(root_of(owner), ("elem", None)), doubt, spot)
        return doubt

    def _text_replace(self, owner: Same | Part, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        old, new = args.get(0), args.get(1)
        if isinstance(old, Const) and isinstance(new, Const) and old.value == new.value:
            return owner
        if old is not None and old == new and not is_subject(old):
            return owner
        for value in (old, new):
            if isinstance(value, Const):
                self.decide(value.flags, describe(node))
        return self.changed(f"`{describe(node)}`", node, spot)

    def _text_split(self, owner: Same | Part, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        separator = args.get(0, "sep")
        if isinstance(separator, Const) and isinstance(separator.value, str) and len(args.all()) == 1:
            return Part(owner, ("split", separator.value))
        return self.changed(f"`{describe(node)}`", node, spot)

    def _text_encode(self, owner: Same | Part, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        return Part(owner, ("encoded", "str"))

    def _text_decode(self, owner: Same | Part, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        if isinstance(owner, Part) and owner.step == ("encoded", "str"):
            return owner.owner
        return owner

    def _text_get(self, owner: Same | Part, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        return self.item(owner, args.get(0) or Opaque(), node=node, spot=spot)

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


def _where(owner: Opaque, node: ast.AST) -> str:
    text = describe(node)
    return f"calls `{text}`" if not owner.why or owner.why in text else f"calls `{text}` ({owner.why})"


def _kind_of_call(name: str) -> str:
    return {"random.Random": "random.Random", "numpy.random.default_rng": "numpy.random.Generator"}.get(name, name)


def _kind_of_node(node: ast.AST) -> str:
    return describe(node.func) if isinstance(node, ast.Call) else ""


def _type_names(wanted: Value | None, known: list[Value] | None) -> set[str]:
    values = known if known is not None else [wanted] if wanted is not None else []
    return {dotted_name(value).rsplit(".", 1)[-1] or "?" for value in values}


_BUILTIN_TYPES: dict[str, type] = {
    "str": str,
    "bytes": bytes,
    "list": list,
    "dict": dict,
    "tuple": tuple,
    "set": set,
    "int": int,
    "float": float,
    "bool": bool,
}
_Function = Callable[[Any, CallArgs, ast.AST, Spot], Value]
_FUNCTIONS: dict[str, _Function] = {
    **dict.fromkeys(sorted(COPIES - {"float"}), Library._copy),
    **dict.fromkeys(sorted(KEPT), Library._first),
    "float": Library._number,
    "copy.deepcopy": Library._deep_copy,
    "str": Library._str,
    "dict": Library._dict_call,
    "len": Library._len,
    "any": Library._any,
    "all": Library._any,
    "enumerate": Library._enumerate,
    "zip": Library._zip,
    "range": Library._range,
    "map": Library._map,
    "filter": Library._filter,
    "functools.reduce": Library._reduce,
    "getattr": Library._getattr,
    "setattr": Library._setattr,
    "hasattr": Library._hasattr,
    "callable": Library._callable,
    "isinstance": Library._isinstance,
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
    "dataclasses.replace": Library._replace,
    "os.getenv": Library._environment,
    "os.environ.get": Library._environment,
    "re.sub": Library._substitute,
    "re.compile": Library._compile,
}
_SubjectMethod = Callable[[Any, Any, CallArgs, ast.AST, Spot], Value]
_SUBJECT_METHODS: dict[str, _SubjectMethod] = {
    "replace": Library._text_replace,
    "split": Library._text_split,
    "encode": Library._text_encode,
    "decode": Library._text_decode,
    "get": Library._text_get,
}
__all__ = ["PATTERN_TESTS", "Library", "owners_of"]
