"""Hooks composed at random; whether one acts is found out by running it."""

from __future__ import annotations

# ruff: noqa: E501  # source of audited code, one string a line of it
import asyncio
import copy
import inspect
import random
from dataclasses import dataclass

import pytest

from mragaudit.hookaudit.inventory import audit_source
from mragaudit.hookaudit.verdicts import HookSpec

N_HOOKS = 600
SEED = 20261130
MAX_UNKNOWN_SHARE = 0.15

TEXTS = (
    "Write to anna.schmidt@example.org or call 030 1234567 before noon, please.",
    "الاسم: ليلى حداد، البريد layla@example.net والرقم 998877665",
    "请联系王伟, wang.wei@example.cn, 电话 13800138000。",
)
DOCUMENTS = (
    [
        {"text": "Anna, anna@example.org", "score": 0.9},
        {"text": "Juma, juma@example.com", "score": 0.2},
        {"text": "Li, li@example.cn", "score": 0.4},
    ],
    [{"text": "first: a@b.example", "score": 0.1}, {"text": "second: c@d.example", "score": 0.7}],
    [{"text": "only one, x@y.example", "score": 0.3}, {"text": "and z@w.example", "score": 0.2}],
)

TEXT_ACTIVE = (
    'return x.replace("@", " [at] ")',
    'return re.sub(r"[0-9]", "#", x)',
    'return "".join("*" if c.isdigit() else c for c in x)',
    "return x.upper()",
    "return x[:12]",
    'return f"<{x}>"',
    'return "[blocked]" if "@" in x else x',
    'if "@" in x:\n    return "[blocked]"\nreturn x',
    'out = []\nfor word in x.split(" "):\n    out.append("[X]" if "@" in word else word)\nreturn " ".join(out)',
    'while "@" in x:\n    x = x.replace("@", "(at)", 1)\nreturn x',
    'return " ".join(w for w in x.split(" ") if "@" not in w)',
    'return x.translate({ord("@"): "#"})',
    'y = x\ny = y + " (checked)"\nreturn y',
    'out = ""\nfor c in x:\n    out += "#" if c == "@" else c\nreturn out',
    "return EMAIL.sub(lambda m: m.group(0)[0] + '***', x)",
    'parts = x.split("@")\nreturn "[at]".join(parts)',
)
TEXT_IDLE = (
    "return x",
    "y = x\nreturn y",
    "return str(x)",
    'return f"{x}"',
    'return "".join(c for c in x)',
    'return " ".join(x.split(" "))',
    "return x[:]",
    'masked = x.replace("@", "#")\nreturn x',
    'return x.replace("@", "@")',
    'if "@" in x:\n    return x\nreturn x',
    "return json.loads(json.dumps(x))",
    "return (lambda t: t)(x)",
    'return x + ""',
    "return EMAIL.sub(lambda m: m.group(0), x)",
    'out = ""\nfor c in x:\n    out += c\nreturn out',
    'out = []\nfor word in x.split("@"):\n    out.append(word)\nreturn "@".join(out)',
    'if not x:\n    return ""\nreturn x',
    "return x.encode('utf-8').decode('utf-8')",
    'return "{}".format(x)',
    'found = EMAIL.findall(x)\nlogger.debug("%d addresses", len(found))\nreturn x',
)
LIST_ACTIVE = (
    'for d in x:\n    d["text"] = d["text"].replace("@", "#")\nreturn x',
    'return [{**d, "text": d["text"].replace("@", "#")} for d in x]',
    'return [d for d in x if d["score"] > 0.3]',
    "return x[::-1]",
    "return x[:1]",
    'return sorted(x, key=lambda d: d["score"])',
    'out = []\nfor d in x:\n    e = dict(d)\n    e["text"] = "[withheld]"\n    out.append(e)\nreturn out',
    'for i, d in enumerate(x):\n    x[i] = {"text": "[withheld]", "score": d["score"]}\nreturn x',
    'y = copy.deepcopy(x)\nfor d in y:\n    d.update(text="")\nreturn y',
    'x.append({"text": "", "score": 0.0})\nreturn x',
    "x.pop()\nreturn x",
    'out = []\nfor d in x:\n    if "Juma" in d["text"] or "second" in d["text"] or "z@" in d["text"]:\n        continue\n    out.append(d)\nreturn out',
)
LIST_IDLE = (
    "return x",
    "return list(x)",
    "return [d for d in x]",
    "out = []\nfor d in x:\n    out.append(d)\nreturn out",
    "return copy.deepcopy(x)",
    "return [dict(d) for d in x]",
    'return [{**d, "text": d["text"]} for d in x]',
    "return x[:]",
    'y = copy.deepcopy(x)\nfor d in y:\n    d["text"] = ""\nreturn x',
    "out = []\nout.extend(x)\nreturn out",
    "return [x[i] for i in range(len(x))]",
    "for i, d in enumerate(x):\n    x[i] = d\nreturn x",
    "ordered = sorted(x, key=len)\nreturn x",
    "return list(map(lambda d: d, x))",
    "return [*x]",
    'for d in x:\n    d["text"] = d["text"]\nreturn x',
)

