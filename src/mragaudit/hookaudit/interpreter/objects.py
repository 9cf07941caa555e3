"""Classes and their objects: how they are made, and what their attributes are."""

from __future__ import annotations

# ruff: noqa: PLR0911  # an interpreter has one way out for each kind of value
import ast
from dataclasses import replace

from mragaudit.hookaudit.interpreter.bindings import Bindings, kind_of, may_be_setting
from mragaudit.hookaudit.interpreter.expressions import defaults_of
from mragaudit.hookaudit.interpreter.machine import MAX_DEPTH, Abrupt, CallArgs, GiveUp, Spot
from mragaudit.hookaudit.interpreter.state import Frame, Instance, Seq, State, class_key
from mragaudit.hookaudit.interpreter.values import (
    Bound,
    ClassRef,
    Const,
    External,
    Func,
    Method,
    Opaque,
    Partial,
    Ref,
    Super,
    Tup,
    Value,
    Wrapped,
    describe,
)
from mragaudit.hookaudit.symbols import PLAIN_BASES, ClassInfo

GIVEN = "comes from the caller"


class Objects(Bindings):
    """Objects of the classes of the tree."""

    # provided by the calls
    def call_function(self, func: Func, args: CallArgs, *, node: ast.AST, spot: Spot) -> Value:
        """Return what a function of the tree returns."""
        raise NotImplementedError

    # making
    def instantiate(self, info: ClassInfo, args: CallArgs, *, node: ast.AST, spot: Spot) -> Value:
        """Return a new object of a class of the tree; a member of an enumeration stands for its value."""
        if len(args.all()) == 1 and any(str(entry).endswith("Enum") for entry in self.project.order(info)[1:]):
            return args.all()[0]
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

    def made_class(self, info: ClassInfo, spot: Spot) -> ClassInfo:
        """Return the class that a definition leaves, once its bases and decorators have done to it what they do."""
        value: Value = ClassRef(info)
        for entry in reversed(self._own_order(info)):
            value = self._finished_class(entry, spot)
        if not isinstance(value, ClassRef):
            raise GiveUp(f"a decorator puts something else in the place of {info.name}")
        return value.info

    def _finished_class(self, info: ClassInfo, spot: Spot) -> Value:
        value: Value = ClassRef(info)
        at = Spot(self.module_frame(info.module), spot.state)
        keywords = {item.arg: item.value for item in info.node.keywords if item.arg}
        metaclass = self.evaluate(keywords.pop("metaclass"), at) if "metaclass" in keywords else None
        if isinstance(metaclass, ClassRef) and any(n in metaclass.info.scope.bindings for n in ("__new__", "__init__")):
            raise GiveUp(f"{metaclass.info.name} makes the class {info.name} in a way that is not followed")
        order = list(self.project.order(info))
        hook = self._find([entry for entry in order[1:] if isinstance(entry, ClassInfo)], "__init_subclass__", spot)
        hook = hook.func if isinstance(hook, Wrapped) else hook
        marker = f"finished {id(info)}"
        if isinstance(hook, Func) and marker not in spot.state.heap:
            spot.state.heap[marker] = Seq("list")
            given = {name: self.evaluate(item, at) for name, item in keywords.items()}
            self.call_function(hook, CallArgs((value,), given), node=info.node, spot=at)
        for decorator in reversed(info.node.decorator_list):
            decorate = self.evaluate(decorator, at)
            if isinstance(decorate, Func | Bound | Partial | ClassRef):
                value = self.call(decorate, CallArgs((value,)), node=decorator, spot=at)
        return value

    def default_arguments(
        self, func: Func, *, prefix: str, spot: Spot, skip: int, passed: frozenset[str] = frozenset()
    ) -> dict[str, Value]:
        """Return every parameter after the first `skip` as a setting with its default, where it has one."""
        spec = func.node.args
        defaults = defaults_of(func.node)
        values: dict[str, Value] = {}
        for arg in [*(*spec.posonlyargs, *spec.args)[skip:], *spec.kwonlyargs]:
            hint = self.hint(arg.annotation, func.module)
            if arg.arg in passed:
                values[arg.arg] = Opaque(f"`{arg.arg}` {GIVEN}", kind=kind_of(hint), settled=True)
            elif arg.arg in defaults:
                default = self._default(arg.arg, defaults[arg.arg], func=func, spot=spot)
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
        if "__init_subclass__" in info.scope.bindings and not name.startswith("__"):
            self._define_subclasses(info, spot)
        written = spot.state.heap.get(class_key(info))
        if isinstance(written, Instance) and name in written.attributes:
            return written.attributes[name]
        value = self.body_name(name, self.class_frame(info), spot.state) if name in info.scope.bindings else None
        for patch in info.module.scope.patches.get((info.name, name), ()):
            if self.reading_line is None or getattr(patch.node, "lineno", 0) < self.reading_line:
                at = Spot(self.module_frame(info.module), spot.state)
                value = self.guarded(patch, name, before=value, spot=at)
        return value

    def _define_subclasses(self, info: ClassInfo, spot: Spot) -> None:
        """Run what a class does when it is inherited from, once for each subclass: such classes register themselves."""
        marker = f"subclasses {id(info)}"
        if marker not in spot.state.heap:
            spot.state.heap[marker] = Seq("list")
            for subclass in self.project.subclasses(info):
                self._finished_class(subclass, spot)

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
        if isinstance(value, Const | Opaque | Ref | Tup) and not value.flags and may_be_setting(value):
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
            case Func() | Wrapped(how="unknown" | "context" | "dispatch"):
                return Bound(found, ref)
            case Partial(method=True):
                return Partial(found.func, (ref, *found.args), found.kwargs)
            case Wrapped(how="static"):
                return found.func
            case Wrapped(how="class"):
                return Bound(found.func, ClassRef(info))
            case Wrapped(how="property"):
                return self.call(Bound(found.func, ref), CallArgs(), node=node, spot=spot)
            case Const() | Opaque() | Ref() | Tup() if not found.flags and may_be_setting(found):
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

    def _default(self, name: str, default: ast.expr, *, func: Func, spot: Spot) -> Value:
        captured = dict(func.defaults)
        if name in captured:
            return captured[name]
        parent = self.frames.get(func.frame) if func.frame is not None else None
        frame = parent or (self.class_frame(func.cls) if func.cls else self.module_frame(func.module))
        return self.evaluate(default, Spot(frame, spot.state))


def field_names(info: ClassInfo) -> list[str]:
    """Return the fields that a class declares by annotation, in order."""
    return [
        node.target.id
        for node in info.node.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    ]
