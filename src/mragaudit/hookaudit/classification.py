"""Whether what a hook hands back is its input, with the evidence."""

from __future__ import annotations

# ruff: noqa: PLR0911, PLR0912, C901  # one way out for each kind of value
from mragaudit.hookaudit.interpreter.machine import Notes
from mragaudit.hookaudit.interpreter.state import Seq, State, settle
from mragaudit.hookaudit.interpreter.values import (
    Changed,
    Choice,
    Const,
    One,
    Opaque,
    Part,
    Ref,
    Same,
    Spread,
    Text,
    Tup,
    Unknown,
    Value,
)
from mragaudit.hookaudit.verdicts import HookSpec, Plain

OWN_SOURCE = "calls none of what the hook map names as its source: it is a source of its own"


def classify(value: Value, state: State, *, spec: HookSpec, notes: Notes) -> tuple[Plain, str]:
    """Return whether the answer is something else than the input, with the evidence."""
    if spec.sources and not notes.brought:
        return "unknown", OWN_SOURCE
    if spec.output_key is not None:
        value = _under_key(value, spec.output_key, state)
        if settle(value, state) == Part(Same(), ("item", spec.output_key)):
            return "inactive", f"hands back `{spec.output_key}` of its input as it was"
    if spec.gate:
        return _classify_gate(value, state)
    thing = state.heap.get(value.name) if isinstance(value, Ref) else None
    if spec.text and isinstance(thing, Seq) and thing.kind == "generator":
        value = _read_text(thing, state)
    settled = settle(value, state)
    touched = settle(Same(), state)
    match settled:
        case Const(value=None):
            if isinstance(touched, Changed):
                return "active", place_of(touched)
            if isinstance(touched, Unknown):
                return "unknown", place_of(touched)
            return "inactive", "returns nothing and changes nothing in place"
        case Same():
            return "inactive", "returns a copy of its input" if settled.copied else "returns its input"
        case Changed():
            return "active", place_of(settled)
        case Unknown():
            return "unknown", place_of(settled)
        case Choice():
            return _classify_choice(settled, state, spec=spec)
        case Part():
            return "active", "returns only a part of the input"
        case Opaque() if notes.risks and not settled.settled:
            return "unknown", f"returns what comes from outside the tree, after handing the input there ({settled.why})"
        case _:
            return "active", "returns something else than its input"


def _read_text(generator: Seq, state: State) -> Value:
    """Return the answer as whoever reads it puts its pieces together."""
    if len(generator.segments) == 1 and isinstance(generator.segments[0], One | Spread):
        return generator.segments[0].value
    read = settle(Text(generator.segments), state)
    return read.owner if isinstance(read, Part) and read.step == ("split", "") else read


def _classify_choice(choice: Choice, state: State, *, spec: HookSpec) -> tuple[Plain, str]:
    items = [settle(item, state) for item in choice.values]
    if spec.none_means_unchanged:
        items = [item for item in items if not (isinstance(item, Const) and item.value is None)]
    changed = next((item for item in items if isinstance(item, Changed)), None)
    if changed is not None:
        return "active", place_of(changed)
    doubt = next((item for item in items if isinstance(item, Unknown)), None)
    if doubt is not None:
        return "unknown", place_of(doubt)
    if all(isinstance(item, Same) for item in items):
        return "inactive", "returns its input"
    return "active", "returns something else than its input on some inputs"


def _classify_gate(value: Value, state: State) -> tuple[Plain, str]:
    settled = settle(value, state)
    if isinstance(settled, Const):
        return "inactive", f"always answers {settled.value!r}, whatever the input"
    if isinstance(settled, Unknown):
        return "unknown", place_of(settled)
    return ("inactive", "returns its input") if isinstance(settled, Same) else ("active", "answers by the input")


def _under_key(value: Value, key: str, state: State) -> Value:
    """Return what stands in a returned dict under a key."""
    if isinstance(value, Choice):
        parts = [_under_key(item, key, state) for item in value.values]
        return parts[0] if all(part == parts[0] for part in parts) else Choice(tuple(parts))
    thing = state.heap.get(value.name) if isinstance(value, Ref) else None
    if isinstance(thing, Seq) and thing.kind == "dict":
        for segment in reversed(thing.segments):
            pair = segment.value
            if isinstance(pair, Tup) and isinstance(pair.items[0], Const) and pair.items[0].value == key:
                return pair.items[1]
        return Const(None)
    return value


def place_of(found: Changed | Unknown) -> str:
    """Return the evidence with its place."""
    text = found.what if isinstance(found, Changed) else found.reason
    return f"{text} ({found.file}:{found.line})" if found.line else text
