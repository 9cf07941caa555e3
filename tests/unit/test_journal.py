"""The journal keeps every finished call, drops a torn tail and nothing else."""

from __future__ import annotations

import json
import logging
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mragaudit.errors import DataError, StorageError
from mragaudit.journal import Journal, fingerprint, known_answers, recover, request_key, resume_plan
from mragaudit.protocols import (
    TRANSLATION,
    ChooseRequest,
    Completion,
    GenerateRequest,
    Message,
    ModelIdentity,
    OptionScores,
    Prompt,
    TranslationTask,
)

CASES = Path(__file__).parents[1] / "golden" / "field_cases.jsonl"
MODEL = ModelIdentity(backend="scripted", model="echo", revision="1", rendering="completion")


def _answer(text: str) -> Completion:
    return Completion(text=text, finish_reason="stop", prompt_tokens=3, completion_tokens=1)


def _request(text: str, **over: Any) -> GenerateRequest:
    prompt = Prompt(messages=(Message("user", text),), shared=0)
    return msgspec.structs.replace(GenerateRequest(prompt=prompt, max_tokens=8, stop=("\n",)), **over)


def _filled(path: Path, *keys: str) -> Path:
    with Journal(path) as journal:
        for key in keys:
            journal.append(key, _answer(key))
    return path


def _case(operation: str) -> dict[str, Any]:
    cases = [json.loads(line) for line in CASES.read_text(encoding="utf-8").split("\n") if line]
    (found,) = [case for case in cases if case["input"].get("operation") == operation]
    return dict(found)


def test_a_finished_call_is_found_again_in_a_later_run(tmp_path: Path) -> None:
    scores = OptionScores(logprobs=(-0.25, -1.5), prompt_tokens=9)
    with Journal(tmp_path / "j.jsonl") as journal:
        journal.append("a", _answer("x\u2028y\u0085z"))
        journal.append("b", scores)
    with Journal(tmp_path / "j.jsonl") as again:
        assert (again.get("a"), again.get("b"), again.get("c")) == (_answer("x\u2028y\u0085z"), scores, None)
        assert len(again) == 2


def test_a_missing_journal_is_empty(tmp_path: Path) -> None:
    assert (recover(tmp_path / "none.jsonl").answers, recover(tmp_path / "none.jsonl").end) == ({}, 0)


def test_a_torn_last_line_is_dropped_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = _filled(tmp_path / "j.jsonl", "a")
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"key":"b","an')
    with caplog.at_level(logging.WARNING, "mragaudit"):
        found = recover(path)
    assert (list(found.answers), found.end) == (["a"], len(whole))
    assert caplog.messages == [f"{path}, line 2: torn by an interruption, dropped"]


def test_a_line_that_lacks_only_its_newline_is_torn_too(tmp_path: Path) -> None:
    path = _filled(tmp_path / "j.jsonl", "a", "b")
    path.write_bytes(path.read_bytes()[:-1])
    assert list(recover(path).answers) == ["a"]


def test_an_append_after_a_torn_line_swallows_no_record(tmp_path: Path) -> None:
    """FC-JSONL-03."""
    case = _case("append")
    torn = case["input"]["text"].split("\n")[1].encode()
    path = _filled(tmp_path / "j.jsonl", "a")
    whole = path.read_bytes()
    path.write_bytes(whole + torn)
    _filled(path, case["input"]["append"]["id"])
    assert list(recover(path).answers) == case["expected"]["ids_readable_after"]
    assert path.read_bytes().startswith(whole + b'{"key":"c"')


@pytest.mark.parametrize("line", [b"{}\n", b"\n", b'{"key":"b","answer":{"type":"other"}}\n', b"\xff\xfe\n"])
def test_a_bad_line_inside_names_file_and_line(line: bytes, tmp_path: Path) -> None:
    path = _filled(tmp_path / "j.jsonl", "a", "c")
    first, last = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + line + last)
    with pytest.raises(DataError) as caught:
        Journal(path)
    assert str(caught.value).startswith(f"{path}, line 2: no journal entry (")
    assert str(caught.value).endswith("delete this line, its call will be made again")


def test_of_two_entries_with_one_key_the_last_counts(tmp_path: Path) -> None:
    with Journal(tmp_path / "j.jsonl") as journal:
        journal.append("a", _answer("old"))
        journal.append("a", _answer("new"))
    found = recover(tmp_path / "j.jsonl")
    assert (found.answers, found.n_duplicates) == ({"a": _answer("new")}, 1)


