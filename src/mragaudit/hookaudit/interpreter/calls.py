"""Calls into the tree: arguments, parameters, and function bodies that are run."""

from __future__ import annotations

# ruff: noqa: PLR0911  # an interpreter has one way out for each kind of value
import ast
import functools
from dataclasses import replace

from mragaudit.hookaudit.interpreter.bindings import kind_of
from mragaudit.hookaudit.interpreter.expressions import defaults_of
from mragaudit.hookaudit.interpreter.machine import MAX_DEPTH, Abrupt, CallArgs, GiveUp, Returned, Spot
from mragaudit.hookaudit.interpreter.objects import GIVEN, Objects
from mragaudit.hookaudit.interpreter.state import Instance, Seq, as_same, merge_states, settle
from mragaudit.hookaudit.interpreter.values import (
    Bound,
    Changed,
    Choice,
    ClassRef,
    Const,
    External,
    Func,
    Hint,
    One,
    Opaque,
    Partial,
    Ref,
    Same,
    Tup,
    Unknown,
    Value,
    Wrapped,
    describe,
    flags_of,
    is_subject,
)
from mragaudit.hookaudit.scopes import Definition

MAX_RECURSION = 6
BOTTOM = Unknown("calls itself in a way that was not followed")


class Calls(Objects):
    """The interpreter's calls into the tree."""

    def call_outside(self, func: Value, args: CallArgs, *, node: ast.AST, spot: Spot) -> Value:
        """Return what a function, method or class outside the tree returns."""
        raise NotImplementedError

    def _call(self, node: ast.Call, spot: Spot) -> Value:
        if isinstance(node.func, ast.Name) and node.func.id == "super":
            return self._super(node, spot)
        if isinstance(node.func, ast.Attribute):
            owner = self.evaluate(node.func.value, spot)
            func = self.attribute(owner, node.func.attr, node=node, spot=spot)
        else:
            func = self.evaluate(node.func, spot)
        args = self._arguments(node, spot)
        for value in args.all():
            self.notes.used |= flags_of(value)
        if self._is_source(node, func):
            return self._brought(args, node=node, spot=spot)
        if (name := _called_name(node)) in self.calls_through:
            return self.call_through(self.calls_through[name], args, node=node, spot=spot)
        return self.call(func, args, node=node, spot=spot)

    def _is_source(self, node: ast.Call, func: Value) -> bool:
        """Return whether the hook map says that this call brings the subject."""
        if not self.sources or isinstance(func, Func | Bound | ClassRef):
            return False
        return _called_name(node) in self.sources

    def _brought(self, args: CallArgs, *, node: ast.Call, spot: Spot) -> Value:
        """Return the subject that a call brings; a call that asks for something else than was asked changes it."""
        self.notes.brought = True
        self.notes.risks += 1  # it may raise for reasons of its own
        asked = next(iter(args.all()), None)
        if isinstance(asked, Unknown):
            return asked
        if asked is None or isinstance(asked, Same) or (isinstance(asked, Opaque) and asked.why.endswith(GIVEN)):
            return Same()
        if isinstance(asked, Opaque):
            return self.unknown(f"`{describe(node)}` may ask for something else than it was asked", node, spot)
        return self.changed(f"`{describe(node)}` asks for something else than it was asked", node, spot)

    def call_through(self, position: int, args: CallArgs, *, node: ast.AST, spot: Spot) -> Value:
        """Return what the function at a position of the arguments returns for those after it."""
        if position >= len(args.positional):
            return self.unknown("runs a function that cannot be told", node, spot)
        rest = CallArgs(args.positional[position + 1 :], args.keywords)
        return self.call(args.positional[position], rest, node=node, spot=spot)

    def _arguments(self, node: ast.Call, spot: Spot) -> CallArgs:
        positional: list[Value] = []
        for item in node.args:
            if isinstance(item, ast.Starred):
                positional += self._spread(self.evaluate(item.value, spot), spot)
            else:
                positional.append(self.evaluate(item, spot))
        keywords: dict[str, Value] = {}
        for keyword in node.keywords:
            value = self.evaluate(keyword.value, spot)
            if keyword.arg is not None:
                keywords[keyword.arg] = value
            else:
                keywords |= self._spread_keywords(value, spot)
        return CallArgs(tuple(positional), keywords)

    def _spread(self, value: Value, spot: Spot) -> list[Value]:
        known = self.known_elements(value, spot)
        if known is not None:
            return known
        return [self.element(value, ast.Pass(), spot)] if is_subject(value) else []

    def _spread_keywords(self, value: Value, spot: Spot) -> dict[str, Value]:
        thing = spot.state.heap.get(value.name) if isinstance(value, Ref) else None
        pairs = [segment.value for segment in thing.segments] if isinstance(thing, Seq) else []
        return {
            str(pair.items[0].value): pair.items[1]
            for pair in pairs
            if isinstance(pair, Tup) and isinstance(pair.items[0], Const)
        }

    def call(self, func: Value, args: CallArgs, *, node: ast.AST, spot: Spot) -> Value:
        """Return what a call returns."""
        self.step()
        match func:
            case Func():
                return self.call_function(func, args, node=node, spot=spot)
            case Bound():
                return self.call(
                    func.func, CallArgs((func.receiver, *args.positional), args.keywords), node=node, spot=spot
                )
            case Partial():
                given = CallArgs((*func.args, *args.positional), {**dict(func.kwargs), **args.keywords})
                return self.call(func.func, given, node=node, spot=spot)
            case Wrapped(how="unknown"):
                return self.unknown("is wrapped by a decorator that is not in the tree", node, spot)
            case Wrapped(how="dispatch"):
                return self._dispatched(func.func, args, node=node, spot=spot)
            case Wrapped():
                return self.call(func.func, args, node=node, spot=spot)
            case ClassRef():
                return self.instantiate(func.info, args, node=node, spot=spot)
            case Ref() if isinstance(spot.state.heap.get(func.name), Instance):
                method = self.attribute(func, "__call__", node=node, spot=spot)
                return self.call(method, args, node=node, spot=spot)
            case Choice():
                return self._call_choice(func, args, node=node, spot=spot)
            case _:
                return self.call_outside(func, args, node=node, spot=spot)

    def _call_choice(self, func: Choice, args: CallArgs, *, node: ast.AST, spot: Spot) -> Value:
        callables = tuple(item for item in func.values if not isinstance(item, Const))
        if not callables:
            return Opaque("a call of nothing")
        return self.with_each(Choice(callables), spot, lambda item, at: self.call(item, args, node=node, spot=at))

    def _dispatched(self, func: Value, args: CallArgs, *, node: ast.AST, spot: Spot) -> Value:
        """Call the function that is registered for the type of the first argument, or each that may be."""
        if not isinstance(func, Func) or isinstance(func.node, ast.Lambda):
            return self.call(func, args, node=node, spot=spot)
        chosen: list[Value] = []
        for definition, wanted in registered_for(func.node, func.cls.node if func.cls else func.module.source.tree):
            kind = self.evaluate(wanted, Spot(self.module_frame(func.module), spot.state))
            given = CallArgs((args.positional[func.cls is not None], kind)) if args.positional else CallArgs()
            fits = self.call_outside(External("isinstance"), given, node=node, spot=spot)
            if fits != Const(False):
                chosen.append(Func(definition, func.module, None, func.cls))
            if fits == Const(True):
                break
        else:
            chosen.append(func)
        return self.call(self.merged(chosen), args, node=node, spot=spot)

    def call_function(self, func: Func, args: CallArgs, *, node: ast.AST, spot: Spot) -> Value:
        """Run a function of the tree with its arguments; raises Abrupt where it never returns."""
        key = ((func.node, func.frame), args.positional, tuple(sorted(args.keywords.items(), key=lambda item: item[0])))
        depth = sum(entry[0] == key[0] for entry in self.stack)
        if key in self.stack or depth > MAX_RECURSION:
            return self._recursive(func, args, node=node, spot=spot)
        if len(self.stack) > MAX_DEPTH:
            raise GiveUp(f"calls more than {MAX_DEPTH} functions deep")
        if self.stack and not self.setting_up and any(map(is_subject, args.all())) and func.name != "lambda":
            self.notes.via.append(func.name)
        self.stack.append(key)
        try:
            return self._run_function(func, args, node=node, spot=spot)
        finally:
            self.stack.pop()

    def _recursive(self, func: Func, args: CallArgs, *, node: ast.AST, spot: Spot) -> Value:
        """Return nothing new for the same call again; another depth of recursion is not followed."""
        subjects = [value for value in args.all() if is_subject(value)]
        if any(isinstance(value, Changed) for value in subjects):
            return self.changed(f"`{func.name}` calls itself on what it changed", node, spot)
        return BOTTOM if subjects else Opaque("a recursive call")

    def _run_function(self, func: Func, args: CallArgs, *, node: ast.AST, spot: Spot) -> Value:
        parent = self.frames.get(func.frame) if func.frame is not None else None
        frame = self.new_frame(func.module, parent=parent, func=func, cls=func.cls)
        bound = self.bind(func, args, Spot(frame, spot.state))
        spot.state.own(frame.number).update(bound)
        if isinstance(func.node, ast.Lambda):
            return self.evaluate(func.node.body, Spot(frame, spot.state))
        if is_generator(func.node):
            results = self.new_list((), spot, kind="generator")
            frame = replace(frame, results=results)
            self.frames[frame.number] = frame
        outer = spot.state.exceptional, spot.state.risky, spot.state.guarded
        spot.state.exceptional = False
        returns, ends = self.execute_body(func.node.body, frame, spot.state.fork())
        returns += [Returned(Const(None), state, func.node.lineno) for state in ends]
        value = self.outcome(returns, node=node, spot=spot)
        spot.state.exceptional, spot.state.risky, spot.state.guarded = outer
        if not _makes_closures(func.node):
            spot.state.frames.pop(frame.number, None)
        return frame.results if frame.results is not None else value

    def outcome(self, returns: list[Returned], *, node: ast.AST, spot: Spot) -> Value:
        """Return the value of a call by its returns, and put its state in place of the caller's.

        Paths through an exception handler do not decide, unless there are no others; a handler that gives the
        input back where the ordinary path changes it is noted as fail-open.
        """
        running = [way for way in returns if way.value is BOTTOM]
        returns = [way for way in returns if way.value is not BOTTOM]
        if running and not returns:
            raise GiveUp("calls itself on every path that was followed")
        ordinary = [way for way in returns if not way.state.exceptional] or returns
        if not ordinary:
            raise Abrupt
        handled = [way for way in returns if way not in ordinary]
        state = merge_states([way.state for way in ordinary])
        spot.state.become(state)
        values = [way.value for way in ordinary]
        if len(values) > 1:
            values = [as_same(way.value, way.state) for way in ordinary]
        value = self.merged(values)
        return self._with_handlers(value, ordinary=ordinary, handled=handled, node=node, spot=spot)

    def _with_handlers(
        self, value: Value, *, ordinary: list[Returned], handled: list[Returned], node: ast.AST, spot: Spot
    ) -> Value:
        usual = self.merged([settle(way.value, way.state) for way in ordinary])
        for way in handled:
            settled = settle(way.value, way.state)
            if isinstance(usual, Changed | Unknown) and isinstance(settled, Same):
                self.notes.fail_open_line = self.notes.fail_open_line or way.line
            if isinstance(usual, Same) and not isinstance(settled, Same) and way.state.risky:
                return self.unknown("changes it only when code outside the tree raises", node, spot)
        return value

    # parameters
    def bind(self, func: Func, args: CallArgs, spot: Spot) -> dict[str, Value]:
        """Return the parameters' values; defaults are constants, since nobody can choose them in this call."""
        spec = func.node.args
        names = [arg.arg for arg in (*spec.posonlyargs, *spec.args)]
        bound: dict[str, Value] = dict(zip(names, args.positional, strict=False))
        extra = args.positional[len(names) :]
        known = {*names, *(arg.arg for arg in spec.kwonlyargs)}
        bound |= {name: value for name, value in args.keywords.items() if name in known}
        for name, default in defaults_of(func.node).items():
            if name not in bound:
                bound[name] = self._default(name, default, func=func, spot=spot)
        for arg in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs):
            value = bound.setdefault(arg.arg, Opaque("is not given", settled=True))
            bound[arg.arg] = self.hinted(value, self.hint(arg.annotation, func.module))
        if spec.vararg:
            bound[spec.vararg.arg] = Tup(extra)
        if spec.kwarg:
            rest = tuple(One(Tup((Const(k), v))) for k, v in args.keywords.items() if k not in known)
            bound[spec.kwarg.arg] = self.new_list(rest, spot, kind="dict")
        return bound

    def hinted(self, value: Value, hint: Hint | None) -> Value:
        """Return the value with what its annotation says."""
        if hint and isinstance(value, Same) and value.hint is None:
            return replace(value, hint=hint)
        if hint and isinstance(value, Opaque) and not value.kind:
            return replace(value, kind=kind_of(hint))
        return value


