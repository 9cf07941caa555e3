"""The harness: what an attack can reach, what it may spend, and what is logged."""

# ruff: noqa: ARG002  # a hook takes what the protocol hands it

import gc

import numpy as np
import pytest
from small_grid import Identity, cell, completion, echo, pipeline

from mragaudit.attacks.steps import Ask, Derived, Outcome, Think
from mragaudit.grid.harness import CellRun, Models, run_cells, turn_of
from mragaudit.protocols import Failure, Message, Prompt
from mragaudit.rag.pipeline import REFUSAL

THOUGHT = Think(prompt=Prompt(messages=(Message("user", "think"),), shared=0), max_tokens=4)


def refuse_to_think(requests, _names):
    assert not requests
    return []


def drive(steps, *, defense=None, target=echo, attacker=refuse_to_think, **changes):
    run = CellRun(cell(**changes), steps=steps, pipeline=pipeline(defense))
    for _ in run_cells([run], models=Models(target=target, attacker=attacker)):
        pass
    return run.logged()


def asks(*texts, **fields):
    for text in texts:
        yield Ask(text=text, **fields)
    return Outcome()


def test_an_attack_is_sent_the_reply_and_nothing_else():
    seen = []

    def attack():
        seen.append((yield Ask(text="Project Tin Sparrow?")))
        return Outcome()

    logged = drive(attack())
    assert [type(one) for one in seen] == [str]
    assert seen[0] == logged.calls[0].reply


def test_nothing_of_the_pipeline_can_be_reached_from_an_attack():
    frames = []

    def attack():
        reply = yield Ask(text="Project Tin Sparrow?")
        frames.append(reply)
        yield Ask(text="again")
        return Outcome()

    steps = attack()
    run = CellRun(cell(), steps=steps, pipeline=pipeline())
    next(run_cells([run], models=Models(target=echo, attacker=refuse_to_think)))
    reached = _reachable(steps.gi_frame.f_locals)
    modules = {type(one).__module__ for one in reached}
    assert not [name for name in modules if name.startswith(("mragaudit.rag", "mragaudit.index", "mragaudit.grid"))]


def _reachable(start):
    found, waiting = [], [start]
    while waiting:
        one = waiting.pop()
        if any(one is known for known in found):
            continue
        found.append(one)
        waiting += [other for other in gc.get_referents(one) if not isinstance(other, type)]
    return found


def test_an_attack_that_wants_more_than_its_budget_is_ended():
    logged = drive(asks("a", "b", "c", "d"), budget=3)
    assert logged.use.n_target_calls == 3
    assert [call.question for call in logged.calls] == ["a", "b", "c"]


def test_calls_of_the_attackers_own_model_are_counted_apart():
    def attack():
        text = yield THOUGHT
        yield Ask(text=text)
        return Outcome()

    logged = drive(attack(), attacker=lambda requests, _names: [completion("a question") for _ in requests])
    assert (logged.use.n_target_calls, logged.use.n_attacker_calls) == (1, 1)
    assert logged.calls[0].question == "a question"


def test_what_the_attack_counted_of_itself_is_kept():
    def attack():
        yield Ask(text="a")
        return Outcome(counts={"refusals": 1, "prepared_questions": 2})

    assert drive(attack()).use.attack_counts == {"prepared_questions": 2, "refusals": 1}


def test_a_thought_that_never_came_back_is_an_empty_text_and_is_counted():
    def attack():
        yield Ask(text=f"<{(yield THOUGHT)}>")
        return Outcome()

    logged = drive(attack(), attacker=lambda requests, _names: [Failure(reason="timeout") for _ in requests])
    assert (logged.use.n_attacker_failed, logged.calls[0].question) == (1, "<>")


def test_a_lost_call_is_not_evaluated_and_no_refusal():
    logged = drive(asks("a"), target=lambda requests, _names: [Failure(reason="HTTP 503") for _ in requests])
    call = logged.calls[0]
    assert (call.not_evaluated, call.refused_by, call.reply) == ("HTTP 503", None, "")
    assert logged.use.n_not_evaluated == 1


def test_a_refused_call_has_the_refusal_as_its_reply_and_asks_no_model():
    class Gate(Identity):
        def process_query(self, query, *, turn):
            return None

    logged = drive(asks("a"), defense=Gate(), target=lambda requests, _names: [completion("no")] * len(requests))
    call = logged.calls[0]
    assert (call.reply, call.refused_by, call.answer, call.not_evaluated) == (REFUSAL, "query", "", None)


def test_the_log_holds_answer_and_reply_apart():
    class Masker(Identity):
        def process_response(self, response, *, turn):
            return "[masked]"

    call = drive(asks("Project Tin Sparrow?"), defense=Masker()).calls[0]
    assert "ada.lorne@example.com" in call.answer
    assert call.reply == "[masked]"


def test_derived_texts_stand_with_the_call_of_whose_reply_they_were_made():
    def attack():
        yield Ask(text="a")
        yield Ask(text="b")
        return Outcome(derived=(Derived(call=2, text="decoded"),))

    assert [call.derived for call in drive(attack()).calls] == [(), ("decoded",)]


def test_questions_without_a_session_have_one_each():
    assert [call.session for call in drive(asks("a", "b")).calls] == ["own-1", "own-2"]


def test_cells_side_by_side_give_the_rows_that_each_gives_alone():
    def made(name):
        return CellRun(cell(cell_id=name, attack=name), steps=asks("a", "Project Dull Heron?"), pipeline=pipeline())

    together = [made("x"), made("y")]
    for _ in run_cells(together, models=Models(target=echo, attacker=refuse_to_think)):
        pass
    alone = made("y")
    for _ in run_cells([alone], models=Models(target=echo, attacker=refuse_to_think)):
        pass
    assert together[1].logged() == alone.logged()


def test_the_noise_of_a_call_is_the_same_under_every_arm():
    first, second = (turn_of(cell(arm=arm), 1, session="").rng.random() for arm in ("dp_r@1", "ca_dp@5"))
    assert first == second


def test_no_two_calls_share_their_noise():
    drawn = [turn_of(cell(), number, session="").rng.random() for number in range(1, 50)]
    assert len(np.unique(drawn)) == 49


def test_an_attack_that_asks_nothing_is_a_cell_without_calls():
    assert drive(asks()).use.n_target_calls == 0


def test_a_text_that_a_driver_answers_out_of_turn_is_an_error_of_ours():
    run = CellRun(cell(), steps=asks("a"), pipeline=pipeline())
    with pytest.raises(RuntimeError, match="answered before it was prepared"):
        run.take_answer(Ask(text="a"), completion("x"))