def test_siblings_are_read_and_never_written(tmp_path: Path) -> None:
    sibling = _filled(tmp_path / "one.jsonl", "a")
    before = sibling.read_bytes()
    with Journal(tmp_path / "two.jsonl", siblings=[sibling, tmp_path / "two.jsonl"]) as journal:
        assert journal.get("a") == _answer("a")
        journal.append("b", _answer("b"))
    assert sibling.read_bytes() == before
    assert list(recover(tmp_path / "two.jsonl").answers) == ["b"]


def test_a_journals_own_answer_goes_before_a_siblings(tmp_path: Path) -> None:
    with Journal(tmp_path / "one.jsonl") as journal:
        journal.append("a", _answer("sibling"))
    with Journal(tmp_path / "two.jsonl") as journal:
        journal.append("a", _answer("own"))
    with Journal(tmp_path / "two.jsonl", siblings=[tmp_path / "one.jsonl"]) as journal:
        assert journal.get("a") == _answer("own")


def test_calls_known_in_several_journals_are_counted_once(tmp_path: Path) -> None:
    paths = [_filled(tmp_path / "1.jsonl", "a", "b"), _filled(tmp_path / "2.jsonl", "b", "c")]
    assert known_answers(paths) == 3


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that grows by one entry at each fsync."""
    calls: list[int] = []
    real: Callable[[int], None] = os.fsync

    def fsync(descriptor: int) -> None:
        calls.append(descriptor)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    return calls


def test_every_sixteenth_call_is_put_on_disk(synced: list[int], tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.jsonl", batch_seconds=3600)
    counts = []
    for number in range(33):
        journal.append(str(number), _answer("x"))
        counts.append(len(synced))
    journal.close()
    assert counts == [0] * 15 + [1] * 16 + [2] * 2
    assert len(synced) == 3


def test_a_call_after_the_longest_wait_is_put_on_disk(synced: list[int], tmp_path: Path) -> None:
    with Journal(tmp_path / "j.jsonl", batch_seconds=0.0) as journal:
        journal.append("a", _answer("x"))
        assert len(synced) == 1


def test_an_appended_call_can_be_read_before_it_is_synced(tmp_path: Path) -> None:
    """A killed process loses nothing that it appended; only a machine that fails loses what was not synced."""
    with Journal(tmp_path / "j.jsonl") as journal:
        journal.append("a", _answer("x"))
        assert list(recover(tmp_path / "j.jsonl").answers) == ["a"]


@contextmanager
def _full_disk(n_bytes: int) -> Iterator[None]:
    """Let no file grow beyond a size: writing further is cut short, as on a full disk."""
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, old[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)


@pytest.mark.parametrize("left", [0, 10])
def test_a_full_disk_is_a_clear_error_and_loses_no_finished_call(left: int, tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    journal = Journal(path)
    journal.append("a", _answer("x"))
    whole = path.read_bytes()
    with _full_disk(len(whole) + left), pytest.raises(StorageError) as caught:
        journal.append("b", _answer("x"))
    journal.close()
    assert str(caught.value).startswith(f"{path}: cannot be written (")
    assert str(caught.value).endswith("free space and run the same command again")
    assert path.read_bytes() == whole


def test_a_disk_that_is_found_full_only_when_syncing_is_a_clear_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Network file systems accept a write and report the lack of space at fsync."""

    def fsync(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    journal = Journal(tmp_path / "j.jsonl", batch_calls=1)
    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(StorageError, match="cannot be written \\(No space left on device\\)"):
        journal.append("a", _answer("x"))
    monkeypatch.undo()
    journal.close()


def test_a_journal_that_cannot_be_opened_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "journal").write_text("a file where a folder should be")
    with pytest.raises(StorageError, match=r"journal/j\.jsonl: the journal cannot be opened \(Not a directory\)"):
        Journal(tmp_path / "journal" / "j.jsonl")


def test_a_journal_that_another_job_writes_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    with Journal(path) as journal:
        journal.append("a", _answer("x"))
        before = path.read_bytes()
        with pytest.raises(StorageError, match=r"j\.jsonl: another job is writing this journal"):
            Journal(path)
        assert path.read_bytes() == before
        journal.append("b", _answer("y"))
    with Journal(path) as again:
        assert len(again) == 2


