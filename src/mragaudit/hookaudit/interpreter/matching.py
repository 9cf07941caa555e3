"""`match` statements."""

from __future__ import annotations

import ast

from mragaudit.hookaudit.interpreter.flow import Flow
from mragaudit.hookaudit.interpreter.library import Library
from mragaudit.hookaudit.interpreter.machine import Spot
from mragaudit.hookaudit.interpreter.state import Frame, State, group_states
from mragaudit.hookaudit.interpreter.values import Const, External, Opaque, Same, Value, is_subject


class Matching(Library):
    """What patterns match and capture."""

    # provided by the statements
    def block(self, body: list[ast.stmt], frame: Frame, states: list[State]) -> Flow:
        """Run statements one after the other; return the ways out of them."""
        raise NotImplementedError

    # patterns
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

    def _fits(self, pattern: ast.pattern, subject: Value, spot: Spot) -> bool | None:  # noqa: PLR0911  # one a kind
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
            case ast.MatchClass(kwd_patterns=[]) if isinstance(subject, Same):
                return self._is_instance_of(pattern, subject, spot)
            case ast.MatchMapping() if isinstance(subject, Same):
                return False if self.type_of(subject, spot) in {External("str"), External("list")} else None
            case ast.MatchSequence() if isinstance(subject, Same):
                return self._fits_sequence(pattern, subject, spot)
            case _:
                return None

    def _is_instance_of(self, pattern: ast.MatchClass, subject: Same, spot: Spot) -> bool | None:
        """Return whether the subject is of a class; a builtin type may take the whole of it as its one argument."""
        if any(self._fits(inner, subject, spot) is not True for inner in pattern.patterns[:1]) or pattern.patterns[1:]:
            return None
        wanted, found = self.evaluate(pattern.cls, spot), self.type_of(subject, spot)
        plain = isinstance(wanted, External) and wanted.name in {
            "str",
            "list",
            "int",
            "float",
            "dict",
            "tuple",
            "bytes",
        }
        return wanted == found if plain and found is not None else None

    def _fits_sequence(self, pattern: ast.MatchSequence, subject: Same, spot: Spot) -> bool | None:
        if self.type_of(subject, spot) == External("str"):
            return False  # a text is no sequence here
        whole = len(pattern.patterns) == 1 and isinstance(pattern.patterns[0], ast.MatchStar)
        return True if whole else False if not pattern.patterns else None

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
        inside = pattern.patterns if isinstance(pattern, ast.MatchClass | ast.MatchSequence) else []
        if isinstance(pattern, ast.MatchAs) and pattern.pattern is not None:
            self._capture(pattern.pattern, subject, spot)
            names = spot.state.own(spot.frame.number)
            names[str(pattern.name)] = subject
            return
        if len(inside) == 1 and self._fits(pattern, subject, spot):  # `str(text)` and `[*items]` hold the whole
            name = getattr(inside[0], "name", None)
            if isinstance(name, str):
                names[name] = subject
            return
        piece: Value = self.changed("a piece of it", pattern, spot) if is_subject(subject) else Opaque("a piece")
        for inner in ast.walk(pattern):
            name = getattr(inner, "name", None) or getattr(inner, "rest", None)
            if isinstance(name, str):
                names[name] = piece
