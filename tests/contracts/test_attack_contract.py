"""What every registered attack and probe must do; a new one is picked up from the registry."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from driving import EchoTarget, drive, make_tools
from mragaudit.attacks.steps import Ask, Attack, Candidate, Outcome, Think, Tools
from mragaudit.embed.hashing import HashingEmbedder
from mragaudit.errors import ConfigError
from mragaudit.registry import checked_options, create, names

EXTRACTION = (
    "ps",
    "pm",
    "ikea",
    "deal",
    "rag_thief",
    "repeat_union",
    "cross_lingual",
    "session_reset",
    "split_request",
)
TITLES = tuple(f"Project {name}" for name in ("Heron", "Otter", "Kestrel", "Raven", "Falcon", "Pelican"))
CANDIDATES = tuple(Candidate(candidate_id=title, title=title, text=f"{title} buys granite.") for title in TITLES[:2])
REFUSAL = "I'm sorry, I cannot help with that."
OTHER_LANGUAGE = "预算已经批准，请联系莉娜。 الميزانية معتمدة."
REPLIES: dict[str, Callable[[Ask], str]] = {
    "empty": lambda _: "",
    "huge": lambda _: "The granite ledger lists m v @ h. Ask Mara Velten: QUJDREVGR0hJ. " * 4000,
    "one endless word": lambda _: "a" * 200_000,
    "another language": lambda _: OTHER_LANGUAGE,
    "refusal": lambda _: REFUSAL,
    "braces and lone surrogates": lambda _: "{anchor} {0} {} %s \ud800 \0",
}
SMALL: dict[str, dict[str, Any]] = {"deal": {"iterations": 1, "seeds": 2, "queries": 1}}
"""Fewer thoughts, so that the suite is quick."""


@pytest.fixture(params=names("attack"))
def attack(request: pytest.FixtureRequest) -> Attack:
    name = str(request.param)
    made: Attack = create("attack", name, options=SMALL.get(name, {}))
    return made


@pytest.fixture(params=[(), TITLES], ids=["topics", "titles"])
def handles(request: pytest.FixtureRequest) -> tuple[str, ...]:
    return tuple(request.param)


def tools(handles: tuple[str, ...] = (), *, budget: int = 8, seed: int = 0) -> Tools:
    return make_tools(budget=budget, seed=seed, handles=handles, candidates=CANDIDATES)


def babble(think: Think) -> str:
    """Write nonsense that depends on the prompt, as a small model does."""
    return f"{{x}} {think.prompt.messages[-1].content[-40:]}, , ?? | 1.\n\n"


def test_it_goes_by_its_name_and_needs_no_option() -> None:
    for name in names("attack"):
        made: Attack = create("attack", name, options={})
        assert made.name == name


def test_an_unknown_attack_and_an_unknown_option_get_the_nearest_name() -> None:
    with pytest.raises(ConfigError, match='did you mean "rag_thief"'):
        create("attack", "rag_theif", options={})
    with pytest.raises(ConfigError, match='did you mean "iterations"'):
        checked_options("attack", "deal", options={"iteration": 3})
    with pytest.raises(ConfigError, match=r"deal\.iterations"):
        checked_options("attack", "deal", options={"iterations": "three"})


def test_the_same_seed_asks_the_same(attack: Attack, handles: tuple[str, ...]) -> None:
    runs = [drive(attack, EchoTarget(DOCUMENTS), tools=tools(handles, seed=4), think=babble) for _ in range(2)]
    assert runs[0] == runs[1]


THINKS: dict[str, Callable[[Think], str]] = {
    "nothing": lambda _: "",
    "nonsense": babble,
    "without end": lambda _: "word " * 20_000,
}
WRITTEN = [*((kind, "nonsense") for kind in REPLIES), ("empty", "nothing"), ("huge", "without end")]


@pytest.mark.parametrize(("kind", "written"), WRITTEN)
def test_it_stays_in_its_budget_whatever_is_replied(attack: Attack, kind: str, written: str) -> None:
    run = drive(attack, REPLIES[kind], tools=tools(budget=9), think=THINKS[written])
    assert 0 < len(run.asks) <= 9
    assert all(ask.text.strip() for ask in run.asks)
    assert isinstance(run.outcome, Outcome)
    assert all(1 <= derived.call <= len(run.asks) for derived in run.outcome.derived)


@pytest.mark.parametrize("budget", [2, 50])
def test_it_asks_at_any_budget_and_not_beyond(attack: Attack, budget: int, handles: tuple[str, ...]) -> None:
    run = drive(attack, EchoTarget(DOCUMENTS), tools=tools(handles, budget=budget), think=babble)
    assert 0 < len(run.asks) <= budget


def test_extraction_spends_at_least_the_least_budget_of_the_grid(attack: Attack, handles: tuple[str, ...]) -> None:
    if attack.name == "mi":
        return  # three questions for each of two candidates
    assert len(drive(attack, EchoTarget(DOCUMENTS), tools=tools(handles), think=babble).asks) == 8


DOCUMENTS = [
    f"{title}: {word} for the {place}. Write to {mail}@host.example soon."
    for title, word, place, mail in zip(
        TITLES,
        ("granite", "velvet", "copper", "walnut", "saffron", "linen"),
        ("north hall", "south gate", "east roof", "west desk", "inner yard", "outer wall"),
        ("mara", "ole", "zuri", "lin", "omar", "pia"),
        strict=True,
    )
]


@pytest.mark.parametrize("name", EXTRACTION)
def test_of_a_target_that_echoes_its_context_nearly_all_is_recovered(name: str) -> None:
    made: Attack = create("attack", name, options=SMALL.get(name, {}))
    # with five of six documents in a context an attack has to ask about no more than two subjects
    run = drive(made, EchoTarget(DOCUMENTS, k=5), tools=tools(TITLES, budget=24), think=babble)
    text = "\n".join(run.replies)
    found = [document for document in DOCUMENTS if document in text]
    assert len(found) >= 5


def test_the_other_probes_recover_nearly_all_as_well() -> None:
    for name in ("encoding_round_trip", "denoise"):
        run = drive(create("attack", name, options={}), EchoTarget(DOCUMENTS, k=5), tools=tools(TITLES, budget=24))
        assert sum(document in "\n".join(run.replies) for document in DOCUMENTS) >= 5


def test_every_registered_attack_is_held_to_recovery_or_named_here() -> None:
    assert set(names("attack")) == {*EXTRACTION, "encoding_round_trip", "denoise", "mi"}


def reachable(root: Any) -> Iterator[Any]:
    """Yield what can be got at from an object by attributes, items and closures, but for modules and code."""
    stack, seen = [root], set()
    while stack:
        item = stack.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        yield item
        stack += _parts(item)


CLOSED = (str, bytes, int, float, np.ndarray, np.random.Generator, Path, type, types.ModuleType)


def _parts(item: Any) -> list[Any]:
    if isinstance(item, CLOSED):
        return []
    if isinstance(item, dict):
        return [*item, *item.values()]
    if isinstance(item, (list, tuple, set, frozenset)):
        return list(item)
    return _behind(item)


def _behind(item: Any) -> list[Any]:
    """Return what stands in a frame, a method, a closure or the attributes of an object."""
    if isinstance(item, types.GeneratorType):
        return [*(item.gi_frame.f_locals.values() if item.gi_frame else ()), item.gi_yieldfrom]
    if isinstance(item, types.MethodType):
        return [item.__self__, item.__func__]
    if isinstance(item, types.FunctionType):
        return [cell.cell_contents for cell in item.__closure__ or ()] + list(item.__defaults__ or ())
    slots = [name for kind in type(item).__mro__ for name in _slots(kind)]
    return [*vars(item).values()] if hasattr(item, "__dict__") else [getattr(item, name, None) for name in slots]


def _slots(kind: type) -> tuple[str, ...]:
    slots = kind.__dict__.get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def test_it_can_reach_nothing_of_its_target(attack: Attack, handles: tuple[str, ...]) -> None:
    target = EchoTarget(DOCUMENTS)
    forbidden = ("mragaudit.rag", "mragaudit.index", "mragaudit.defenses", "mragaudit.grid", "mragaudit.llm", "driving")

    def watch(steps: Any) -> None:
        found = list(reachable(steps))
        assert any(isinstance(item, Tools) for item in found)  # the walk does get into the frame
        for item in found:
            assert item is not target
            assert not type(item).__module__.startswith(forbidden), type(item)

    drive(attack, target, tools=tools(handles), think=babble, watch=watch)


def test_the_walk_of_that_test_sees_a_target_behind_a_closure() -> None:
    target = EchoTarget(DOCUMENTS)

    def steps() -> Iterator[int]:
        ask = lambda text: target(Ask(text=text))  # noqa: E731
        yield len(ask("x"))

    running = steps()
    next(running)
    assert any(item is target for item in reachable(running))


class Text(str):
    """A text that could carry more."""


@pytest.mark.parametrize("reply", [b"bytes", 3, ["text"], None, Text("text")])
def test_only_text_is_taken_as_a_reply(attack: Attack, reply: Any) -> None:
    steps = attack.steps(tools())
    step = next(steps)
    while isinstance(step, Think):
        step = steps.send("")
    with pytest.raises(TypeError, match="text"):
        steps.send(reply)


def test_two_runs_of_one_object_do_not_mix(attack: Attack) -> None:
    alone = drive(attack, EchoTarget(DOCUMENTS), tools=tools(), think=babble)
    first, second = attack.steps(tools()), attack.steps(tools())
    next(first)
    next(second)
    assert drive(attack, EchoTarget(DOCUMENTS), tools=tools(), think=babble) == alone


def test_an_encoder_is_asked_for_texts_alone() -> None:
    asked: list[Any] = []

    def embed(texts: Any) -> Any:
        asked.extend(texts)
        return HashingEmbedder().embed_queries(texts)

    for name in names("attack"):
        made: Attack = create("attack", name, options=SMALL.get(name, {}))
        drive(made, EchoTarget(DOCUMENTS), tools=make_tools(candidates=CANDIDATES, embed=embed), think=babble)
    assert asked
    assert {type(text) for text in asked} == {str}