def test_a_journal_with_a_bad_line_can_be_opened_once_it_is_mended(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    path.write_text("no entry\n")
    with pytest.raises(DataError, match="line 1: no journal entry"):
        Journal(path)
    path.write_text("")
    Journal(path).close()


def test_a_file_system_without_locks_is_said_and_used(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    def flock(_file: object, _how: int) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr("fcntl.flock", flock)
    with Journal(tmp_path / "j.jsonl") as journal:
        journal.append("a", _answer("x"))
    assert "cannot be locked (No locks available)" in caplog.text


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(TEXTS, max_size=5), data=st.data())
def test_any_head_of_a_journal_recovers_exactly_its_whole_lines(
    texts: list[str], data: st.DataObject, tmp_path: Path
) -> None:
    path = tmp_path / "j.jsonl"
    path.unlink(missing_ok=True)
    with Journal(path) as journal:
        for number, text in enumerate(texts):
            journal.append(str(number), _answer(text))
    content = path.read_bytes()
    head = content[: data.draw(st.integers(0, len(content)))]
    path.write_bytes(head)
    n_whole = head.count(b"\n")
    found = recover(path)
    assert found.answers == {str(number): _answer(text) for number, text in enumerate(texts[:n_whole])}
    assert found.end == head.rfind(b"\n") + 1
    _filled(path, "next")
    assert list(recover(path).answers) == [*map(str, range(n_whole)), "next"]


def test_rows_of_a_resumed_run_are_sorted_out() -> None:
    """FC-JSONL-05."""
    case = _case("resume_plan")
    rows = [json.loads(line) for line in case["input"]["text"].split("\n") if line]
    plan = resume_plan([(row["id"], row["verdict"]) for row in rows], case["input"]["task_ids"])
    assert {
        "effective": plan.effective,
        "orphans": list(plan.orphans),
        "duplicates": list(plan.duplicates),
        "redo": list(plan.redo),
    } == case["expected"]


def test_a_fingerprint_sees_values_and_order_of_lists_but_not_of_keys() -> None:
    """FC-JSONL-07."""
    case = _case("fingerprint")
    prints = [fingerprint(value) for value in case["input"]["settings"]]
    for first, second in case["expected"]["equal"]:
        assert prints[first] == prints[second]
    for first, second in case["expected"]["different"]:
        assert prints[first] != prints[second]


def test_a_fingerprint_is_the_sha256_of_canonical_json() -> None:
    """Worked by hand: printf '{"a":[1,"ü"]}' | sha256sum."""
    assert fingerprint({"a": [1, "ü"]}) == "ed78539db46bbb967b64b6225be6904ef03bbe5be5ab5d18d0799b7b68c2255a"


def test_a_lone_surrogate_in_a_prompt_has_a_key() -> None:
    assert request_key(_request("\ud800"), MODEL) != request_key(_request("\ud801"), MODEL)


@pytest.mark.parametrize(
    "other",
    [
        _request("another"),
        _request("text", max_tokens=9),
        _request("text", stop=()),
        _request("text", repeat=1),
        ChooseRequest(prompt=_request("text").prompt, options=("a",)),
    ],
)
def test_whatever_determines_an_answer_changes_the_key(other: GenerateRequest | ChooseRequest) -> None:
    assert request_key(other, MODEL) != request_key(_request("text"), MODEL)


@pytest.mark.parametrize("field", ["backend", "model", "revision", "rendering"])
def test_another_model_has_other_keys(field: str) -> None:
    other = msgspec.structs.replace(MODEL, **{field: "other"})
    assert request_key(_request("text"), other) != request_key(_request("text"), MODEL)


def test_equal_requests_have_one_key() -> None:
    assert request_key(_request("text"), MODEL) == request_key(_request("text"), msgspec.structs.replace(MODEL))


def test_a_key_is_what_it_was_when_prompts_had_no_tasks() -> None:
    """Made by the code of before; journals of that time still answer."""
    assert request_key(_request("text"), MODEL) == "8c3cce172959d8fd6ac471e80a707adf3658f52159c73ff0618b0ad88fb606e2"


def _with_task(said: str, text: str, *, target: str = "swh_Latn") -> GenerateRequest:
    task = TranslationTask(text=text, source="eng_Latn", target=target)
    return _request("", prompt=Prompt(messages=(Message("user", said),), shared=0, task=task))


def test_the_key_of_a_model_that_reads_messages_leaves_the_task_out() -> None:
    assert request_key(_with_task("text", "anything"), MODEL) == request_key(_request("text"), MODEL)


def test_the_key_of_a_translation_model_is_made_from_the_task_alone() -> None:
    model = msgspec.structs.replace(MODEL, rendering=TRANSLATION)
    one = request_key(_with_task("Translate.", "Hello"), model)
    assert one == request_key(_with_task("Please translate.", "Hello"), model)
    assert one != request_key(_with_task("Translate.", "Hallo"), model)
    assert one != request_key(_with_task("Translate.", "Hello", target="deu_Latn"), model)