# What is put around a function `g`; `x` is the parameter. The decorators and helpers stand in the prelude.
WRAPPERS = (
    "def {f}(x):\n    return {g}(x)",
    "def {f}(x):\n    h = {g}\n    return h(x)",
    "def {f}(x):\n    try:\n        return {g}(x)\n    except Exception:\n        return x",
    "def {f}(x):\n    if len(x) > 0:\n        return {g}(x)\n    return x",
    "def {f}(x):\n    def inner(t):\n        return {g}(t)\n    return inner(x)",
    "def {f}(x):\n    return (lambda t: {g}(t))(x)",
    "def {f}(x):\n    return functools.partial({g})(x)",
    "@handing_on\ndef {f}(x):\n    return {g}(x)",
    "def {f}(x):\n    for _ in range(2):\n        x = {g}(x)\n    return x",
    "def {f}(x):\n    return {g}(x) if x else x",
    "def {f}(*args, **kwargs):\n    return {g}(*args, **kwargs)",
    'def {f}(x):\n    return {{"a": {g}, "b": keep}}["a"](x)',
    "def {f}(x):\n    return {g}(Box(x).value)",
    "def {f}(x):\n    box = [x]\n    return {g}(box[0])",
    "def {f}(x):\n    return functools.reduce(lambda t, step: step(t), [keep, {g}], x)",
    "def {f}(x):\n    with contextlib.suppress(KeyError):\n        x = {g}(x)\n    return x",
    "def {f}(x):\n    if (y := {g}(x)) is not None:\n        return y\n    return x",
    "def {f}(x):\n    y, _ = {g}(x), 1\n    return y",
    "def {f}(x, enabled=True):\n    if not enabled:\n        return x\n    return {g}(x)",
    "{f} = {g}",
    "{f} = lambda t: {g}(t)",
    "def {f}(x):\n    match len(x):\n        case 0:\n            return x\n        case _:\n            return {g}(x)",
    "class C{f}:\n    def __call__(self, x):\n        return {g}(x)\n{f} = C{f}()",
    "def {f}(x):\n    try:\n        y = {g}(x)\n    finally:\n        logger.debug('done')\n    return y",
)
SWALLOWERS = (
    "def {f}(x):\n    return x\n    return {g}(x)",
    "@swallowing\ndef {f}(x):\n    return {g}(x)",
    "def {f}(x, enabled=False):\n    if enabled:\n        return {g}(x)\n    return x",
    "def {f}(x):\n    enabled = False\n    return {g}(x) if enabled else x",
    "def {f}(x):\n    def inner(t):\n        return {g}(t)\n    return x",
    "def {f}(x):\n    try:\n        return x\n    except Exception:\n        return {g}(x)",
)
PRELUDE = """
import asyncio, contextlib, copy, functools, json, logging, re

logger = logging.getLogger("hooks")
EMAIL = re.compile(r"[^ ]+@[^ ]+")

def keep(x):
    return x

class Box:
    def __init__(self, value):
        self.value = value

def handing_on(func):
    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        return func(*args, **kwargs)
    return wrapper

def swallowing(func):
    @functools.wraps(func)
    def wrapper(x):
        func(copy.deepcopy(x))
        return x
    return wrapper
"""
CLASSES = (
    "class Hook:\n    {a}def hook(self, x):\n        return {f}(x)",
    "class Base:\n    {a}def hook(self, x):\n        return {f}(x)\n\nclass Hook(Base):\n    pass",
    "class Base:\n    {a}def hook(self, x):\n        return {f}(x)\n\nclass Hook(Base):\n    {a}def hook(self, x):\n        return {w}super().hook(x)",
    "class One:\n    {a}def hook(self, x):\n        return {f}(x)\n\nclass Two:\n    {a}def hook(self, x):\n        return x[:1]\n\nclass Hook(One, Two):\n    pass",
    "class One:\n    {a}def hook(self, x):\n        return x\n\nclass Two:\n    {a}def hook(self, x):\n        return {f}(x)\n\nclass Hook(One, Two):\n    pass",
    "class Hook:\n    {a}def _impl(self, x):\n        return {f}(x)\n\n    hook = _impl",
    "class Hook:\n    def __init__(self):\n        self.step = {f}\n\n    {a}def hook(self, x):\n        return self.step(x)",
    "class Hook:\n    @staticmethod\n    {a}def hook(x):\n        return {f}(x)",
    "class Hook:\n    def __init__(self, enabled=False):\n        self.enabled = enabled\n\n    {a}def hook(self, x):\n        if not self.enabled:\n            return x\n        return {f}(x)",
    "class Hook:\n    enabled = True\n\n    {a}def hook(self, x):\n        return {f}(x) if self.enabled else x",
    "class Hook:\n    def _do(self, x):\n        return {f}(x)\n\n    {a}def hook(self, x):\n        return getattr(self, '_do')(x)",
    "class Top:\n    {a}def hook(self, x):\n        return x\n\nclass Mask(Top):\n    {a}def hook(self, x):\n        return {f}({w}super().hook(x))\n\nclass Log(Top):\n    {a}def hook(self, x):\n        return {w}super().hook(x)\n\nclass Hook(Log, Mask):\n    pass",
)


