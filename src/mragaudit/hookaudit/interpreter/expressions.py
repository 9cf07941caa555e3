"""Evaluation of expressions: which part of the interpreter each kind belongs to, and the simple ones."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from mragaudit.hookaudit.interpreter.displays import Displays
from mragaudit.hookaudit.interpreter.machine import Spot
from mragaudit.hookaudit.interpreter.state import Seq, as_same, merge_states
from mragaudit.hookaudit.interpreter.values import (
    NO_FLAGS,
    Const,
    Func,
    One,
    Opaque,
    Spread,
    Value,
    flags_of,
    merge_values,
    with_flags,
)


class Expressions(Displays):
    """The interpreter's expressions."""

    def evaluate(self, node: ast.expr, spot: Spot) -> Value:
        """Return the value of an expression."""
        self.step()
        handler = _HANDLERS.get(type(node))
        return handler(self, node, spot) if handler else Opaque(type(node).__name__)

    def _constant(self, node: ast.Constant, _spot: Spot) -> Value:
        return Const(node.value)

    def _name(self, node: ast.Name, spot: Spot) -> Value:
        value = self.lookup(node.id, spot)
        self.reread(value, node.id)
        return value

    def _named(self, node: ast.NamedExpr, spot: Spot) -> Value:
        value = self.evaluate(node.value, spot)
        frame = spot.frame
        while frame.comprehension and frame.parent is not None:
            frame = frame.parent
        self.assign(node.target, value, Spot(frame, spot.state))
        return value

    def _await(self, node: ast.Await, spot: Spot) -> Value:
        return self.evaluate(node.value, spot)

    def _lambda(self, node: ast.Lambda, spot: Spot) -> Value:
        return Func(node, spot.frame.module, spot.frame.number, defaults=self.defaults_then(node, spot))

    def defaults_then(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, spot: Spot
    ) -> tuple[tuple[str, Value], ...]:
        """Return what the defaults of a function that is defined inside another one are at that time."""
        given = defaults_of(node) if spot.frame.func is not None else {}
        return tuple((name, self.evaluate(default, spot)) for name, default in given.items())

    def _if_exp(self, node: ast.IfExp, spot: Spot) -> Value:
        chosen, flags = self.test(node.test, spot)
        if chosen is not None:
            return with_flags(self.evaluate(node.body if chosen else node.orelse, spot), flags)
        spots = [self.narrowed(node.test, spot, chosen=chosen) for chosen in (True, False)]
        pairs = zip((node.body, node.orelse), spots, strict=True)
        values = [as_same(self.evaluate(part, at), at.state) for part, at in pairs]
        spot.state.become(merge_states([at.state for at in spots]))
        return self.merged(values)

    def _bool_op(self, node: ast.BoolOp, spot: Spot) -> Value:
        stops = isinstance(node.op, ast.Or)
        result: Value | None = None
        flags: frozenset[str] = NO_FLAGS
        for part in node.values:
            value = self.evaluate(part, spot)
            truth = self.truth(value, part, spot)
            flags |= flags_of(value)
            if truth is stops or part is node.values[-1]:
                return with_flags(value if result is None else merge_values(result, value), flags)
            if truth is None:
                kept = self.filtered(value, truthy=stops)
                result = kept if result is None else merge_values(result, kept)
        return result or Opaque()

    def _call(self, node: ast.Call, spot: Spot) -> Value:
        raise NotImplementedError

    def _yield(self, node: ast.Yield | ast.YieldFrom, spot: Spot) -> Value:
        value = self.evaluate(node.value, spot) if node.value else Const(None)
        results = spot.frame.results
        if results is not None:
            thing = spot.state.heap.get(results.name)
            segments = thing.segments if isinstance(thing, Seq) else ()
            added = self.segments(value, spot) if isinstance(node, ast.YieldFrom) else (One(value),)
            extra = added if added is not None else (Spread(value),)
            spot.state.heap[results.name] = Seq("generator", (*segments, *extra))
        return Opaque("what the caller sends", settled=True)


_HANDLERS: dict[type[ast.expr], Callable[[Any, Any, Spot], Value]] = {
    ast.Constant: Expressions._constant,
    ast.Name: Expressions._name,
    ast.NamedExpr: Expressions._named,
    ast.Await: Expressions._await,
    ast.Lambda: Expressions._lambda,
    ast.IfExp: Expressions._if_exp,
    ast.BoolOp: Expressions._bool_op,
    ast.UnaryOp: Expressions._unary,
    ast.Compare: Expressions._compare,
    ast.BinOp: Expressions._bin_op,
    ast.JoinedStr: Expressions._joined_str,
    ast.Tuple: Expressions._tuple,
    ast.List: Expressions._list,
    ast.Set: Expressions._list,
    ast.Dict: Expressions._dict,
    ast.ListComp: Expressions._comprehension,
    ast.SetComp: Expressions._comprehension,
    ast.GeneratorExp: Expressions._comprehension,
    ast.DictComp: Expressions._dict_comp,
    ast.Attribute: Expressions._attribute,
    ast.Subscript: Expressions._subscript,
    ast.Yield: Expressions._yield,
    ast.YieldFrom: Expressions._yield,
    ast.Call: lambda self, node, spot: self._call(node, spot),
}


def defaults_of(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> dict[str, ast.expr]:
    """Return the parameters that have a default."""
    spec = node.args
    names = [arg.arg for arg in (*spec.posonlyargs, *spec.args)]
    found = dict(zip(names[len(names) - len(spec.defaults) :], spec.defaults, strict=True)) if spec.defaults else {}
    for arg, default in zip(spec.kwonlyargs, spec.kw_defaults, strict=True):
        if default is not None:
            found[arg.arg] = default
    return found
