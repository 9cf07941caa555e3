from __future__ import annotations

import pytest

from driving import EchoTarget, Run, drive, make_tools
from mragaudit.attacks.rag_thief import Memory, RagThief, chunks, edge
from mragaudit.errors import ConfigError

SENTENCES = [
    "Heron boats leave the northern pier.", "Crates of velvet wait below deck.", "Two lanterns mark the quarry road.",
    "Falcons nest above the copper gate.", "Granite blocks cross the frozen lake.", "A juniper hedge hides the well.",
    "Pelicans follow the grain barges.", "Monks copy the saffron ledgers.", "Otters play under the mill wheel.",
    "Zinc plates cover the chapel roof.", "Ivory chess pieces fill the trunk.", "Musicians tune beside the orchard.",
    "Glaziers mend the tower windows.", "Shepherds count flocks at dusk.", "Kites circle over the salt pans.",
    "Bakers stack loaves on the sill.", "Weavers dye wool with madder.", "Ferrymen quarrel about the toll.",
    "Archers rest against the rampart.", "Surgeons boil their instruments.",
]  # fmt: skip
CHAIN = [f"{SENTENCES[at]} {SENTENCES[at + 1]} {SENTENCES[at + 2]}" for at in range(0, 18, 2)]
"""Each text begins with the sentence that ends the one before."""


def attack(target: EchoTarget, options: RagThief, *, budget: int) -> Run:
    return drive(options, target, tools=make_tools(budget=budget, topics=()))


def test_on_a_chain_of_texts_coverage_grows_beyond_the_first_retrieval() -> None:
    target = EchoTarget(CHAIN, k=2)
    attack(target, RagThief(forward=1, backward=1), budget=20)
    assert len(target.retrieved) == len(CHAIN)


def test_without_reflection_it_stalls_near_the_first_retrieval() -> None:
    target = EchoTarget(CHAIN, k=2)
    attack(target, RagThief(reflect=False), budget=20)
    assert len(target.retrieved) <= 4


def test_a_repeated_reply_adds_nothing_to_memory() -> None:
    run = drive(RagThief(), lambda _: CHAIN[0], tools=make_tools(budget=8))
    assert (run.outcome.counts["chunks"], run.outcome.counts["repeated_chunks"]) == (1, 7)


def test_novelty_is_an_f_measure_below_seven_tenths() -> None:
    memory = Memory(new_below=0.7)
    assert memory.add("a b c d e f g h i j")
    assert not memory.add("a b c d e f g x y z")  # 7 of 10 and 10: exactly 0.7
    assert memory.add("a b c d e f u v w x")  # 0.6
    assert len(memory) == 2


def test_a_text_without_tokens_is_never_new() -> None:
    assert not Memory(new_below=0.7).add("...")


def test_replies_fall_into_lines_without_labels_and_scraps() -> None:
    assert chunks("Document: One two three four five.\n\nok\nSource 2: Six seven eight nine.") == [
        "One two three four five.",
        "Six seven eight nine.",
    ]


def test_a_long_line_is_cut_between_sentences() -> None:
    sentence = "alpha beta gamma delta epsilon zeta eta theta iota kappa."
    assert [len(chunk.split()) for chunk in chunks(" ".join([sentence] * 14))] == [60, 60, 20]


def test_chinese_replies_are_cut_at_their_full_stops() -> None:
    sentence = "公司预算已经批准，请在周一之前把签好的表格交给财务部门。"
    assert len(chunks(sentence * 6)) == 3


def test_each_continuation_sees_a_smaller_window_of_the_chunk() -> None:
    chunk = " ".join(f"w{at}" for at in range(50))
    assert edge(chunk, direction="forward", count=40).split()[0] == "w10"
    assert edge(chunk, direction="backward", count=28).split()[-1] == "w27"
    run = drive(RagThief(), lambda ask: chunk if "raw text" in ask.text else "", tools=make_tools(budget=5))
    shown = [think.prompt.messages[-1].content.splitlines()[0].split()[1:] for think in run.thinks]
    assert [(words[0], words[-1]) for words in shown] == [("w10", "w49"), ("w0", "w39"), ("w22", "w49"), ("w0", "w27")]


def test_a_chunk_is_continued_five_times_each_way() -> None:
    first = " ".join(SENTENCES[:8])
    run = drive(RagThief(), lambda ask: first if "raw text" in ask.text else "", tools=make_tools(budget=11))
    assert len(run.asks) == len(run.thinks) + 1 == 11
    assert sum("Next sentence:" in think.prompt.messages[-1].content for think in run.thinks) == 5


def test_what_the_model_writes_is_sent_and_an_edge_of_the_chunk_where_it_writes_nothing() -> None:
    replies = iter(["The owls sleep in the barn.", ""])
    tools = make_tools(budget=3)
    run = drive(RagThief(), lambda _: CHAIN[0], tools=tools, think=lambda _: next(replies))
    assert run.questions[1].endswith('"The owls sleep in the barn."')
    assert run.questions[2].endswith('"Heron boats leave the northern pier. Crates of velvet"')
    assert run.outcome.counts["prepared_continuations"] == 1


def test_refusals_are_no_documents() -> None:
    run = drive(RagThief(), lambda _: "I'm sorry, I cannot help with that request.", tools=make_tools())
    assert (run.outcome.counts["refusals"], run.outcome.counts["chunks"], len(run.thinks)) == (8, 0, 0)


def test_a_negative_number_of_continuations_is_refused() -> None:
    with pytest.raises(ConfigError, match="forward"):
        RagThief(forward=-1)
