"""Functions of builtins and the standard library that are known one by one."""

from __future__ import annotations

# ruff: noqa: ARG002  # the functions of the tables share one signature
import ast
import re
from dataclasses import replace
from typing import Any

from mragaudit.hookaudit.interpreter.bindings import dotted_name
from mragaudit.hookaudit.interpreter.machine import CallArgs, Spot
from mragaudit.hookaudit.interpreter.outside import OutsideCalls
from mragaudit.hookaudit.interpreter.state import Clone, Instance, Seq, settle
from mragaudit.hookaudit.interpreter.values import (
    NO_FLAGS,
    Bound,
    Changed,
    Choice,
    ClassRef,
    Const,
    Each,
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
    Tup,
    Unknown,
    Value,
    View,
    Wrapped,
    describe,
    flags_of,
    is_subject,
    with_flags,
)


class Functions(OutsideCalls):
    """What known functions return."""

    def _copy(self, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        if "dtype" in args.keywords and not keeps_numbers(args.keywords["dtype"]):
            return self._derived(f"`{describe(node)}`", args.all(), node=node, spot=spot)
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
        first = args.get(0)
        if isinstance(first, Part) and first.step[0] == "encoded" and len(args.all()) > 1:
            rest = CallArgs(args.positional[1:], args.keywords)
            return self.call(Method(first, "decode"), rest, node=node, spot=spot)
        return self.as_text(first, node, spot) if first is not None else Const("")

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

    def _set(self, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        """Return a set: of constants as a container of them, else what is computed from its elements."""
        source = args.get(0)
        known = [] if source is None else self.constants(source, spot)
        if known is None:
            return self._computed("set", args, node=node, spot=spot)
        distinct = tuple(One(Const(value)) for value in dict.fromkeys(known))
        return with_flags(self.new_list(distinct, spot, kind="set"), flags_of(source) if source else NO_FLAGS)

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

    def _reversed(self, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        value = args.get(0) or Opaque()
        known = self.known_elements(value, spot)
        if known is not None:
            return with_flags(self.new_list(tuple(One(item) for item in reversed(known)), spot), flags_of(value))
        settled = settle(value, spot.state)
        if isinstance(settled, Same | Part):
            return self.reverse(settled)
        return self._derived(f"`{describe(node)}`", [value], node=node, spot=spot)

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
        return self.new_list((Each(self.base_of(source, spot), value),), spot)

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
        missing = isinstance(owner, Const) and not hasattr(owner.value, str(name.value))
        missing = missing or (_is_declared_text(owner) and not hasattr("", str(name.value)))
        if default is not None and missing:
            return with_flags(default, flags_of(owner) | name.flags)
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
        if isinstance(name, Const) and _is_declared_text(owner):
            return Const(hasattr("", str(name.value)))
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
        told = annotated in _BUILTIN_TYPES or (self.text_subject and not annotated)
        return False if names and names <= set(_BUILTIN_TYPES) and told else None

    def _type(self, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        owner = args.get(0) or Opaque()
        if len(args.positional) == 1:
            return self.type_of(owner, spot) or self._derived("its type", [owner], node=node, spot=spot)
        return Opaque("a class", settled=True)

    def _cast(self, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        return args.get(1, "val") or Opaque()

    def _first(self, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        return args.get(0) or Opaque()

    def _next(self, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        source = args.get(0) or Opaque()
        known = self.known_elements(source, spot)
        return known[0] if known else self.element(source, node, spot)

    def _chain(self, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        segments: list[Segment] = []
        for value in args.positional:
            inner = self.segments(value, spot)
            segments += inner if inner is not None else (Spread(value),)
        return self.new_list(tuple(segments), spot)

    def _gather(self, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        if isinstance(node, ast.Call) and len(node.args) == 1 and isinstance(node.args[0], ast.Starred):
            return self.evaluate(node.args[0].value, spot)
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
        thing = spot.state.heap.get(owner.name) if isinstance(owner, Ref) else None
        if isinstance(thing, Instance):
            return self.allocate(Instance(thing.cls, {**thing.attributes, **args.keywords}), spot.state)
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
        given = args.get(0, "pattern")
        pattern = given.value if isinstance(given, Const) else given.pattern if isinstance(given, Opaque) else None
        rest = CallArgs(args.positional[1:], {k: v for k, v in args.keywords.items() if k != "pattern"})
        return self._sub(rest, pattern=pattern, node=node, spot=spot)

    def _sub(self, args: CallArgs, *, pattern: Any, node: ast.AST, spot: Spot) -> Value:
        """Return what a pattern's `sub` does: nothing where each match is put back as it was."""
        repl, text = args.get(0, "repl") or Opaque(), args.get(1, "string") or Opaque()
        subject = settle(text, spot.state)
        if isinstance(subject, Unknown | Changed) or not is_subject(subject):
            return self._derived(f"`{describe(node)}`", [subject], node=node, spot=spot)
        put_back_text = isinstance(repl, Const) and puts_back(pattern, repl.value)
        if put_back_text or (isinstance(pattern, str) and pattern in NEVER_MATCHING):
            self.decide(flags_of(repl), describe(node))
            return subject
        if isinstance(repl, Func | Bound | Partial):
            put_back = self.call(repl, CallArgs((Opaque("a match", kind="re.Match"),)), node=node, spot=spot)
            if isinstance(put_back, Opaque) and put_back.kind == "re.Match.group":
                return subject
        return self.changed(f"`{describe(node)}`", node, spot)

    def _split_by(self, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        given, text = args.get(0, "pattern"), args.get(1, "string") or Opaque()
        pattern = given.value if isinstance(given, Const) else given.pattern if isinstance(given, Opaque) else None
        return self.split_text(pattern, text, node, spot)

    def split_text(self, pattern: Any, text: Value, node: ast.AST, spot: Spot) -> Value:
        """Return what a pattern's `split` does: pieces without a gap where one group is around all that it matches."""
        subject = settle(text, spot.state)
        if isinstance(subject, Same | Part) and isinstance(pattern, str) and ONE_GROUP.fullmatch(pattern):
            return Part(subject, ("split", ""))
        return self._computed("re.split", CallArgs((text,)), node=node, spot=spot)

    def _template(self, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        return replace(self._compile(args, node, spot), why="a template", kind="string.Template")

    def _compile(self, args: CallArgs, node: ast.AST, spot: Spot) -> Opaque:
        flags = frozenset().union(*map(flags_of, args.all()))
        given = args.get(0, "pattern")
        text = (
            given.value if isinstance(given, Const) and isinstance(given.value, str) and len(args.all()) == 1 else None
        )
        return Opaque("a pattern", flags, truthy=True, kind="re.Pattern", pattern=text)


ONE_GROUP = re.compile(r"\((?!\?)(?:[^()\\]|\\.)*\)")  # around everything
NEVER_MATCHING = frozenset(("(?!)", "$^", "a^", "x^", ".^", "$.", "$a", "$x", r"\Z\A", r"\b\B"))


def puts_back(pattern: Any, replacement: Any) -> bool:
    """Return whether a replacement is the match itself: by its number, or as the same letters."""
    if replacement == r"\g<0>":
        return True
    if not isinstance(pattern, str) or not isinstance(replacement, str):
        return False
    if replacement in {r"\1", r"\g<1>"}:
        return ONE_GROUP.fullmatch(pattern) is not None
    return bool(pattern) and pattern == replacement and not re.search(r"[][.^$*+?{}|()\\]", pattern)


def keeps_numbers(dtype: Value) -> bool:
    """Return whether an array of this type holds every number as it is."""
    name = dtype.value if isinstance(dtype, Const) else dotted_name(dtype)
    return name in {None, "float", "float64", "numpy.float64", "numpy.double", "object"}


def _is_declared_text(value: Value | None) -> bool:
    return isinstance(value, Same) and value.hint is not None and value.hint.name == "str"


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