def _called_name(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def registered_for(node: Definition, body: ast.ClassDef | ast.Module) -> list[tuple[Definition, ast.expr]]:
    """Return the functions registered with a `singledispatch` function, each with its type; the last one first."""
    found: list[tuple[Definition, ast.expr]] = []
    for part in body.body:
        for decorator in part.decorator_list if isinstance(part, Definition) else ():
            head = decorator.func if isinstance(decorator, ast.Call) else decorator
            if isinstance(part, Definition) and describe(head) == f"{node.name}.register":
                hints = [arg.annotation for arg in part.args.args if arg.annotation is not None]
                types = decorator.args if isinstance(decorator, ast.Call) else hints
                found += [(part, wanted) for wanted in types[:1]]
    return found[::-1]


@functools.lru_cache(maxsize=4096)
def is_generator(node: Definition) -> bool:
    """Return whether calling a function only makes a generator."""
    return any(isinstance(inner, ast.Yield | ast.YieldFrom) for inner in _own_nodes(node))


@functools.lru_cache(maxsize=4096)
def _makes_closures(node: Definition) -> bool:
    return any(isinstance(inner, Definition | ast.Lambda) for inner in ast.walk(node) if inner is not node)


def _own_nodes(node: Definition) -> list[ast.AST]:
    """Return the nodes of a function that are not inside a nested one."""
    found: list[ast.AST] = []
    pending: list[ast.AST] = list(node.body)
    while pending:
        item = pending.pop()
        found.append(item)
        if not isinstance(item, Definition | ast.Lambda | ast.ClassDef):
            pending.extend(ast.iter_child_nodes(item))
    return found
