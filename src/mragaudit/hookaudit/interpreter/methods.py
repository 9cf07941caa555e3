"""Methods of texts, lists, dicts, copies and of the subject itself."""

from __future__ import annotations

# ruff: noqa: PLR0911, C901  # an interpreter has one way out for each kind of value
# ruff: noqa: ARG002  # the functions of the tables share one signature
import ast
import itertools
import re
from collections.abc import Callable
from typing import Any

from mragaudit.hookaudit.interpreter.functions import keeps_numbers
from mragaudit.hookaudit.interpreter.machine import CallArgs, Spot
from mragaudit.hookaudit.interpreter.operators import UNIT
from mragaudit.hookaudit.interpreter.outside import NOISE_WITH_SCALE
from mragaudit.hookaudit.interpreter.runnables import Runnables
from mragaudit.hookaudit.interpreter.state import Clone, Seq, root_of, settle
from mragaudit.hookaudit.interpreter.values import (
    Changed,
    Choice,
    Const,
    Method,
    One,
    Opaque,
    Part,
    Ref,
    Same,
    Segment,
    Spread,
    Text,
    Tup,
    Unknown,
    Value,
    View,
    describe,
    flags_of,
    is_subject,
    with_flags,
)

FRONTED = "list filled from the front"
QUIET_METHODS = frozenset("debug info warning warn error exception critical log trace success isEnabledFor".split())
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


