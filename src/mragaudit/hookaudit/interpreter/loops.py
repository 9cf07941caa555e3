"""`for` and `while`, run to a fixed point of a few rounds."""

from __future__ import annotations

import ast
from collections.abc import Callable

from mragaudit.hookaudit.interpreter.flow import Flow
from mragaudit.hookaudit.interpreter.machine import Spot
from mragaudit.hookaudit.interpreter.matching import Matching
from mragaudit.hookaudit.interpreter.methods import FRONTED
from mragaudit.hookaudit.interpreter.state import Frame, Seq, State, group_states, merge_states
from mragaudit.hookaudit.interpreter.values import (
    Changed,
    Const,
    Each,
    Growing,
    One,
    Opaque,
    Part,
    Ref,
    Same,
    Segment,
    Text,
    Unknown,
    Value,
    describe,
    flags_of,
    is_subject,
    merge_values,
)

ROUNDS = 3
EARLIER = "earlier rounds"
GROWTH = frozenset("append extend add insert".split())


class Loops(Matching):
    """Loops."""

    def _for(self, node: ast.For | ast.AsyncFor, spot: Spot) -> Flow:
        source = self.evaluate(node.iter, spot)
        source = self.iterated(source, spot)
        self.decide(flags_of(source), describe(node.iter))
        known = self.known_elements(source, spot)
        flow = self._for_known(node, known, spot) if known is not None else self._for_any(node, source, spot)
        return self._loop_else(node, flow, spot)

    def _loop_else(self, node: ast.For | ast.AsyncFor | ast.While, flow: Flow, spot: Spot) -> Flow:
        """Run a loop's `else` where the loop was not left by a break; those states join in after it."""
        broken, flow.breaks = flow.breaks, []
        if node.orelse:
            other = self.block(node.orelse, spot.frame, flow.nexts)
            flow.add(other)
            flow.nexts = other.nexts
        flow.nexts = group_states(flow.nexts + broken)
        return flow

    def _for_known(self, node: ast.For | ast.AsyncFor, known: list[Value], spot: Spot) -> Flow:
        flow = Flow()
        states = [spot.state]
        broken: list[State] = []
        for value in known:
            reached: list[State] = []
            for state in states:
                self.assign(node.target, value, Spot(spot.frame, state))
                taken = self.block(node.body, spot.frame, [state])
                flow.returns += taken.returns
                broken += taken.breaks
                reached += taken.nexts + taken.continues
            states = group_states(reached)
        flow.nexts, flow.breaks = states, broken
        return flow

    def _for_any(self, node: ast.For | ast.AsyncFor, source: Value, spot: Spot) -> Flow:
        def bind(state: State) -> None:
            self.assign(node.target, self.element(source, node.iter, Spot(spot.frame, state)), Spot(spot.frame, state))

        surely = isinstance(source, Same | Part) or (isinstance(source, Ref) and self._truth(source, spot) is True)
        surely = surely or (is_subject(source) and not isinstance(source, Changed | Unknown))
        return self._loop(node.body, self.base_of(source, spot), spot, bind=bind, surely=surely)

    def _while(self, node: ast.While, spot: Spot) -> Flow:
        chosen, _ = self.test(node.test, spot)
        if chosen is False:
            return Flow(nexts=[spot.state])
        endless = isinstance(node.test, ast.Constant) and bool(node.test.value)
        flow = self._loop(node.body, Opaque("a condition"), spot, bind=lambda _state: None, surely=bool(chosen))
        if endless:
            flow.nexts = []
        return self._loop_else(node, flow, spot)

    def _loop(
        self,
        body: list[ast.stmt],
        source: Value,
        spot: Spot,
        *,
        bind: Callable[[State], None],
        surely: bool,
    ) -> Flow:
        """Run a loop body for any one element; lists and texts that each round adds to grow by one entry a round.

        The states in which it is left by a break stand under `breaks`.
        """
        start = spot.state
        growing = self._growing_names(body, Spot(spot.frame, start))
        added_to = {name for node in body for inner in ast.walk(node) if (name := _added_to(inner)) is not None}
        read = self._lists_read(body, Spot(spot.frame, start))
        result = Flow()
        after: list[State] = []
        entry = start
        for round_number in range(ROUNDS):
            inner = entry.fork()
            self._set_growing(inner, growing, spot.frame)
            bind(inner)
            flow = self.block(body, spot.frame, [inner])
            result.returns = flow.returns if round_number == 0 else result.returns + flow.returns
            ends = flow.nexts + flow.continues
            after = self._after(
                ends, start=entry, source=source, growing=growing, spot=spot, added_to=added_to, exact=not flow.breaks
            )
            self._grow_broken(flow.breaks, ends, start=entry, source=source)
            result.breaks = self._without_growing(flow.breaks, growing, spot.frame)
            if not ends:
                break
            again = self._entry_of_next_round(start, ends, growing, spot.frame)
            earlier = self._earlier_rounds(again, ends, read)
            if again.frames == entry.frames and again.touched.keys() == entry.touched.keys() and not earlier:
                break
            entry = again
        if not surely:
            after.append(start)
        result.nexts = group_states(after)
        return result

    def _lists_read(self, body: list[ast.stmt], spot: Spot) -> dict[str, Seq]:
        """Return the lists that a loop body looks at, and not only adds to, as they stand before the loop."""
        added = {
            id(inner.func.value)
            for node in body
            for inner in ast.walk(node)
            if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr in GROWTH
        }
        names = spot.state.names(spot.frame.number)
        found: dict[str, Seq] = {}
        for inner in (inner for node in body for inner in ast.walk(node)):
            value = names.get(inner.id) if isinstance(inner, ast.Name) and id(inner) not in added else None
            thing = spot.state.heap.get(value.name) if isinstance(value, Ref) else None
            if isinstance(value, Ref) and isinstance(thing, Seq):
                found[value.name] = thing
        return found

    def _earlier_rounds(self, entry: State, ends: list[State], read: dict[str, Seq]) -> bool:
        """Put what a round added into the lists that the body looks at; return whether that is news."""
        news = False
        for name, before in read.items():
            start = len(before.segments)
            grown = [end.heap[name] for end in ends if name in end.heap]
            added = [thing.segments[start:] for thing in grown if isinstance(thing, Seq)]
            if before.kind == "dict" or not any(added):
                continue
            earlier = Each(Opaque(EARLIER), _round_entry(added, Opaque(), exact=False).value, exact=False)
            entry.heap[name] = Seq(before.kind, (*before.segments, earlier))
            news = news or all(segment != earlier for segments in added for segment in segments)
        return news

    def _growing_names(self, body: list[ast.stmt], spot: Spot) -> dict[str, Value]:
        """Return the variables that hold a text or tuple at the start and that the body adds to, by their start."""
        names = spot.state.names(spot.frame.number)
        found: dict[str, Value] = {}
        for node in body:
            for inner in ast.walk(node):
                name = _added_to(inner)
                start = names.get(name) if name else None
                if isinstance(start, Text) or (isinstance(start, Const) and isinstance(start.value, str)):
                    found[str(name)] = start
        return found

    def _set_growing(self, state: State, growing: dict[str, Value], frame: Frame) -> None:
        names = state.own(frame.number)
        for name in growing:
            names[name] = Growing(name)

    def _after(
        self,
        ends: list[State],
        *,
        start: State,
        source: Value,
        growing: dict[str, Value],
        added_to: set[str],
        spot: Spot,
        exact: bool,
    ) -> list[State]:
        """Return the states after all rounds: each growing list holds one entry an element."""
        if not ends:
            return []
        texts = {
            name: self._grown_text(name, before, ends, source=source, exact=exact, frame=spot.frame)
            for name, before in growing.items()
        }
        lists = {name: thing for name, thing in start.heap.items() if isinstance(thing, Seq)}
        grown = {name: self._grown(name, thing, ends, source=source, exact=exact) for name, thing in lists.items()}
        merged = group_states([state.fork() for state in ends])
        for state in merged:
            for name, segments in grown.items():
                if segments is not None:
                    state.heap[name] = Seq(lists[name].kind, segments)
            state.own(spot.frame.number).update(texts)
            self._grow_variables(state, start, added_to, source=source, exact=exact, frame=spot.frame)
        return merged

    def _grow_broken(self, broken: list[State], ends: list[State], *, start: State, source: Value) -> None:
        """Fill the lists of a loop that is left early with what its rounds added: some of the elements."""
        lists = {name: thing for name, thing in start.heap.items() if isinstance(thing, Seq)}
        for state in broken if ends else ():
            for name, thing in lists.items():
                segments = self._grown(name, thing, [*ends, state], source=source, exact=False)
                if segments is not None:
                    state.heap[name] = Seq(thing.kind, segments)

    def _without_growing(self, states: list[State], growing: dict[str, Value], frame: Frame) -> list[State]:
        for state in states:
            for name, before in growing.items():
                if state.names(frame.number).get(name) == Growing(name):
                    state.own(frame.number)[name] = before
        return states

    def _grown(
        self, name: str, thing: Seq, ends: list[State], *, source: Value, exact: bool
    ) -> tuple[Segment, ...] | None:
        """Return a list after all rounds, None where no round changed it."""
        before = thing.segments
        kept = tuple(segment for segment in before if not _is_earlier(segment))
        after = [end.heap[name].segments if isinstance(end.heap.get(name), Seq) else before for end in ends]  # type: ignore[union-attr]
        if all(segments == before for segments in after):
            return None
        if any(segments[: len(before)] != before for segments in after):
            if exact and (filled := _filled_by_position(before, after)) is not None:
                return (filled,)
            return (*kept, Each(source, Changed("it is rebuilt in a loop"), exact=False))
        if any(isinstance(then := end.heap.get(name), Seq) and then.kind == FRONTED for end in ends):
            return (*kept, Each(source, Changed("its elements are turned round"), exact=False))
        return (*kept, _round_entry([segments[len(before) :] for segments in after], source, exact=exact))

    def _grown_text(
        self, name: str, before: Value, ends: list[State], *, source: Value, exact: bool, frame: Frame
    ) -> Value:
        added: list[tuple[Segment, ...]] = []
        for end in ends:
            value = end.names(frame.number).get(name, Opaque())
            if value == Growing(name):
                added.append(())
            elif isinstance(value, Text) and value.pieces[0] == One(Growing(name)):
                added.append(value.pieces[1:])
            else:
                return Changed("it is rebuilt in a loop") if is_subject(value) else merge_values(before, value)
        if not any(added):
            return before
        return self.text([before, Text((_round_entry(added, source, exact=exact),))])

    def _grow_variables(
        self, state: State, start: State, added_to: set[str], *, source: Value, exact: bool, frame: Frame
    ) -> None:
        """Treat `out = out + [x]` as `out.append(x)`."""
        names = state.names(frame.number)
        for name in added_to:
            before, after = start.names(frame.number).get(name), names.get(name)
            old = start.heap.get(before.name) if isinstance(before, Ref) else None
            new = state.heap.get(after.name) if isinstance(after, Ref) else None
            if before == after or not isinstance(old, Seq) or not isinstance(new, Seq) or not isinstance(after, Ref):
                continue
            if len(new.segments) > len(old.segments) and new.segments[: len(old.segments)] == old.segments:
                entry = _round_entry([new.segments[len(old.segments) :]], source, exact=exact)
                state.heap[after.name] = Seq(new.kind, (*old.segments, entry))

    def _entry_of_next_round(self, start: State, ends: list[State], growing: dict[str, Value], frame: Frame) -> State:
        """Return the state in which another round may begin: variables as after a round, lists as before it."""
        merged = merge_states([start.fork(), *(end.fork() for end in ends)])
        for name, thing in start.heap.items():
            if isinstance(thing, Seq):
                merged.heap[name] = thing
        names = merged.own(frame.number)
        for name, value in start.names(frame.number).items():
            if name in growing or isinstance(value, Ref):
                names[name] = value
        merged.exceptional = start.exceptional
        return merged

    def _break(self, _node: ast.Break, spot: Spot) -> Flow:
        return Flow(breaks=[spot.state])

    def _continue(self, _node: ast.Continue, spot: Spot) -> Flow:
        return Flow(continues=[spot.state])


