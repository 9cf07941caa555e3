"""Runs inside the sandbox, as a script: drops its rights, imports one file and calls its hooks.

Standard library only. The job comes on standard input as JSON; each result goes to one inherited descriptor as a line
that starts with a secret of this job, so that nothing that the audited module prints can pass for a result.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import importlib
import importlib.util
import inspect
import json
import os
import random
import re
import resource
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

LIMITS = {
    resource.RLIMIT_CORE: "core_bytes",
    resource.RLIMIT_CPU: "cpu_seconds",
    resource.RLIMIT_FSIZE: "file_bytes",
    resource.RLIMIT_AS: "memory_bytes",
    resource.RLIMIT_NPROC: "processes",
    resource.RLIMIT_NOFILE: "open_files",
}
NOBODY = 65534


class Document(dict[str, Any]):
    """A document that can be read and written as a dict or as an object."""

    def __getattr__(self, name: str) -> Any:
        """Return a field; `page_content` and `content` are the text."""
        if name in {"page_content", "content"}:
            return self["text"]
        if name in self:
            return self[name]
        raise AttributeError(name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Write a field."""
        self["text" if name in {"page_content", "content"} else name] = value

    def __deepcopy__(self, memo: dict[int, Any]) -> Document:
        """Return a copy of the same kind."""
        return Document({key: copy.deepcopy(value, memo) for key, value in self.items()})


class Noise(random.Random):
    """A generator with the names of both the standard library and NumPy."""

    def __getattr__(self, name: str) -> Any:
        """Return what only NumPy's generator has."""
        import numpy as np  # noqa: PLC0415  # only where a hook asks for it

        return getattr(np.random.default_rng(0), name)


class Turn:
    """What a hook of our own interface may know of its call."""

    def __init__(self) -> None:
        self.rng = Noise(0)
        self.principal = "probe"
        self.session = "probe"


def main() -> None:
    """Read the job, give up all rights, run the hooks."""
    job = json.loads(sys.stdin.readline())
    sys.stdin.close()
    channel, secret = job["channel"], job["secret"]
    if job["contained"]:
        drop_rights()
    set_limits(job["limits"])
    sys.path[:0] = job["import_paths"]
    os.chdir(job["folder"])
    module, reason = load(job)
    for number, hook in enumerate(job["hooks"]):
        result = refused(reason) if module is None else probe(module, hook)
        line = secret + json.dumps({"number": number, **result}) + "\n"
        os.write(channel, line.encode())


def drop_rights() -> None:
    """Become nobody, where we are root."""
    if os.getuid() == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)


def set_limits(limits: dict[str, int]) -> None:
    """Set the limits, for good."""
    for kind, name in LIMITS.items():
        if name in limits:
            hard = resource.getrlimit(kind)[1]
            value = limits[name] if hard == resource.RLIM_INFINITY else min(limits[name], hard)
            resource.setrlimit(kind, (value, value))


def load(job: dict[str, Any]) -> tuple[Any, str]:
    """Import the file, under its dotted name where it belongs to a package."""
    try:
        if job["package"]:
            return importlib.import_module(job["module"]), ""
        spec = importlib.util.spec_from_file_location("audited", job["file"])
        if spec is None or spec.loader is None:
            return None, "cannot be imported"
        module = importlib.util.module_from_spec(spec)
        sys.modules["audited"] = module
        spec.loader.exec_module(module)
    except BaseException as error:  # the audited code may raise anything, SystemExit as well
        return None, f"importing it raised {type(error).__name__}"
    return module, ""


def refused(reason: str) -> dict[str, Any]:
    """Return the result of a hook that was not run."""
    return {"outcome": "not_run", "n_inputs": 0, "n_changed": 0, "detail": reason}


def probe(module: Any, hook: dict[str, Any]) -> dict[str, Any]:
    """Run one hook on all its inputs."""
    try:
        func = find(module, hook)
    except BaseException as error:  # as above
        return refused(f"its class cannot be made without arguments ({type(error).__name__})")
    ran = changed = 0
    problem = ""
    for given in hook["inputs"]:
        try:
            changed += run_once(func, given, hook)
            ran += 1
        except BaseException as error:  # as above
            problem = problem or type(error).__name__
    if not ran:
        return {"outcome": "raised", "n_inputs": 0, "n_changed": 0, "detail": problem}
    outcome = "changed" if changed else "unchanged"
    return {"outcome": outcome, "n_inputs": ran, "n_changed": changed, "detail": problem}


