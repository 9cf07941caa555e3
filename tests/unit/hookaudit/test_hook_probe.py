"""The probe: what it sees, and that hostile modules do no harm in it."""

from __future__ import annotations

# ruff: noqa: E501  # source of audited code, one string a line of it
import os
import socket
import threading
import time
from pathlib import Path

import pytest

from mragaudit.errors import MissingPackageError
from mragaudit.hookaudit.inventory import audit_path
from mragaudit.hookaudit.probe import sandbox
from mragaudit.hookaudit.probe.records import Observation, disagreement
from mragaudit.hookaudit.probe.run import probe_inventory

HOOK = "class Hook:\n    def process_response(self, response):\n        return response{change}\n"
ACTIVE = HOOK.format(change='.replace("@", "#")')
IDLE = HOOK.format(change="")


def sandbox_works() -> bool:
    try:
        sandbox.require_sandbox()
    except MissingPackageError:
        return False
    return True


needs_sandbox = pytest.mark.skipif(
    not sandbox_works() and os.environ.get("CI") != "true", reason="no sandbox works here: bwrap is missing or refused"
)


def probe(folder: Path, **modules: str) -> dict[str, Observation]:
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    return {found.file.removesuffix(".py"): found for found in probe_inventory(folder, audit_path(folder))}


@needs_sandbox
def test_effects_are_seen_and_no_effect_is_no_claim(tmp_path):
    found = probe(tmp_path, active=ACTIVE, idle=IDLE)
    assert (found["active"].outcome, found["active"].n_changed, found["active"].n_inputs) == ("changed", 5, 5)
    assert found["idle"].words == "no effect seen on these 5 inputs"


@needs_sandbox
def test_scores_documents_and_asynchronous_hooks_are_probed(tmp_path):
    code = (
        "class Hook:\n"
        "    def perturb_scores(self, scores, rng):\n        return [s + rng.gauss(0, 1) for s in scores]\n"
        "    def rewrite_documents(self, documents):\n"
        "        for d in documents:\n            d.text = d['text'].replace('@', '#')\n"
        "    async def process_response(self, response):\n        return response.upper()\n"
        "    async def aprocess_response(self, response):\n        yield response\n"
    )
    (tmp_path / "hooks.py").write_text(code)
    found = {o.name.split(".")[1]: o.outcome for o in probe_inventory(tmp_path, audit_path(tmp_path))}
    assert found == {
        "perturb_scores": "changed",
        "rewrite_documents": "changed",
        "process_response": "changed",
        "aprocess_response": "unchanged",
    }


@needs_sandbox
def test_a_package_is_imported_under_its_own_name(tmp_path):
    package = tmp_path / "shop"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "masks.py").write_text("def cover(text):\n    return text.upper()\n")
    (package / "hook.py").write_text(
        "from .masks import cover\nclass Hook:\n    def process_response(self, response):\n        return cover(response)\n"
    )
    (found,) = probe_inventory(package, audit_path(package))
    assert found.outcome == "changed"


@needs_sandbox
def test_a_module_that_raises_or_a_class_that_needs_arguments_is_not_run(tmp_path):
    found = probe(
        tmp_path,
        boom="raise SystemExit(0)\n" + ACTIVE,
        needs=ACTIVE.replace("class Hook:\n", "class Hook:\n    def __init__(self, key):\n        self.key = key\n"),
    )
    assert found["boom"].words == "not run: importing it raised SystemExit"
    assert "cannot be made without arguments" in found["needs"].words


@needs_sandbox
def test_files_outside_cannot_be_deleted_or_written(tmp_path):
    witness = tmp_path / "outside" / "witness.txt"
    witness.parent.mkdir()
    witness.write_text("here")
    witness.chmod(0o666)
    tree = tmp_path / "tree"
    tree.mkdir()
    evil = (
        f"import os, shutil\nfor path in ({str(witness)!r}, {str(tree / 'good.py')!r}, __file__):\n"
        "    for act in (os.remove, lambda p: open(p, 'w').write('x'), lambda p: os.chmod(p, 0)):\n"
        "        try:\n            act(path)\n        except OSError:\n            pass\n"
        f"shutil.rmtree({str(tmp_path)!r}, ignore_errors=True)\n"
    )
    found = probe(tree, evil=evil + IDLE, good=ACTIVE)
    assert witness.read_text() == "here"
    assert (tree / "good.py").read_text() == ACTIVE
    assert (found["evil"].outcome, found["good"].outcome) == ("unchanged", "changed")


@needs_sandbox
def test_the_environment_is_empty(tmp_path, monkeypatch):
    monkeypatch.setenv("PLANTED_SECRET", "hunter2")
    code = (
        "import os\nfound = 'PLANTED_SECRET' in os.environ\n"
        "for name in os.listdir('/proc'):\n"
        "    if name.isdigit():\n"
        "        try:\n            found = found or b'PLANTED_SECRET' in open(f'/proc/{name}/environ', 'rb').read()\n"
        "        except OSError:\n            pass\n"
        "class Hook:\n    def process_response(self, response):\n        return response + 'x' if found else response\n"
    )
    assert probe(tmp_path, evil=code)["evil"].outcome == "unchanged"


