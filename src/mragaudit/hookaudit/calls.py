"""Calls into the tree: functions, methods, classes, decorators, and what modules and class bodies bind."""

from __future__ import annotations

# ruff: noqa: PLR0911  # an interpreter has one way out for each kind of value
import ast
import functools
from dataclasses import replace

from mragaudit.hookaudit.expressions import Expressions, is_type_checking
from mragaudit.hookaudit.machine import MAX_DEPTH, TYPE_CHECKING, Abrupt, CallArgs, GiveUp, Returned, Spot
from mragaudit.hookaudit.state import Frame, Instance, Seq, State, as_same, merge_states, settle
from mragaudit.hookaudit.symbols import PLAIN_BASES, Binding, ClassInfo, Definition, Inside, Module, Outside
from mragaudit.hookaudit.values import (
    Bound,
    Changed,
    Choice,
    ClassRef,
    Const,
    External,
    Func,
    Hint,
    Method,
    ModuleRef,
    One,
    Opaque,
    Partial,
    Ref,
    Same,
    Super,
    Tup,
    Unknown,
    Value,
    Wrapped,
    describe,
    flags_of,
    is_subject,
    merge_values,
    with_flags,
)

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
    "contextlib.contextmanager": "context",
    "contextlib.asynccontextmanager": "context",
}
GIVEN = "comes from the caller"
MAX_RECURSION = 6
DATA_CLASSES = frozenset("dataclass dataclasses.dataclass attr.s attrs.define attr.define attrs.frozen".split())


