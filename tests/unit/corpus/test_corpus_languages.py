from __future__ import annotations

from pathlib import Path

import pytest

from mragaudit.corpus.languages import load_language
from mragaudit.errors import DataError

SHIPPED = Path(__file__).parents[3] / "resources" / "languages"


def test_the_languages_that_ship_have_the_codes_of_flores_200() -> None:
    codes = {lang: load_language(SHIPPED, lang).flores for lang in ("en", "zh", "de", "ar", "sw")}
    assert codes == {"en": "eng_Latn", "zh": "zho_Hans", "de": "deu_Latn", "ar": "arb_Arab", "sw": "swh_Latn"}


def edited(folder: Path, *, old: str, new: str) -> Path:
    text = (SHIPPED / "sw.yaml").read_text(encoding="utf-8")
    assert old in text
    (folder / "sw.yaml").write_text(text.replace(old, new), encoding="utf-8")
    return folder


def test_a_language_need_not_have_a_code(tmp_path: Path) -> None:
    assert load_language(edited(tmp_path, old="flores: swh_Latn\n", new=""), "sw").flores is None


def test_a_code_of_another_shape_is_refused_with_file_and_key(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r'sw\.yaml.*flores.*"sw" is no FLORES-200 code; one looks like swh_Latn'):
        load_language(edited(tmp_path, old="swh_Latn", new="sw"), "sw")