class Methods(Runnables):
    """What known methods return, and what they change."""

    def _method(self, method: Method, args: CallArgs, *, node: ast.AST, spot: Spot) -> Value:
        owner, name = method.receiver, method.name
        if name == "result" and not args.all() and isinstance(owner, Same | Part | Changed | Ref):
            return owner  # of a task or future, which stands for what it comes to
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
                return self.with_each(
                    owner, spot, lambda item, at: self._method(Method(item, name), args, node=node, spot=at)
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
            if isinstance(result, list | tuple):
                return with_flags(self.new_list(tuple(One(Const(item)) for item in result), spot), flags)
            plain = isinstance(result, str | bytes | int | float | bool | type(None))
            return Const(result, flags) if plain else Opaque("a constant", flags, settled=True)
        return self._derived(f"`{describe(node)}`", values, node=node, spot=spot)

    def _join(self, separator: str, value: Value, *, node: ast.AST, spot: Spot) -> Value:
        settled = settle(value, spot.state)
        if isinstance(settled, Part) and settled.step == ("split", separator):
            return settled.owner
        if isinstance(settled, Part) and settled.step == ("reversed", None) and separator == "":
            return settled
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
        if owner.kind in {"re.Match", "re.Pattern", "string.Template"}:
            return self._pattern_method(owner, name, args=args, node=node, spot=spot)
        if owner.kind.startswith(("logging.", "structlog", "loguru")) or name in QUIET_METHODS:
            return Const(None)
        if name == "get" and values and isinstance(values[0], Const) and not any(map(is_subject, values)):
            text = describe(node)
            return self.setting(f"item:{text}", text, args.get(1, "default") or Const(None))
        if name == "create_task" and values:
            return values[0]
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

    def _pattern_method(self, owner: Opaque, name: str, *, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        values = args.all()
        if owner.kind == "re.Match":
            whole = name == "group" and (not values or values == [Const(0)])
            return Opaque("the match", kind="re.Match.group") if whole else Opaque("a group", settled=True)
        if owner.kind == "string.Template":
            hole = re.fullmatch(r"\$(?:(\w+)|\{(\w+)\})", owner.pattern or "")
            value = args.keywords.get(hole[1] or hole[2]) if hole else None
            if value is not None:
                return self.as_text(value, node, spot)
        elif name == "sub":
            return self._sub(args, pattern=owner.pattern, node=node, spot=spot)
        elif name == "split" and values:
            return self.split_text(owner.pattern, values[0], node, spot)
        return self._derived(f"`{describe(node)}`", values, node=node, spot=spot)

    def _object_method(self, ref: Ref, name: str, *, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        thing = spot.state.heap.get(ref.name)
        if isinstance(thing, Clone):
            return self._clone_method(ref, thing, name, args=args, node=node, spot=spot)
        if not isinstance(thing, Seq):
            return self._run_unknown(f"calls `{describe(node)}`", args, node=node, spot=spot)
        place = _place_of(thing, name, args.get(0)) if name in {"pop", "popleft"} else None
        if place is not None:
            kept = (*thing.segments[:place], *thing.segments[place + 1 :])
            spot.state.heap[ref.name] = Seq(thing.kind, kept)
            taken = thing.segments[place].value
            taken = taken.items[1] if thing.kind == "dict" and isinstance(taken, Tup) else taken
            return with_flags(taken, flags_of(ref))
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
            added = (*thing.segments, One(last if thing.segments else args.positional[1]))
            thing = Seq(thing.kind if thing.segments else FRONTED, thing.segments)
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
        if not thing.segments and (self._stays_empty(ref) or self._is_never_filled(node, spot)):
            self.decide(flags_of(ref), describe(node))
            return default
        found = self.item(ref, key, node=node, spot=spot)
        return self.merged([found, default])

    def _is_never_filled(self, node: ast.AST, spot: Spot) -> bool:
        """Return whether no code of the module puts anything into the attribute of which a method is called."""
        owner = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
        return isinstance(owner, ast.Attribute) and owner.attr not in spot.frame.module.filled

    def _stays_empty(self, ref: Ref) -> bool:
        """Return whether a dict is that of a module body and no code of the module writes to it."""
        for module in self.project.modules:
            prefix = f"global:{module.name}."
            if names := [key.removeprefix(prefix) for key in ref.flags if key.startswith(prefix)]:
                return all(name not in module.written for name in names)
        return False

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
        if name in {"extend", "update"} and args.positional and self.known_elements(args.positional[0], spot) == []:
            return Const(None)
        if name in MUTATORS:
            self._mutate(owner, name, node=node, spot=spot)
            return self.changed(f"`{describe(node)}`", node, spot)
        if name == "translate" and args.positional and self.constants(args.positional[0], spot) == []:
            self.decide(flags_of(args.positional[0]), describe(node))
            return owner
        if name == "astype" and args.all() and keeps_numbers(args.all()[0]):
            return self.shallow_copy(owner, spot)
        if name in TEXT_CHANGES and _keeps_text(name, args):
            return owner
        if name in TEXT_CHANGES:
            blank = name in {"strip", "lstrip", "rstrip"} and not args.positional
            return self.changed(f"`{describe(node)}`", node, spot, truthy=True if blank else None)
        return self._method_outside(owner, name, args=args, node=node, spot=spot)

    def _method_outside(self, owner: Same | Part, name: str, *, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        """Return what a method gives that only the hook map may know: one that reads or writes a field."""
        if name in self.getters:
            return Part(owner, ("attr", self.getters[name]))
        if name in self.setters and args.positional:
            self.write(owner, ("attr", self.setters[name]), args.positional[0], node=node, spot=spot)
            return Const(None)
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
        if args.get(2, "count") == Const(0):
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

    def _text_lines(self, owner: Same | Part, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        keep = args.get(0, "keepends")
        if isinstance(keep, Const) and keep.value:
            return Part(owner, ("split", ""))
        return self.changed(f"`{describe(node)}`", node, spot)

    def _text_partition(self, owner: Same | Part, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        """Return the three pieces, which follow each other without a gap."""
        place = (getattr(node, "lineno", 0), getattr(node, "col_offset", 0))
        bounds = (None, (*place, 0), (*place, 1), None)
        return Tup(tuple(Part(owner, ("span", pair)) for pair in itertools.pairwise(bounds)))

    def _text_encode(self, owner: Same | Part, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        if (codec := _lossless_codec(args)) is None:
            return self.changed(f"`{describe(node)}`", node, spot)
        return Part(owner, ("encoded", codec))

    def _text_decode(self, owner: Same | Part, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        if isinstance(owner, Part) and owner.step[0] == "encoded":
            same = owner.step[1] == _lossless_codec(args)
            return owner.owner if same else self.changed(f"`{describe(node)}`", node, spot)
        return owner

    def _record_replace(self, owner: Same | Part, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        return self._replace(CallArgs((owner,), args.keywords), node, spot)

    def _text_get(self, owner: Same | Part, args: CallArgs, node: ast.AST, spot: Spot) -> Value:
        return self.item(owner, args.get(0) or Opaque(), node=node, spot=spot)


def _keeps_text(name: str, args: CallArgs) -> bool:
    """Return whether a method keeps every text for the constants that it is given."""
    given = [value.value for value in args.positional if isinstance(value, Const)]
    if len(given) != 1 or args.keywords:
        return False
    if name == "translate":
        return isinstance(given[0], dict) and all(new in (old, chr(old)) for old, new in given[0].items())
    return bool(given[0] == ("" if "strip" in name or "remove" in name else 0))


def _lossless_codec(args: CallArgs) -> str | None:
    """Return the codec of `encode` or `decode` that keeps every text, None where it may drop or replace characters."""
    codec, errors = args.get(0, "encoding") or Const("utf-8"), args.get(1, "errors") or Const("strict")
    if not isinstance(codec, Const) or not isinstance(errors, Const):
        return None
    name = str(codec.value).lower().replace("_", "-").replace("utf8", "utf-8")
    strict = errors.value in {"strict", "surrogatepass", "surrogateescape"}
    return name if strict or name in {"utf-8", "utf-16", "utf-32"} else None


def _place_of(thing: Seq, name: str, key: Value | None) -> int | None:
    """Return which entry of a list or dict `pop` takes out, where all of them are known."""
    if any(not isinstance(segment, One) for segment in thing.segments) or not isinstance(key, Const | None):
        return None
    if thing.kind == "dict":
        pairs = [segment.value for segment in thing.segments]
        keys = [pair.items[0] if isinstance(pair, Tup) else None for pair in pairs]
        places = [i for i, item in enumerate(keys) if isinstance(item, Const) and key and item.value == key.value]
        return places[-1] if places and all(isinstance(item, Const) for item in keys) else None
    number = key.value if key is not None else -(name == "pop")
    length = len(thing.segments)
    return number % length if isinstance(number, int) and -length <= number < length else None


def _where(owner: Opaque, node: ast.AST) -> str:
    text = describe(node)
    return f"calls `{text}`" if not owner.why or owner.why in text else f"calls `{text}` ({owner.why})"


_SubjectMethod = Callable[[Any, Any, CallArgs, ast.AST, Spot], Value]


_SUBJECT_METHODS: dict[str, _SubjectMethod] = {
    "replace": Methods._text_replace,
    "split": Methods._text_split,
    "splitlines": Methods._text_lines,
    "partition": Methods._text_partition,
    "rpartition": Methods._text_partition,
    "encode": Methods._text_encode,
    "decode": Methods._text_decode,
    "get": Methods._text_get,
    "_replace": Methods._record_replace,
}
