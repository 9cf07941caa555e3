"""`with` and `try`: which handler takes what was raised."""

from __future__ import annotations

import ast
import builtins

from mragaudit.hookaudit.interpreter.flow import Flow
from mragaudit.hookaudit.interpreter.loops import Loops
from mragaudit.hookaudit.interpreter.machine import CallArgs, Returned, Spot
from mragaudit.hookaudit.interpreter.state import Instance, Seq, State, group_states
from mragaudit.hookaudit.interpreter.values import ClassRef, Opaque, Ref, Value, describe, is_subject


class Handlers(Loops):
    """Exceptions and context managers."""

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
        if isinstance(thing, Seq) and thing.kind == "generator":  # a context manager written as a generator
            known = self.known_elements(value, spot)
            return known[0] if known else Opaque("a context", settled=True)
        kind = value.kind if isinstance(value, Opaque) else ""
        return value if is_subject(value) or isinstance(value, Ref) else Opaque("a context", kind=kind, settled=True)

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


def handler_is_import(handler: ast.ExceptHandler) -> bool:
    """Return whether a handler is there for a missing package only."""
    name = describe(handler.type) if handler.type is not None else ""
    return name in {"ImportError", "ModuleNotFoundError", "(ImportError, ModuleNotFoundError)"}
