"""Execution of statements: which part of the interpreter each kind belongs to, the simple ones and branches."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from mragaudit.hookaudit.interpreter.calls import is_generator
from mragaudit.hookaudit.interpreter.flow import Flow
from mragaudit.hookaudit.interpreter.handlers import Handlers
from mragaudit.hookaudit.interpreter.machine import Abrupt, Raised, Returned, Spot
from mragaudit.hookaudit.interpreter.state import Frame, Instance, Seq, State, group_states
from mragaudit.hookaudit.interpreter.values import (
    Bound,
    Changed,
    ClassRef,
    Const,
    External,
    Func,
    Opaque,
    Partial,
    Ref,
    Same,
    Unknown,
    Value,
    describe,
    is_subject,
)
from mragaudit.hookaudit.scopes import Definition

VALIDATION = frozenset({"TypeError", "NotImplementedError"})
CHECKS_OF_KIND = frozenset("len isinstance issubclass type callable hasattr all any bool str".split())


class Interpreter(Handlers):
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

    def _return(self, node: ast.Return, spot: Spot) -> Flow:
        value = self.evaluate(node.value, spot) if node.value else Const(None)
        return Flow(returns=[Returned(value, spot.state, node.lineno)])

    def _expression(self, node: ast.Expr, spot: Spot) -> Flow:
        if isinstance(node.value, ast.BoolOp):
            return self._short_circuit(node.value, spot)
        aside = Spot(spot.frame, spot.state.fork())
        value = self.evaluate(node.value, aside if self._never_runs(node.value, spot) else spot)
        if isinstance(node.value, ast.Call):
            self._note_discarded(value)
        return Flow(nexts=[spot.state])

    def _short_circuit(self, node: ast.BoolOp, spot: Spot) -> Flow:
        """Run `test and action` or `test or action` as the branch that it is."""
        first, rest = node.values[0], node.values[1:]
        test = first if isinstance(node.op, ast.And) else ast.copy_location(ast.UnaryOp(ast.Not(), first), first)
        after = rest[0] if len(rest) == 1 else ast.copy_location(ast.BoolOp(node.op, rest), rest[0])
        return self._if(ast.copy_location(ast.If(test, [ast.copy_location(ast.Expr(after), node)], []), node), spot)

    def _never_runs(self, node: ast.expr, spot: Spot) -> bool:
        """Return whether an expression only prepares what runs when its value is used: a generator, a coroutine."""
        if not isinstance(node, ast.Call) or isinstance(node.func, ast.Call | ast.Lambda):
            return isinstance(node, ast.GeneratorExp)
        func = self.evaluate(node.func, Spot(spot.frame, spot.state.fork()))
        while isinstance(func, Bound | Partial):
            func = func.func
        if isinstance(func, Func) and isinstance(func.node, Definition):
            return isinstance(func.node, ast.AsyncFunctionDef) or is_generator(func.node)
        return func in {External("map"), External("filter")}

    def _note_discarded(self, value: Value) -> None:
        if isinstance(value, Changed) and self.notes.discarded is None:
            self.notes.discarded = value

    def _assign(self, node: ast.Assign, spot: Spot) -> Flow:
        aside = Spot(spot.frame, spot.state.fork())
        unread = _is_never_read(node, spot.frame) and self._never_runs(node.value, spot)
        value = self.evaluate(node.value, aside if unread else spot)
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
        """Run an assertion; one that looks at what the input holds, and not only at its kind or size, refuses some."""
        chosen, flags = self.test(node.test, spot)
        if chosen is True or (chosen is False and flags):
            return Flow(nexts=[spot.state])
        looks = _asks_for_content(node.test) and self._looks_at_subject(node.test, spot)
        if chosen is False or looks:
            refused = spot.state.fork()
            refused.guarded = refused.guarded or looks
            self.sinks[-1].append(Raised("AssertionError", refused, node.lineno, spot.frame.module.source.file))
        return Flow(nexts=[] if chosen is False else [self.narrowed(node.test, spot, chosen=True).state])

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


def _asks_for_content(test: ast.expr) -> bool:
    """Return whether a test looks inside a value: by membership, or by a call that is no check of kind."""
    return any(
        (isinstance(part, ast.Compare) and any(isinstance(op, ast.In | ast.NotIn) for op in part.ops))
        or (isinstance(part, ast.Call) and describe(part.func) not in CHECKS_OF_KIND)
        for part in ast.walk(test)
    )


def _is_never_read(node: ast.Assign, frame: Frame) -> bool:
    """Return whether a function gives a value a name that it then never reads."""
    if frame.func is None or not all(isinstance(target, ast.Name) for target in node.targets):
        return False
    names = {target.id for target in node.targets if isinstance(target, ast.Name)}
    parts = (part for part in ast.walk(frame.func.node) if isinstance(part, ast.Name))
    return all(part.id not in names or not isinstance(part.ctx, ast.Load) for part in parts)


def _would_act(node: ast.stmt) -> bool:
    """Return whether a statement that is never reached returns something, or works something out."""
    return any(
        isinstance(part, ast.Return) or (isinstance(part, ast.Assign) and isinstance(part.value, ast.Call))
        for part in ast.walk(node)
    )


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
