"""Execution of statements: branches, loops, handlers, and what leaves a block."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mragaudit.hookaudit.calls import dotted_name
from mragaudit.hookaudit.library import Library
from mragaudit.hookaudit.machine import Abrupt, CallArgs, Raised, Returned, Spot
from mragaudit.hookaudit.state import Clone, Frame, Instance, Seq, State, group_states, merge_states, settle
from mragaudit.hookaudit.symbols import Definition
from mragaudit.hookaudit.values import (
    Changed,
    Choice,
    ClassRef,
    Const,
    Each,
    External,
    Growing,
    One,
    Opaque,
    Part,
    Ref,
    Same,
    Segment,
    Text,
    Tup,
    Unknown,
    Value,
    describe,
    flags_of,
    is_subject,
    merge_values,
)

ROUNDS = 3
VALIDATION = frozenset({"TypeError", "NotImplementedError"})


@dataclass(slots=True)
class Flow:
    """The ways out of a block."""

    nexts: list[State] = field(default_factory=list)
    returns: list[Returned] = field(default_factory=list)
    breaks: list[State] = field(default_factory=list)
    continues: list[State] = field(default_factory=list)

    def add(self, other: Flow) -> None:
        """Take over all ways out of another block but its end."""
        self.returns += other.returns
        self.breaks += other.breaks
        self.continues += other.continues


class Interpreter(Library):
    """The whole interpreter."""

    def execute_body(self, body: list[ast.stmt], frame: Frame, state: State) -> tuple[list[Returned], list[State]]:
        """Run a function body; return its returns, and the states in which it falls off its end."""
        flow = self.block(body, frame, [state])
        return flow.returns, flow.nexts

    def block(self, body: list[ast.stmt], frame: Frame, states: list[State]) -> Flow:
        """Run statements one after the other in every state that reaches them."""
        result = Flow()
        for number, node in enumerate(body):
            if not states:
                self._note_dead(body[number:])
                break
            reached: list[State] = []
            for state in states:
                flow = self.statement(node, Spot(frame, state))
                result.add(flow)
                reached += flow.nexts
            states = group_states(reached)
        result.nexts = states
        return result

    def _note_dead(self, body: list[ast.stmt]) -> None:
        active = [node for node in body if _would_act(node)]
        first = getattr(self.hook_node, "lineno", 0)
        last = getattr(self.hook_node, "end_lineno", 0)
        if active and self.notes.dead_line is None and first <= active[0].lineno <= last:
            self.notes.dead_line = active[0].lineno

    def statement(self, node: ast.stmt, spot: Spot) -> Flow:
        """Run one statement."""
        self.step()
        handler = _HANDLERS.get(type(node))
        try:
            return handler(self, node, spot) if handler else Flow(nexts=[spot.state])
        except Abrupt:
            return Flow()

    # simple statements
    def _return(self, node: ast.Return, spot: Spot) -> Flow:
        value = self.evaluate(node.value, spot) if node.value else Const(None)
        return Flow(returns=[Returned(value, spot.state, node.lineno)])

    def _expression(self, node: ast.Expr, spot: Spot) -> Flow:
        value = self.evaluate(node.value, spot)
        if isinstance(node.value, ast.Call):
            self._note_discarded(value)
        return Flow(nexts=[spot.state])

    def _note_discarded(self, value: Value) -> None:
        if isinstance(value, Changed) and self.notes.discarded is None:
            self.notes.discarded = value

    def _assign(self, node: ast.Assign, spot: Spot) -> Flow:
        value = self.evaluate(node.value, spot)
        self._note_discarded(value)
        for target in node.targets:
            self.assign(target, value, spot)
        return Flow(nexts=[spot.state])

    def _ann_assign(self, node: ast.AnnAssign, spot: Spot) -> Flow:
        if node.value is not None:
            value = self.evaluate(node.value, spot)
            self._note_discarded(value)
            self.assign(node.target, value, spot)
        return Flow(nexts=[spot.state])

    def _aug_assign(self, node: ast.AugAssign, spot: Spot) -> Flow:
        value = self.evaluate(node.value, spot)
        before = self.evaluate(node.target, spot)
        if isinstance(node.op, ast.Add) and isinstance(before, Ref) and self._extend_in_place(before, value, spot):
            return Flow(nexts=[spot.state])
        after = self.binary(before, value, operation=node.op, node=node, spot=spot)
        if isinstance(before, Same) and not self.text_subject and isinstance(after, Changed):
            spot.state.touch(before.tops, after)
        self.assign(node.target, after, spot)
        return Flow(nexts=[spot.state])

    def _extend_in_place(self, ref: Ref, value: Value, spot: Spot) -> bool:
        thing = spot.state.heap.get(ref.name)
        added = self.segments(value, spot)
        if not isinstance(thing, Seq) or added is None:
            return False
        spot.state.heap[ref.name] = Seq(thing.kind, (*thing.segments, *added))
        return True

    def _delete(self, node: ast.Delete, spot: Spot) -> Flow:
        for target in node.targets:
            if isinstance(target, ast.Name):
                spot.state.own(spot.frame.number).pop(target.id, None)
            elif isinstance(target, ast.Subscript | ast.Attribute):
                owner = self.evaluate(target.value, spot)
                gone = self.changed(f"`del {describe(target)}`", node, spot)
                self.write(owner, ("item", "deleted"), gone, node=target, spot=spot)
        return Flow(nexts=[spot.state])

    def _define(self, node: Definition, spot: Spot) -> Flow:
        spot.state.own(spot.frame.number)[node.name] = self.define(node, spot)
        return Flow(nexts=[spot.state])

    def _class(self, node: ast.ClassDef, spot: Spot) -> Flow:
        names = spot.state.own(spot.frame.number)
        names[node.name] = ClassRef(self.project.class_of(node))
        return Flow(nexts=[spot.state])

    def _import(self, node: ast.Import | ast.ImportFrom, spot: Spot) -> Flow:
        for alias in node.names:
            name = alias.asname or alias.name.split(".")[0]
            if name != "*":
                value = self._imported(node, name, spot)
                spot.state.own(spot.frame.number)[name] = value
        return Flow(nexts=[spot.state])

    def _assert(self, node: ast.Assert, spot: Spot) -> Flow:
        self.evaluate(node.test, spot)
        return Flow(nexts=[spot.state])

    def _raise(self, node: ast.Raise, spot: Spot) -> Flow:
        value = self.evaluate(node.exc, spot) if node.exc else Opaque()
        self.sinks[-1].append(
            Raised(self._exception_name(value, node, spot), spot.state, node.lineno, spot.frame.module.source.file)
        )
        return Flow()

    def _exception_name(self, value: Value, node: ast.Raise, spot: Spot) -> str:
        if isinstance(value, Ref):
            thing = spot.state.heap.get(value.name)
            return thing.cls.name if isinstance(thing, Instance) else "Exception"
        if isinstance(value, ClassRef):
            return value.info.name
        if isinstance(value, External):
            return value.name.rsplit(".", 1)[-1]
        head = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        return describe(head).rsplit(".", 1)[-1] if head else "Exception"

    # branches
    def _if(self, node: ast.If, spot: Spot) -> Flow:
        chosen, flags = self.test(node.test, spot)
        if chosen is not None:
            if not flags and self._is_literal(node.test):
                self._note_dead(node.orelse if chosen else node.body)
            return self.block(node.body if chosen else node.orelse, spot.frame, [spot.state])
        return self._both(node, spot)

    def _is_literal(self, test: ast.expr) -> bool:
        return all(not isinstance(part, ast.Call | ast.Compare) for part in ast.walk(test))

    def _both(self, node: ast.If, spot: Spot) -> Flow:
        before = spot.state.guarded
        looks = self._looks_at_subject(node.test, spot)
        flow = Flow()
        for chosen, body in ((True, node.body), (False, node.orelse)):
            inner = self.narrowed(node.test, spot, chosen=chosen)
            inner.state.guarded = before or looks
            taken = self.block(body, spot.frame, [inner.state])
            flow.add(taken)
            flow.nexts += taken.nexts
        flow.nexts = group_states(flow.nexts)
        for state in flow.nexts:
            state.guarded = before or (looks and state.guarded)
        return flow

    def _looks_at_subject(self, test: ast.expr, spot: Spot) -> bool:
        """Return whether a test depends on the subject; evaluated aside, since only its value counts here."""
        sinks, self.sinks = self.sinks, [[]]
        risks = self.notes.risks
        try:
            value = self.evaluate(test, Spot(spot.frame, spot.state.fork()))
            return is_subject(value) and not isinstance(value, Unknown)
        except Abrupt:
            return True
        finally:
            self.sinks = sinks
            self.notes.risks = risks

    def _match(self, node: ast.Match, spot: Spot) -> Flow:
        subject = self.evaluate(node.subject, spot)
        flow = Flow()
        for case in node.cases:
            fits = self._fits(case.pattern, subject, spot)
            if fits is False:
                continue
            inner = Spot(spot.frame, spot.state.fork())
            self._capture(case.pattern, subject, inner)
            guard = self.test(case.guard, inner)[0] if case.guard else True
            if guard is False:
                continue
            taken = self.block(case.body, spot.frame, [inner.state])
            flow.add(taken)
            flow.nexts += taken.nexts
            if fits and guard:
                break
        else:
            flow.nexts.append(spot.state)
        flow.nexts = group_states(flow.nexts)
        return flow

    def _fits(self, pattern: ast.pattern, subject: Value, spot: Spot) -> bool | None:
        match pattern:
            case ast.MatchAs(pattern=None):
                return True
            case ast.MatchAs(pattern=inner) if inner is not None:
                return self._fits(inner, subject, spot)
            case ast.MatchOr():
                fits = [self._fits(inner, subject, spot) for inner in pattern.patterns]
                return True if True in fits else (None if None in fits else False)
            case ast.MatchValue() | ast.MatchSingleton():
                return self._equals(pattern, subject, spot)
            case _:
                return None

    def _equals(self, pattern: ast.MatchValue | ast.MatchSingleton, subject: Value, spot: Spot) -> bool | None:
        other = self.evaluate(pattern.value, spot) if isinstance(pattern, ast.MatchValue) else Const(pattern.value)
        if isinstance(subject, Const) and isinstance(other, Const):
            self.decide(subject.flags | other.flags, f"match on {subject.value!r}")
            return bool(subject.value == other.value)
        return self._equal(subject, other, spot)

    def _capture(self, pattern: ast.pattern, subject: Value, spot: Spot) -> None:
        names = spot.state.own(spot.frame.number)
        if isinstance(pattern, ast.MatchAs) and pattern.pattern is None:
            if pattern.name:
                names[pattern.name] = subject
            return
        piece: Value = self.changed("a piece of it", pattern, spot) if is_subject(subject) else Opaque("a piece")
        for inner in ast.walk(pattern):
            name = getattr(inner, "name", None) or getattr(inner, "rest", None)
            if isinstance(name, str):
                names[name] = subject if inner is pattern else piece

    # loops
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
        return self._loop(node.body, source, spot, bind=bind, surely=surely)

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
            result.breaks = self._without_growing(flow.breaks, growing, spot.frame)
            if not ends:
                break
            again = self._entry_of_next_round(start, ends, growing, spot.frame)
            if again.frames == entry.frames and again.touched.keys() == entry.touched.keys():
                break
            entry = again
        if not surely:
            after.append(start)
        result.nexts = group_states(after)
        return result

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
        after = [end.heap[name].segments if isinstance(end.heap.get(name), Seq) else before for end in ends]  # type: ignore[union-attr]
        if all(segments == before for segments in after):
            return None
        if any(segments[: len(before)] != before for segments in after):
            return (*before, Each(source, Changed("it is rebuilt in a loop"), exact=False))
        return (*before, _round_entry([segments[len(before) :] for segments in after], source, exact=exact))

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

    # handlers
    def _with(self, node: ast.With | ast.AsyncWith, spot: Spot) -> Flow:
        suppressed = False
        for item in node.items:
            value = self.evaluate(item.context_expr, spot)
            name = describe(item.context_expr.func) if isinstance(item.context_expr, ast.Call) else ""
            suppressed = suppressed or name.rsplit(".", 1)[-1] == "suppress"
            if item.optional_vars is not None:
                self.assign(item.optional_vars, self._entered(value, item, spot), spot)
        if not suppressed:
            return self.block(node.body, spot.frame, [spot.state])
        handler = ast.ExceptHandler(type=None, name=None, body=[ast.Pass()], lineno=node.lineno)
        return self._guard(node.body, [handler], spot)

    def _entered(self, value: Value, item: ast.withitem, spot: Spot) -> Value:
        thing = spot.state.heap.get(value.name) if isinstance(value, Ref) else None
        if isinstance(thing, Instance):
            for name in ("__enter__", "__aenter__"):
                if self.find_in_class(thing.cls, name, spot) is not None:
                    method = self.attribute(value, name, node=item.context_expr, spot=spot)
                    return self.call(method, CallArgs(), node=item.context_expr, spot=spot)
        return value if is_subject(value) or isinstance(value, Ref) else Opaque("a context", settled=True)

    def _try(self, node: ast.Try, spot: Spot) -> Flow:
        flow = self._guard(node.body, node.handlers, spot, orelse=node.orelse)
        return self._finally(node.finalbody, flow, spot) if node.finalbody else flow

    def _guard(
        self,
        body: list[ast.stmt],
        handlers: list[ast.ExceptHandler],
        spot: Spot,
        *,
        orelse: list[ast.stmt] | None = None,
    ) -> Flow:
        entry = spot.state.fork()
        risks = self.notes.risks
        self.sinks.append([])
        flow = self.block(body, spot.frame, [spot.state])
        raised = self.sinks.pop()
        completes = bool(flow.nexts or flow.returns or flow.breaks or flow.continues)
        if orelse:
            other = self.block(orelse, spot.frame, flow.nexts)
            flow.add(other)
            flow.nexts = other.nexts
        entry.risky = entry.risky or self.notes.risks > risks
        caught = [item for item in raised if any(self._catches(handler, item.name, spot) for handler in handlers)]
        self.sinks[-1] += [item for item in raised if item not in caught]
        for handler in handlers:
            starts = [item.state for item in caught if self._first_handler(handlers, item.name, spot) is handler]
            if completes and not handler_is_import(handler):
                entry_state = entry.fork()
                entry_state.exceptional = True
                starts.append(entry_state)
            if starts:
                taken = self._handle(handler, starts, spot)
                flow.add(taken)
                flow.nexts += taken.nexts
        flow.nexts = group_states(flow.nexts)
        return flow

    def _handle(self, handler: ast.ExceptHandler, starts: list[State], spot: Spot) -> Flow:
        starts = group_states([state.fork() for state in starts])
        for state in starts:
            if handler.name:
                state.own(spot.frame.number)[handler.name] = Opaque("the exception", settled=True)
        self.sinks.append([])
        flow = self.block(handler.body, spot.frame, starts)
        raised = self.sinks.pop()
        # what a handler raises again on an exceptional path is not the hook's own doing
        self.sinks[-1] += [item for item in raised if not item.state.exceptional]
        return flow

    def _first_handler(self, handlers: list[ast.ExceptHandler], name: str, spot: Spot) -> ast.ExceptHandler | None:
        return next((handler for handler in handlers if self._catches(handler, name, spot)), None)

    def _catches(self, handler: ast.ExceptHandler, name: str, spot: Spot) -> bool:
        if handler.type is None:
            return True
        types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        return any(self._is_kind(name, item, spot) for item in types)

    def _is_kind(self, name: str, item: ast.expr, spot: Spot) -> bool:
        wanted = describe(item).rsplit(".", 1)[-1]
        if wanted in {name, "Exception", "BaseException"}:
            return True
        have, want = getattr(builtins, name, None), getattr(builtins, wanted, None)
        if isinstance(have, type) and isinstance(want, type):
            return issubclass(have, want)
        value = self.lookup(name, spot)
        if isinstance(value, ClassRef):
            return any(entry.rsplit(".", 1)[-1] == wanted for entry in self.project.ancestors(value.info))
        return False

    def _finally(self, body: list[ast.stmt], flow: Flow, spot: Spot) -> Flow:
        result = Flow(breaks=flow.breaks, continues=flow.continues)
        if flow.nexts:
            after = self.block(body, spot.frame, flow.nexts)
            result.add(after)
            result.nexts = after.nexts
        for way in flow.returns:
            after = self.block(body, spot.frame, [way.state])
            result.returns += after.returns
            result.returns += [Returned(way.value, state, way.line) for state in after.nexts]
        if not flow.nexts and not flow.returns:
            result.add(self.block(body, spot.frame, [spot.state.fork()]))
        return result


def _would_act(node: ast.stmt) -> bool:
    """Return whether a statement that is never reached returns something, or works something out."""
    return any(
        isinstance(part, ast.Return) or (isinstance(part, ast.Assign) and isinstance(part.value, ast.Call))
        for part in ast.walk(node)
    )


def handler_is_import(handler: ast.ExceptHandler) -> bool:
    """Return whether a handler is there for a missing package only."""
    name = describe(handler.type) if handler.type is not None else ""
    return name in {"ImportError", "ModuleNotFoundError", "(ImportError, ModuleNotFoundError)"}


def _round_entry(added: list[tuple[Segment, ...]], source: Value, *, exact: bool) -> Segment:
    """Return what one round adds, over all ways through the body."""
    always = all(len(segments) == 1 and isinstance(segments[0], One) for segments in added)
    values = [segment.value for segments in added for segment in segments]
    merged = values[0]
    for value in values[1:]:
        merged = merge_values(merged, value) if always else Changed("it is put together anew")
    return Each(source, merged, exact=exact and always)


def _added_to(node: ast.AST) -> str | None:
    match node:
        case ast.AugAssign(target=ast.Name(id=name), op=ast.Add()):
            return name
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.BinOp(op=ast.Add(), left=ast.Name(id=other))):
            return name if name == other else None
        case _:
            return None


_HANDLERS: dict[type[ast.stmt], Callable[[Any, Any, Spot], Flow]] = {
    ast.Return: Interpreter._return,
    ast.Expr: Interpreter._expression,
    ast.Assign: Interpreter._assign,
    ast.AnnAssign: Interpreter._ann_assign,
    ast.AugAssign: Interpreter._aug_assign,
    ast.Delete: Interpreter._delete,
    ast.FunctionDef: Interpreter._define,
    ast.AsyncFunctionDef: Interpreter._define,
    ast.ClassDef: Interpreter._class,
    ast.Import: Interpreter._import,
    ast.ImportFrom: Interpreter._import,
    ast.Assert: Interpreter._assert,
    ast.Raise: Interpreter._raise,
    ast.If: Interpreter._if,
    ast.Match: Interpreter._match,
    ast.For: Interpreter._for,
    ast.AsyncFor: Interpreter._for,
    ast.While: Interpreter._while,
    ast.Break: Interpreter._break,
    ast.Continue: Interpreter._continue,
    ast.With: Interpreter._with,
    ast.AsyncWith: Interpreter._with,
    ast.Try: Interpreter._try,
    ast.TryStar: Interpreter._try,
}
__all__ = ["VALIDATION", "Choice", "Clone", "Interpreter", "Tup", "dotted_name", "settle"]