def find(module: Any, hook: dict[str, Any]) -> Callable[..., Any]:
    """Return the hook, of a new object where it is a method."""
    owner = module
    for name in (hook["class_name"] or "").replace(".<locals>.", ".").split("."):
        owner = getattr(owner, name) if name else owner
    found: Callable[..., Any] = getattr(owner() if hook["class_name"] else owner, hook["method"])
    return found


def run_once(func: Callable[..., Any], given: Any, hook: dict[str, Any]) -> bool:
    """Return whether the hook hands back something else than it was given, or changed it in place."""
    subject = [item["text"] for item in given] if takes_texts(func, hook) else made(given, hook)
    before = copy.deepcopy(subject)
    with open(os.devnull, "w") as sink, contextlib.redirect_stdout(sink), contextlib.redirect_stderr(sink):
        answer = settle(func(**arguments(func, subject, hook)))
    if hook["output_key"] and isinstance(answer, dict):
        answer = answer.get(hook["output_key"])
    if answer is None:
        return bool(subject != before)
    if isinstance(answer, list) and isinstance(before, str):
        answer = "".join(map(str, answer))
    return bool(plain(answer) != plain(before))


def made(given: Any, hook: dict[str, Any]) -> Any:
    """Return the input in the shape that the framework hands out."""
    if hook["hook"] != "documents":
        return list(given) if isinstance(given, list) else given
    if hook["map"] == "langchain":
        made_by = importlib.import_module("langchain_core.documents").Document
        return [made_by(page_content=item["text"], id=item["id"]) for item in given]
    if hook["map"] == "llama_index":
        schema = importlib.import_module("llama_index.core.schema")
        nodes = [schema.TextNode(text=item["text"], id_=item["id"]) for item in given]
        return [schema.NodeWithScore(node=n, score=item["score"]) for n, item in zip(nodes, given, strict=True)]
    if hook["map"] == "haystack":
        made_by = importlib.import_module("haystack").Document
        return [made_by(content=item["text"], id=item["id"], score=item["score"]) for item in given]
    return [Document(item) for item in given]


def takes_texts(func: Callable[..., Any], hook: dict[str, Any]) -> bool:
    """Return whether a hook on documents declares that it takes plain texts, as in our own interface."""
    if hook["hook"] != "documents":
        return False
    parameters = inspect.signature(func).parameters
    return re.search(r"\[str(, \.\.\.)?\]$", str(parameters[subject_of(parameters, hook)].annotation)) is not None


def subject_of(parameters: Mapping[str, inspect.Parameter], hook: dict[str, Any]) -> str:
    """Return the name of the parameter that the hook is there to change."""
    named = [n for n, p in parameters.items() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    return str(hook["subject"] if hook["subject"] in named else named[0])


def arguments(func: Callable[..., Any], subject: Any, hook: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments by name: the subject, a generator or turn where one is asked for, None for the rest."""
    parameters = inspect.signature(func).parameters
    named = [n for n, p in parameters.items() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    chosen = subject_of(parameters, hook)
    given: dict[str, Any] = {chosen: subject}
    for name in named:
        if name != chosen and parameters[name].default is inspect.Parameter.empty:
            given[name] = MADE[name]() if name in MADE else None
    return given


MADE: dict[str, Callable[[], Any]] = {
    **dict.fromkeys(("rng", "generator", "random_state", "random"), lambda: Noise(0)),
    "turn": Turn,
}
"""What a parameter of a name is given."""


def settle(answer: Any) -> Any:
    """Return what an awaitable, generator or asynchronous generator comes to."""
    if inspect.isawaitable(answer):
        return asyncio.run(_awaited(answer))
    if hasattr(answer, "__aiter__"):
        return asyncio.run(_collected(answer))
    return list(answer) if isinstance(answer, Iterator) else answer


async def _awaited(answer: Any) -> Any:
    return await answer


async def _collected(answer: Any) -> list[Any]:
    return [item async for item in answer]


def plain(value: Any) -> Any:
    """Return tuples and arrays as lists, so that only contents are compared."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return list(value) if isinstance(value, tuple) else value


if __name__ == "__main__":
    main()
