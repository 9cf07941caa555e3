"""What modules and class bodies bind names to: definitions, decorators, assignments, imports."""

from __future__ import annotations

import ast
from dataclasses import replace

from mragaudit.hookaudit.interpreter.expressions import Expressions
from mragaudit.hookaudit.interpreter.machine import TYPE_CHECKING, CallArgs, Returned, Spot
from mragaudit.hookaudit.interpreter.state import Frame, Instance, Seq, State
from mragaudit.hookaudit.interpreter.truth import is_type_checking
from mragaudit.hookaudit.interpreter.values import (
    ClassRef,
    Const,
    External,
    Func,
    Hint,
    Method,
    ModuleRef,
    Opaque,
    Ref,
    Tup,
    Unknown,
    Value,
    Wrapped,
    describe,
    merge_values,
    outside,
    with_flags,
)
from mragaudit.hookaudit.registries import filled_elsewhere
from mragaudit.hookaudit.scopes import Binding, Definition
from mragaudit.hookaudit.symbols import ClassInfo, Inside, Module, Outside

TRANSPARENT = (
    "abstractmethod",
    "override",
    "final",
    "overload",
    "wraps",
    "lru_cache",
    "cache",
    "no_type_check",
    "runtime_checkable",
    "tenacity.retry",
    "backoff.on_exception",
    "deprecated",
    "abc.abstractmethod",
    "abc.abstractclassmethod",
    "update_wrapper",
)
WRAPPERS = {
    "staticmethod": "static",
    "classmethod": "class",
    "property": "property",
    "functools.cached_property": "property",
    "cached_property": "property",
    "abc.abstractproperty": "property",
    "functools.singledispatch": "dispatch",
    "functools.singledispatchmethod": "dispatch",
    "contextlib.contextmanager": "context",
    "contextlib.asynccontextmanager": "context",
}