def _round_entry(added: list[tuple[Segment, ...]], source: Value, *, exact: bool) -> Segment:
    """Return what one round adds, over all ways through the body."""
    always = all(len(segments) == 1 and isinstance(segments[0], One) for segments in added)
    values = [segment.value for segments in added for segment in segments]
    merged = values[0]
    for value in values[1:]:
        merged = merge_values(merged, value) if always else Changed("it is put together anew")
    return Each(source, merged, exact=exact and always)


def _filled_by_position(before: tuple[Segment, ...], after: list[tuple[Segment, ...]]) -> Segment | None:
    """Return the entry of a list of which each round writes the element at its position; None where it is no such."""
    entries = [segment for segments in (before, *after) for segment in segments]
    source = entries[0].source if isinstance(entries[0], Each) else None
    if len(entries) != len(after) + 1 or not all(
        isinstance(e, Each) and e.exact and e.source == source for e in entries
    ):
        return None
    merged = entries[1].value
    for entry in entries[2:]:
        merged = merge_values(merged, entry.value)
    return Each(source, merged) if source is not None else None


def _is_earlier(segment: Segment) -> bool:
    return isinstance(segment, Each) and segment.source == Opaque(EARLIER)


def _added_to(node: ast.AST) -> str | None:
    match node:
        case ast.AugAssign(target=ast.Name(id=name), op=ast.Add()):
            return name
        case ast.Assign(
            targets=[ast.Name(id=name)], value=ast.List(elts=[ast.Starred(value=ast.Name(id=other)), _, *_])
        ):
            return name if name == other else None
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.BinOp(op=ast.Add(), left=ast.Name(id=other))):
            return name if name == other else None
        case _:
            return None