class Calls(Expressions):
    """The interpreter's calls into the tree."""

    def execute_body(self, body: list[ast.stmt], frame: Frame, state: State) -> tuple[list[Returned], list[State]]:
        """Run a function body; return its returns, and the states in which it falls off its end."""
        raise NotImplementedError

    def call_outside(self, func: Value, args: CallArgs, *, node: ast.AST, spot: Spot) -> Value:
        """Return what a function, method or class outside the tree returns."""
        raise NotImplementedError

    # the call expression
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
            case Wrapped(how="context"):
                return Opaque("a context", settled=True)
            case Wrapped(how="unknown"):
                return self.unknown("is wrapped by a decorator that is not in the tree", node, spot)
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
        results = [self.call(item, args, node=node, spot=spot) for item in func.values if not isinstance(item, Const)]
        return self.merged(results) if results else Opaque("a call of nothing")

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
        if _is_generator(func.node):
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
        for name, default in defaults_of(func).items():
            if name not in bound:
                bound[name] = self._default(default, func, spot)
        for arg in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs):
            value = bound.setdefault(arg.arg, Opaque("is not given", settled=True))
            bound[arg.arg] = self.hinted(value, self.hint(arg.annotation, func.module))
        if spec.vararg:
            bound[spec.vararg.arg] = Tup(extra)
        if spec.kwarg:
            rest = tuple(One(Tup((Const(k), v))) for k, v in args.keywords.items() if k not in known)
            bound[spec.kwarg.arg] = self.new_list(rest, spot, kind="dict")
        return bound

    def _default(self, default: ast.expr, func: Func, spot: Spot) -> Value:
        parent = self.frames.get(func.frame) if func.frame is not None else None
        frame = parent or (self.class_frame(func.cls) if func.cls else self.module_frame(func.module))
        return self.evaluate(default, Spot(frame, spot.state))

    def hinted(self, value: Value, hint: Hint | None) -> Value:
        """Return the value with what its annotation says."""
        if hint and isinstance(value, Same) and value.hint is None:
            return replace(value, hint=hint)
        if hint and isinstance(value, Opaque) and not value.kind:
            return replace(value, kind=kind_of(hint))
        return value

    # classes
    def instantiate(self, info: ClassInfo, args: CallArgs, *, node: ast.AST, spot: Spot) -> Value:
        """Return a new object of a class of the tree."""
        ref = self.allocate(Instance(info, {}), spot.state)
        found = self.find_in_class(info, "__init__", spot)
        self.setting_up += 1
        try:
            if isinstance(found, Func):
                self.call_function(found, CallArgs((ref, *args.positional), args.keywords), node=node, spot=spot)
            else:
                attributes = self._fields(info, args)
                spot.state.heap[ref.name] = Instance(info, attributes)
                self._post_init(ref, info, node=node, spot=spot)
        finally:
            self.setting_up -= 1
        return ref

    def _fields(self, info: ClassInfo, args: CallArgs) -> dict[str, Value]:
        names = [name for owner in reversed(self._own_order(info)) for name in field_names(owner)]
        return dict(zip(dict.fromkeys(names), args.positional, strict=False)) | args.keywords

    def _post_init(self, ref: Ref, info: ClassInfo, *, node: ast.AST, spot: Spot) -> None:
        for name in ("__post_init__", "__attrs_post_init__", "model_post_init"):
            found = self.find_in_class(info, name, spot)
            if isinstance(found, Func):
                self.call_function(found, CallArgs((ref,)), node=node, spot=spot)

    def default_instance(self, info: ClassInfo, *, node: ast.AST, spot: Spot) -> Ref:
        """Return an object as its class makes it when it is given no more than it must be: its settings' defaults."""
        found = self.find_in_class(info, "__init__", spot)
        keywords: dict[str, Value] = {}
        if isinstance(found, Func):
            keywords = self.default_arguments(found, prefix=f"init:{info.name}", spot=spot, skip=1)
        self.setting_up += 1
        try:
            made = self.instantiate(info, CallArgs((), keywords), node=node, spot=spot)
        except Abrupt:
            made = self.allocate(Instance(info, {}), spot.state)
        finally:
            self.setting_up -= 1
        return made if isinstance(made, Ref) else self.allocate(Instance(info, {}), spot.state)

    def default_arguments(
        self, func: Func, *, prefix: str, spot: Spot, skip: int, passed: frozenset[str] = frozenset()
    ) -> dict[str, Value]:
        """Return every parameter after the first `skip` as a setting with its default, where it has one."""
        spec = func.node.args
        defaults = defaults_of(func)
        values: dict[str, Value] = {}
        for arg in [*(*spec.posonlyargs, *spec.args)[skip:], *spec.kwonlyargs]:
            hint = self.hint(arg.annotation, func.module)
            if arg.arg in passed:
                values[arg.arg] = Opaque(f"`{arg.arg}` {GIVEN}", kind=kind_of(hint), settled=True)
            elif arg.arg in defaults:
                default = self._default(defaults[arg.arg], func, spot)
                values[arg.arg] = self.setting(f"{prefix}:{arg.arg}", arg.arg, default, heap=spot.state.heap)
            elif hint and hint.cls and hint.cls is not func.cls and len(self.stack) < MAX_DEPTH:
                values[arg.arg] = self._given_object(hint.cls, arg, spot)
            else:
                value = self.setting(f"{prefix}:{arg.arg}", arg.arg, None)
                values[arg.arg] = replace(value, kind=kind_of(hint)) if isinstance(value, Opaque) else value
        return values

    def _given_object(self, info: ClassInfo, arg: ast.arg, spot: Spot) -> Value:
        key = (info.node, "default")
        if key in self.stack:
            return Opaque(f"an object of {info.name}")
        self.stack.append(key)
        try:
            return self.default_instance(info, node=arg, spot=spot)
        finally:
            self.stack.pop()

    def _own_order(self, info: ClassInfo) -> list[ClassInfo]:
        return [entry for entry in self.project.order(info) if isinstance(entry, ClassInfo)]

    def find_in_class(self, info: ClassInfo, name: str, spot: Spot) -> Value | None:
        """Return what a class or its bases hold under a name, unbound; None where nobody in the tree does."""
        return self._find(list(self.project.order(info)), name, spot)

    def _find(self, order: list[ClassInfo | str], name: str, spot: Spot) -> Value | None:
        for entry in order:
            if isinstance(entry, ClassInfo):
                found = self._own_member(entry, name, spot)
                if found is not None:
                    return found
            elif entry.rsplit(".", 1)[-1] not in PLAIN_BASES:
                return External(f"{entry}.{name}")
        return None

    def _own_member(self, info: ClassInfo, name: str, spot: Spot) -> Value | None:
        patch = info.module.scope.patches.get((info.name, name))
        if patch is not None:
            return self.evaluate(patch, Spot(self.module_frame(info.module), spot.state))
        return self.body_name(name, self.class_frame(info), spot.state) if name in info.scope.bindings else None

    def instance_attribute(self, ref: Ref, thing: Instance, *, name: str, node: ast.AST, spot: Spot) -> Value:
        """Return an attribute of an object: its own, its class's, or what `__getattr__` makes."""
        text = describe(node) if isinstance(node, ast.Attribute) else f"self.{name}"
        if name in thing.attributes:
            return self._own_attribute(thing, name, text, spot.state)
        if name == "__class__":
            return ClassRef(thing.cls)
        found = self.find_in_class(thing.cls, name, spot)
        if found is None or isinstance(found, External):
            return self._missing_attribute(ref, thing, name=name, found=found, node=node, spot=spot)
        return self.bind_member(found, ref, thing.cls, name=name, text=text, node=node, spot=spot)

    def _own_attribute(self, thing: Instance, name: str, text: str, state: State) -> Value:
        value = thing.attributes[name]
        if isinstance(value, Const | Opaque | Ref | Tup) and not value.flags and _may_be_setting(value):
            return self.setting(f"attr:{thing.cls.module.name}.{thing.cls.name}.{name}", text, value, heap=state.heap)
        return value

    def _missing_attribute(
        self, ref: Ref, thing: Instance, *, name: str, found: Value | None, node: ast.AST, spot: Spot
    ) -> Value:
        getter = self.find_in_class(thing.cls, "__getattr__", spot)
        if found is None and isinstance(getter, Func):
            return self.call(Bound(getter, ref), CallArgs((Const(name),)), node=node, spot=spot)
        if isinstance(node, ast.Call) or found is not None:
            return Method(Opaque(f"`self.{name}` is not defined in the tree"), name)
        return self.setting(f"attr:{thing.cls.name}.{name}", f"self.{name}", None)

    def bind_member(
        self, found: Value, ref: Value, info: ClassInfo, *, name: str, text: str, node: ast.AST, spot: Spot
    ) -> Value:
        """Return a class's member as an object sees it."""
        match found:
            case Func() | Wrapped(how="unknown"):
                return Bound(found, ref)
            case Partial(method=True):
                return Partial(found.func, (ref, *found.args), found.kwargs)
            case Wrapped(how="static"):
                return found.func
            case Wrapped(how="class"):
                return Bound(found.func, ClassRef(info))
            case Wrapped(how="property"):
                return self.call(Bound(found.func, ref), CallArgs(), node=node, spot=spot)
            case Const() | Opaque() | Ref() | Tup() if not found.flags and _may_be_setting(found):
                return self.setting(f"attr:{info.module.name}.{info.name}.{name}", text, found, heap=spot.state.heap)
            case _:
                return found

    def class_attribute(self, owner: ClassRef, name: str, *, node: ast.AST, spot: Spot) -> Value:
        """Return an attribute of a class."""
        found = self.find_in_class(owner.info, name, spot)
        if isinstance(found, Func):
            return found
        if found is None:
            return Const(owner.info.name) if name == "__name__" else Method(owner, name)
        return self.bind_member(
            found, owner, owner.info, name=name, text=f"{owner.info.name}.{name}", node=node, spot=spot
        )

    def _super(self, node: ast.Call, spot: Spot) -> Value:
        if len(node.args) == 2:  # noqa: PLR2004  # super(Class, self)
            owner = self.evaluate(node.args[0], spot)
            receiver = self.evaluate(node.args[1], spot)
            return Super(receiver, owner.info) if isinstance(owner, ClassRef) else Opaque("super()")
        frame: Frame | None = spot.frame
        while frame is not None and (frame.func is None or frame.func.cls is None):
            frame = frame.parent
        if frame is None or frame.func is None or frame.func.cls is None:
            return Opaque("super()")
        first = [*frame.func.node.args.posonlyargs, *frame.func.node.args.args][:1]
        names = spot.state.names(frame.number)
        receiver = names.get(first[0].arg, Opaque("self")) if first else Opaque("self")
        return Super(receiver, frame.func.cls)

    def super_attribute(self, owner: Super, name: str, *, node: ast.AST, spot: Spot) -> Value:
        """Return an attribute of the classes after `owner.after` in the order of the object."""
        info = owner.after
        if isinstance(owner.receiver, Ref):
            thing = spot.state.heap.get(owner.receiver.name)
            info = thing.cls if isinstance(thing, Instance) else info
        if isinstance(owner.receiver, ClassRef):
            info = owner.receiver.info
        order = list(self.project.order(info))
        start = order.index(owner.after) + 1 if owner.after in order else 1
        found = self._find(order[start:], name, spot)
        if found is None or isinstance(found, External):
            if name in {"__init__", "__post_init__", "__init_subclass__", "__setattr__"}:
                return External("object.__init__")
            where = found.name if isinstance(found, External) else name
            return Method(Opaque(f"`super().{name}` leads to `{where}`, which is not in the tree"), name)
        return self.bind_member(found, owner.receiver, info, name=name, text=f"super().{name}", node=node, spot=spot)

    # what bodies bind
    def bound_value(self, name: str, frame: Frame, state: State) -> Value | None:
        """Return what a module or class body binds a name to, following the branches that are taken."""
        scope = frame.cls.scope if frame.cls is not None else frame.module.scope
        bindings = scope.bindings.get(name)
        if not bindings:
            return None
        start = max((i for i, binding in enumerate(bindings) if not binding.guards), default=0)
        spot = Spot(frame, state)
        value: Value | None = None
        for binding in bindings[start:]:
            value = self._guarded(binding, name, before=value, spot=spot)
        if value is not None and name in scope.effects and frame.cls is None:
            value = self._replayed(value, name, spot)
        if isinstance(value, Const | Ref | Tup) and frame.cls is None and _may_be_setting(value) and not value.flags:
            return self.setting(f"global:{frame.module.name}.{name}", name, value, heap=state.heap)
        return value

    def _replayed(self, value: Value, name: str, spot: Spot) -> Value:
        """Run the statements of the module body that change what a name holds."""
        spot.state.own(spot.frame.number)[name] = value
        statements = spot.frame.module.scope.effects[name]
        _, ends = self.execute_body([s for s in statements if not _is_patch(s)], spot.frame, spot.state)
        for end in ends[:1]:
            spot.state.heap.update(end.heap)
            value = end.names(spot.frame.number).get(name, value)
        spot.state.own(spot.frame.number).pop(name, None)
        return value

    def _guarded(self, binding: Binding, name: str, *, before: Value | None, spot: Spot) -> Value | None:
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
        value = with_flags(self._binding_value(binding.node, name, spot), flags)
        return merge_values(before, value) if doubtful and before is not None else value

    def _fallback(self, binding: Binding, name: str, *, before: Value, spot: Spot) -> Value:
        """Return the value where the `try` body succeeds; that it may not is a setting without a default."""
        key = f"import:{spot.frame.module.name}.{name}"
        other = self._binding_value(binding.node, name, spot)
        if isinstance(before, Const | Opaque | Ref) and isinstance(other, Const | Opaque | Ref):
            chosen = self.setting(key, name, Const(True))
            kept = before if isinstance(chosen, Const) and chosen.value else other
            return with_flags(kept, frozenset({key}))
        return before

    def _binding_value(self, node: ast.AST, name: str, spot: Spot) -> Value:
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
            if name in {"field", "Field", "ib", "attrib", "PrivateAttr"}:
                return self._declared_default(value, spot)
        return self.evaluate(value, spot)

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
            return TYPE_CHECKING if target.name == "typing.TYPE_CHECKING" else External(target.name)
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
        value: Value = Func(node, spot.frame.module, inside, cls)
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