class Bindings(Expressions):
    """What names of bodies stand for."""

    # provided by the statements
    def execute_body(self, body: list[ast.stmt], frame: Frame, state: State) -> tuple[list[Returned], list[State]]:
        """Run a function body; return its returns, and the states in which it falls off its end."""
        raise NotImplementedError

    # names
    def bound_value(self, name: str, frame: Frame, state: State) -> Value | None:
        """Return what a module or class body binds a name to, following the branches that are taken."""
        scope = frame.cls.scope if frame.cls is not None else frame.module.scope
        bindings = scope.bindings.get(name)
        if not bindings:
            return None
        last = max(getattr(binding.node, "lineno", 0) for binding in bindings)
        over = self.project.starred_over(frame.module, name, after=last) if frame.cls is None else None
        if over is not None:
            return self.body_name(name, self.module_frame(over), state)
        start = max((i for i, binding in enumerate(bindings) if not binding.guards), default=0)
        spot = Spot(frame, state)
        value: Value | None = None
        for binding in bindings[start:]:
            value = self.guarded(binding, name, before=value, spot=spot)
        if value is not None and name in scope.effects and frame.cls is None and not isinstance(value, External):
            value = self._replayed(value, name, spot)
        if isinstance(value, Ref) and frame.cls is None and (other := self._filled_elsewhere(value, name, spot)):
            return Unknown(f"`{name}` is filled by `{other}` when that is imported")
        if isinstance(value, Const | Ref | Tup) and frame.cls is None and may_be_setting(value) and not value.flags:
            return self.setting(f"global:{frame.module.name}.{name}", name, value, heap=state.heap)
        return value

    def _filled_elsewhere(self, value: Ref, name: str, spot: Spot) -> str:
        """Return the module that puts something into what is empty here, or into an object that holds registrations."""
        thing = spot.state.heap.get(value.name)
        is_open = isinstance(thing, Instance) or (isinstance(thing, Seq) and not thing.segments)
        return filled_elsewhere(self.project).get((spot.frame.module.name, name), "") if is_open else ""

    def _replayed(self, value: Value, name: str, spot: Spot) -> Value:
        """Run the statements of the module body that change what a name holds."""
        names = spot.state.own(spot.frame.number)
        before = dict(names)
        names[name] = value
        statements = spot.frame.module.scope.effects[name]
        if isinstance(value, ClassRef):  # what is assigned to a class stands among its patches
            statements = [statement for statement in statements if not _is_patch(statement)]
        _, ends = self.execute_body(statements, spot.frame, spot.state)
        for end in ends[:1]:
            spot.state.heap.update(end.heap)
            value = end.names(spot.frame.number).get(name, value)
        names = spot.state.own(spot.frame.number)
        names.clear()
        names.update(before)
        return value

    def guarded(self, binding: Binding, name: str, *, before: Value | None, spot: Spot) -> Value | None:
        """Return what a name holds after a binding, as its guards have it."""
        flags: frozenset[str] = frozenset()
        doubtful = False
        for guard in binding.guards:
            if guard.test is not None and is_type_checking(guard.test) and guard.how == "if":
                continue  # what is imported for type checkers is what a lazy import brings at run time
            if guard.test is not None:
                chosen, own = self.test(guard.test, spot)
                flags |= own
                if chosen is not None and chosen is not (guard.how == "if"):
                    return with_flags(before, flags) if before is not None else None
                doubtful = doubtful or chosen is None
            elif guard.how == "except" and before is not None:
                return self._fallback(binding, name, before=before, spot=spot)
        value = with_flags(self._value_then(binding.node, name, spot), flags)
        return merge_values(before, value) if doubtful and before is not None else value

    def _fallback(self, binding: Binding, name: str, *, before: Value, spot: Spot) -> Value:
        """Return the value where the `try` body succeeds; that it may not is a setting without a default."""
        key = f"import:{spot.frame.module.name}.{name}"
        other = self._value_then(binding.node, name, spot)
        if isinstance(before, Const | Opaque | Ref) and isinstance(other, Const | Opaque | Ref):
            chosen = self.setting(key, name, Const(True))
            kept = before if isinstance(chosen, Const) and chosen.value else other
            return with_flags(kept, frozenset({key}))
        return before

    def _value_then(self, node: ast.AST, name: str, spot: Spot) -> Value:
        """Return what a binding gives, at the time at which its line runs."""
        outer, self.reading_line = self.reading_line, getattr(node, "lineno", None)
        try:
            return self._binding_value(node, name, spot)
        finally:
            self.reading_line = outer

    def _binding_value(self, node: ast.AST, name: str, spot: Spot) -> Value:  # noqa: PLR0911  # one for each statement
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                return self.define(node, spot, cls=spot.frame.cls)
            case ast.ClassDef():
                return ClassRef(self.project.class_of(node))
            case ast.Import() | ast.ImportFrom():
                return self._imported(node, name, spot)
            case ast.Assign():
                return self._assigned(node, name, spot)
            case ast.AnnAssign(value=ast.expr() as value):
                found = self._field_default(value, spot)
                hint = self.hint(node.annotation, spot.frame.module)
                return replace(found, kind=kind_of(hint)) if isinstance(found, Opaque) and not found.kind else found
            case ast.expr():
                return self.evaluate(node, spot)
            case _:
                return Opaque(f"`{name}`")

    def _assigned(self, node: ast.Assign, name: str, spot: Spot) -> Value:
        if any(isinstance(target, ast.Name) and target.id == name for target in node.targets):
            return self._field_default(node.value, spot)
        for target in node.targets:
            self.assign(target, self.evaluate(node.value, spot), spot)
        found = spot.state.own(spot.frame.number).pop(name, None)
        return found if found is not None else Opaque(f"`{name}`")

    def _field_default(self, value: ast.expr, spot: Spot) -> Value:
        """Return a value, or the default that a field declaration gives."""
        if isinstance(value, ast.Call) and spot.frame.cls is not None:
            name = describe(value.func).rsplit(".", 1)[-1]
            if name == "auto":
                return self._automatic(value, spot.frame.cls)
            if name in {"field", "Field", "ib", "attrib", "PrivateAttr"}:
                return self._declared_default(value, spot)
        return self.evaluate(value, spot)

    def _automatic(self, value: ast.Call, info: ClassInfo) -> Const:
        """Return a member's value that nobody chose: a bit of its own in a flag enumeration, else one of its own."""
        if not any(str(entry).endswith("Flag") for entry in self.project.order(info)[1:]):
            return Const(f"auto {value.lineno}")
        calls = [part.lineno for node in info.node.body for part in ast.walk(node) if isinstance(part, ast.Call)]
        return Const(1 << sorted(calls).index(value.lineno))

    def _declared_default(self, call: ast.Call, spot: Spot) -> Value:
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        factory = given.get("default_factory") or given.get("factory")
        if factory is not None:
            return self.call(self.evaluate(factory, spot), CallArgs(), node=call, spot=spot)
        default = given.get("default") or (call.args[0] if call.args else None)
        if default is None or (isinstance(default, ast.Constant) and default.value is Ellipsis):
            return Opaque("a field that has to be given")
        return self.evaluate(default, spot)

    def _imported(self, node: ast.Import | ast.ImportFrom, name: str, spot: Spot) -> Value:
        target = self.project.import_target(node, name, spot.frame.module)
        if isinstance(target, Outside):
            return TYPE_CHECKING if target.name == "typing.TYPE_CHECKING" else outside(target.name)
        return self._follow(target, spot)

    def _follow(self, target: Inside, spot: Spot) -> Value:
        if not target.name:
            return ModuleRef(target.module)
        found = self.body_name(target.name, self.module_frame(target.module), spot.state)
        if found is not None:
            return found
        for module in self.project.star_targets(target.module):
            if isinstance(module, Module) and target.name in module.scope.bindings:
                return self._follow(Inside(module, target.name), spot)
        return External(f"{target.module.name}.{target.name}")

    # decorators
    def define(self, node: Definition, spot: Spot, *, cls: ClassInfo | None = None) -> Value:
        """Return a function as its decorators leave it."""
        inside = spot.frame.number if spot.frame.func is not None else None
        value: Value = Func(node, spot.frame.module, inside, cls, self.defaults_then(node, spot))
        for decorator in reversed(node.decorator_list):
            value = self._decorated(decorator, value, spot)
        return value

    def _decorated(self, decorator: ast.expr, value: Value, spot: Spot) -> Value:
        head = decorator.func if isinstance(decorator, ast.Call) else decorator
        found = self.evaluate(head, spot)
        name = dotted_name(found) or describe(head)
        if name in WRAPPERS:
            return Wrapped(WRAPPERS[name], value)
        if name.endswith((".setter", ".deleter", ".getter")):
            return value
        if self._is_transparent(name):
            return value
        if isinstance(found, External | Method | Opaque):
            return Wrapped("unknown", value)
        decorate = self.evaluate(decorator, spot) if isinstance(decorator, ast.Call) else found
        return self.call(decorate, CallArgs((value,)), node=decorator, spot=spot)

    def _is_transparent(self, name: str) -> bool:
        last = name.rsplit(".", 1)[-1]
        return last in TRANSPARENT or name in TRANSPARENT or name.endswith(self.transparent or ("\0",))


def dotted_name(value: Value) -> str:
    """Return the dotted name of something outside the tree."""
    if isinstance(value, Method):
        owner = dotted_name(value.receiver)
        return f"{owner}.{value.name}" if owner else ""
    return value.name if isinstance(value, External) else ""


def _is_patch(statement: ast.stmt) -> bool:
    while isinstance(statement, ast.If):
        statement = statement.body[0]
    return isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Attribute)


def may_be_setting(value: Const | Opaque | Ref | Tup) -> bool:
    """Return whether a value can be what a setting is by default."""
    return not isinstance(value, Opaque)


def kind_of(hint: Hint | None) -> str:
    """Return the type that an annotation names, by which methods outside the tree are known."""
    if hint is None:
        return ""
    if hint.name in {"re.Pattern", "typing.Pattern", "Pattern"}:
        return "re.Pattern"
    if hint.element and hint.element.name in {"re.Pattern", "typing.Pattern", "Pattern"}:
        return "patterns"
    return hint.name