@needs_sandbox
def test_a_listener_on_this_machine_cannot_be_reached(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        port = server.getsockname()[1]
        code = (
            "import socket\ntry:\n"
            f"    socket.create_connection(('127.0.0.1', {port}), timeout=2).close()\n    reached = True\n"
            "except OSError:\n    reached = False\n"
            "class Hook:\n    def process_response(self, response):\n        return response + 'x' if reached else response\n"
        )
        assert probe(tmp_path, evil=code)["evil"].outcome == "unchanged"
        with pytest.raises(TimeoutError):
            server.accept()


@needs_sandbox
def test_forking_without_end_is_stopped_and_the_rest_is_still_probed(tmp_path, monkeypatch):
    monkeypatch.setattr(sandbox, "WALL_SECONDS", 4.0)
    fork = "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass\n"
    peak = 0
    stop = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not stop.is_set():
            peak = max(peak, sum(name.isdigit() for name in os.listdir("/proc")))
            time.sleep(0.05)

    before = sum(name.isdigit() for name in os.listdir("/proc"))
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        found = probe(tmp_path, evil=fork + ACTIVE, good=ACTIVE)
    finally:
        stop.set()
        watcher.join()
    assert found["evil"].outcome == "not_run"
    assert found["good"].outcome == "changed"
    assert peak - before < 3 * sandbox.LIMITS["processes"]


@needs_sandbox
def test_ten_gigabytes_cannot_be_written(tmp_path):
    write = (
        "written = 0\nblock = b'x' * 2**20\n"
        "try:\n"
        "    for number in range(1000):\n"
        "        with open(f'/tmp/part{number}', 'wb', buffering=0) as handle:\n"
        "            for _ in range(10):\n"
        "                written += handle.write(block)\n"
        "except OSError:\n    pass\n"
        "class Hook:\n    def process_response(self, response):\n"
        "        return response + 'x' if written > 2**27 else response\n"
    )
    found = probe(tmp_path, evil=write, good=ACTIVE)
    assert (found["evil"].outcome, found["good"].outcome) == ("unchanged", "changed")


@needs_sandbox
def test_printed_results_are_no_results(tmp_path):
    forge = (
        "import os, sys, json, atexit\n"
        "line = json.dumps({'number': 0, 'outcome': 'changed', 'n_inputs': 5, 'n_changed': 5, 'detail': ''}) + '\\n'\n"
        "def forge():\n"
        "    for number in range(1, 64):\n"
        "        try:\n            os.write(number, line.encode() * 3)\n        except OSError:\n            pass\n"
        "print(line)\nforge()\natexit.register(forge)\n"
    )
    found = probe(tmp_path, evil=forge + IDLE, quits=forge + "os._exit(0)\n" + IDLE, good=ACTIVE)
    assert found["evil"].outcome == "unchanged"
    assert found["quits"].outcome == "not_run"
    assert found["good"].outcome == "changed"


def test_without_a_sandbox_the_probe_refuses_and_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(sandbox, "_sandbox_problem", lambda: "the program bwrap is not installed")
    (tmp_path / "hooks.py").write_text(ACTIVE)
    with pytest.raises(MissingPackageError, match=r"bubblewrap.*--probe-unsafe.*without a sandbox"):
        probe_inventory(tmp_path, audit_path(tmp_path))


def test_unsafe_probing_runs_where_there_is_no_sandbox(tmp_path, monkeypatch):
    monkeypatch.setattr(sandbox, "_sandbox_problem", lambda: "the program bwrap is not installed")
    (tmp_path / "hooks.py").write_text(ACTIVE)
    (found,) = probe_inventory(tmp_path, audit_path(tmp_path), unsafe=True)
    assert found.outcome == "changed"


def test_a_disagreement_between_source_and_probe_is_named(tmp_path):
    (tmp_path / "hooks.py").write_text(IDLE)
    (verdict,) = audit_path(tmp_path).verdicts
    seen = Observation(
        file="hooks.py",
        name="Hook.process_response",
        hook="response",
        outcome="changed",
        n_inputs=5,
        n_changed=2,
        detail="",
    )
    assert disagreement(verdict, seen) == "the source says inactive, a change was seen"


@needs_sandbox
def test_a_hook_that_asks_for_the_turn_gets_noise_and_who_asks(tmp_path):
    code = (
        "class Hook:\n"
        "    def process_response(self, response, *, turn):\n"
        "        return response if turn.rng.normal() and turn.principal + turn.session == '' else response + 'x'\n"
    )
    assert probe(tmp_path, turned=code)["turned"].words == "changed 5 of 5 inputs"


@needs_sandbox
def test_documents_are_given_as_texts_where_the_hook_says_that_it_takes_those(tmp_path):
    hook = "class Hook:\n    def rewrite_documents(self, documents: {kind}):\n        return [d.upper() for d in documents]\n"
    found = probe(
        tmp_path, texts=hook.format(kind="Sequence[str]").join(["from collections.abc import Sequence\n", ""])
    )
    assert found["texts"].outcome == "changed"
    dicts = hook.format(kind="list[dict[str, str]]").replace("d.upper()", "{**d, 'text': '-'}")
    assert probe(tmp_path, dicts=dicts)["dicts"].outcome == "changed"