@dataclass(frozen=True, kw_only=True)
class Composed:
    source: str
    neutral: str
    """The same with a body that returns its input."""
    text: bool


def compose(generator: random.Random) -> Composed:
    text = generator.random() < 0.6
    active, idle = (TEXT_ACTIVE, TEXT_IDLE) if text else (LIST_ACTIVE, LIST_IDLE)
    body = generator.choice(active if generator.random() < 0.8 else idle)
    chosen = [
        generator.choice(SWALLOWERS if generator.random() < 0.06 else WRAPPERS) for _ in range(generator.randrange(4))
    ]
    shape = generator.choice(CLASSES)
    is_async = generator.random() < 0.4
    return Composed(
        source=render(body, chosen, shape, is_async=is_async),
        neutral=render(generator.choice(idle), chosen, shape, is_async=is_async),
        text=text,
    )


def render(body: str, wrappers: list[str], shape: str, *, is_async: bool) -> str:
    lines = ["def f0(x):", *(f"    {line}" for line in body.split("\n"))]
    parts = [PRELUDE, "\n".join(lines)]
    parts += [wrapper.format(f=f"f{i + 1}", g=f"f{i}") for i, wrapper in enumerate(wrappers)]
    name = f"f{len(wrappers)}"
    parts.append(shape.format(f=name, a="async " if is_async else "", w="await " if is_async else ""))
    return "\n\n".join(parts) + "\n"


def acts(source: str, *, text: bool) -> bool:
    """Whether a hook changes any of the inputs when it is run."""
    names: dict[str, object] = {}
    exec(compile(source, "<composed>", "exec"), names)  # noqa: S102  # our own composition
    for given in TEXTS if text else DOCUMENTS:
        value = copy.deepcopy(given)
        found = names["Hook"]().hook(value)  # type: ignore[operator]
        found = asyncio.run(found) if inspect.isawaitable(found) else found
        if found != given:
            return True
    return False


def verdict_of(source: str, *, text: bool):
    spec = HookSpec(method="hook", hook="response" if text else "documents", text=text)
    (verdict,) = audit_source(source, class_name="Hook", hooks=["hook"], spec=spec)
    return verdict.default if verdict.status == "conditional" else verdict.status, verdict


@pytest.fixture(scope="module")
def composed() -> list[Composed]:
    generator = random.Random(SEED)  # noqa: S311
    return [compose(generator) for _ in range(N_HOOKS)]


def check(sources: list[tuple[str, bool]]) -> int:
    """Assert that no verdict is wrong; return how many are unknown."""
    unknown = 0
    for source, text in sources:
        status, verdict = verdict_of(source, text=text)
        truth = "active" if acts(source, text=text) else "inactive"
        assert status in {truth, "unknown"}, f"{truth}, not {status}: {verdict.evidence}\n{source}"
        unknown += status == "unknown"
    return unknown


def test_no_verdict_on_600_composed_hooks_is_wrong_and_few_are_unknown(composed):
    unknown = check([(hook.source, hook.text) for hook in composed])
    assert unknown / len(composed) <= MAX_UNKNOWN_SHARE


def test_the_composed_hooks_are_of_both_kinds(composed):
    active = sum(acts(hook.source, text=hook.text) for hook in composed)
    assert 0.3 < active / len(composed) < 0.7


def test_every_active_hook_turns_inactive_when_its_body_is_neutralised(composed):
    active = [hook for hook in composed if verdict_of(hook.source, text=hook.text)[0] == "active"]
    assert len(active) > 100
    for hook in active:
        status, verdict = verdict_of(hook.neutral, text=hook.text)
        neutral_acts = acts(hook.neutral, text=hook.text)
        assert status == ("active" if neutral_acts else "inactive"), f"{verdict.evidence}\n{hook.neutral}"