BOTTOM = Unknown("calls itself in a way that was not followed")


def _called_name(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def defaults_of(func: Func) -> dict[str, ast.expr]:
    """Return the parameters that have a default."""
    spec = func.node.args
    names = [arg.arg for arg in (*spec.posonlyargs, *spec.args)]
    found = dict(zip(names[len(names) - len(spec.defaults) :], spec.defaults, strict=True)) if spec.defaults else {}
    for arg, default in zip(spec.kwonlyargs, spec.kw_defaults, strict=True):
        if default is not None:
            found[arg.arg] = default
    return found


def field_names(info: ClassInfo) -> list[str]:
    """Return the fields that a class declares by annotation, in order."""
    return [
        node.target.id
        for node in info.node.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    ]


def kind_of(hint: Hint | None) -> str:
    """Return the type that an annotation names, by which methods outside the tree are known."""
    if hint is None:
        return ""
    if hint.name in {"re.Pattern", "typing.Pattern", "Pattern"}:
        return "re.Pattern"
    if hint.element and hint.element.name in {"re.Pattern", "typing.Pattern", "Pattern"}:
        return "patterns"
    return hint.name


def dotted_name(value: Value) -> str:
    """Return the dotted name of something outside the tree."""
    if isinstance(value, Method):
        owner = dotted_name(value.receiver)
        return f"{owner}.{value.name}" if owner else ""
    return value.name if isinstance(value, External) else ""


def _may_be_setting(value: Const | Opaque | Ref | Tup) -> bool:
    return not isinstance(value, Opaque)


def _is_patch(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Attribute)


@functools.lru_cache(maxsize=4096)
def _is_generator(node: Definition) -> bool:
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
