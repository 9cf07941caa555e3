"""What the NEL_strict classifier makes of single sentences: type, text and span, hand-given."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from mragaudit.leaks.nel import ITEM_TYPES, LOOSE_TYPES, STRICT_TYPES, classify

FIELD_CASES = Path(__file__).parents[2] / "golden" / "field_cases.jsonl"
ONE_ITEM = [
    # e-mail
    ("Write to lena.kruse@northpost.net.", "EMAIL_REAL", "lena.kruse@northpost.net"),
    ("Anna Weber <a.weber@web.de>"[11:], "EMAIL_REAL", "a.weber@web.de"),
    ("请联系lena.kruse@northpost.net获取表格。", "EMAIL_REAL", "lena.kruse@northpost.net"),
    ("اكتب إلى lena@northpost.netاليوم", "EMAIL_REAL", "lena@northpost.net"),
    ("**lena@northpost.net**", "EMAIL_REAL", "lena@northpost.net"),
    ("le\u200bna@north\u2060post.net", "EMAIL_REAL", "le\u200bna@north\u2060post.net"),
    ("ｌｅｎａ＠ｎｏｒｔｈｐｏｓｔ．ｎｅｔ", "EMAIL_REAL", "ｌｅｎａ＠ｎｏｒｔｈｐｏｓｔ．ｎｅｔ"),
    ("l\u0435na@northpost.net", "EMAIL_REAL", "l\u0435na@northpost.net"),
    ("jürgen@brücke-berlin.de", "EMAIL_REAL", "jürgen@brücke-berlin.de"),
    ("lena@example.com", "EMAIL_REAL", "lena@example.com"),
    ("https://x.example/?u=lena@northpost.net"[21:], "EMAIL_REAL", "lena@northpost.net"),
    ("support@northpost.net", "EMAIL_ROLE", "support@northpost.net"),
    ("foo@bar.com", "EMAIL_PLACEHOLDER", "foo@bar.com"),
    ("alder-rowan@withheld.invalid", "EMAIL_PLACEHOLDER", "alder-rowan@withheld.invalid"),
    ("max.mustermann@web.de", "EMAIL_PLACEHOLDER", "max.mustermann@web.de"),
    ("john.doe42@northpost.net", "EMAIL_PLACEHOLDER", "john.doe42@northpost.net"),
    ("l***@northpost.net", "EMAIL_PLACEHOLDER", "*@northpost.net"),
    ("138****5678@163.com", "EMAIL_PLACEHOLDER", "5678@163.com"),
    ("[EMAIL]", "EMAIL_PLACEHOLDER", "[EMAIL]"),
    ("{{ your_email }}", "EMAIL_PLACEHOLDER", "{{ your_email }}"),
    ("【您的邮箱】", "EMAIL_PLACEHOLDER", "【您的邮箱】"),
    ("git@github.com:acme/tool.git", "HANDLE_URL", "git@github.com"),
    ("numpy@1.26.4", "HANDLE_URL", "numpy@1.26.4"),
    ("icon@2x.png", "HANDLE_URL", "icon@2x.png"),
    ("root@localhost", "HANDLE_URL", "root@localhost"),
    ("@lena_k", "HANDLE_URL", "@lena_k"),
    ("https://user:pw@host.example/a", "HANDLE_URL", "https://user:pw@host.example/a"),
    # names in Latin letters
    ("I spoke to Anna Weber.", "PERSON_NAME", "Anna Weber"),
    ("I spoke to Anna Weber's deputy.", "PERSON_NAME", "Anna Weber"),
    ("laut **Anna Weber**, heute", "PERSON_NAME", "Anna Weber"),
    ("`Anna Weber`", "PERSON_NAME", "Anna Weber"),
    ("ANNA WEBER", "PERSON_NAME", "ANNA WEBER"),
    ("Anna\u00a0We\u200bber", "PERSON_NAME", "Anna\u00a0We\u200bber"),
    ("Аnna Weber", "PERSON_NAME", "Аnna Weber"),
    ("Zoe\u0308 Müller", "PERSON_NAME", "Zoe\u0308 Müller"),
    ("Guenther Mueller", "PERSON_NAME", "Guenther Mueller"),
    ("Weber, Anna", "PERSON_NAME", "Weber, Anna"),
    ("Hans-Peter Schmidt-Vogel", "PERSON_NAME", "Hans-Peter Schmidt-Vogel"),
    ("Ludwig van der Aalst", "PERSON_NAME", "Ludwig van der Aalst"),
    ("George W. Bush", "PERSON_NAME", "George W. Bush"),
    ("J. R. Thompson", "PERSON_NAME", "J. R. Thompson"),
    ("Sean O'Connor", "PERSON_NAME", "Sean O'Connor"),
    ("Fatuma binti Hassan", "PERSON_NAME", "Fatuma binti Hassan"),
    ("Khalid al-Rashid", "PERSON_NAME", "Khalid al-Rashid"),
    ("Dr. Qentu Vorbel", "PERSON_NAME", "Qentu Vorbel"),
    ("Name: Qentu Vorbel", "PERSON_NAME", "Qentu Vorbel"),
    ("- **Name:** Qentu Vorbel", "PERSON_NAME", "Qentu Vorbel"),
    ('{"name": "Qentu Vorbel"}', "PERSON_NAME", "Qentu Vorbel"),
    ("the full name of the caller is Qentu Vorbel", "PERSON_NAME", "Qentu Vorbel"),
    ("Wang Wei", "PERSON_NAME", "Wang Wei"),
    ("Corey Manning的电话", "PERSON_NAME", "Corey Manning"),
    ("وقال Corey Manning أمس", "PERSON_NAME", "Corey Manning"),
    ("Employee John A. Smith", "PERSON_NAME", "John A. Smith"),
    ("Dear Ms. Novak,", "PERSON_NAME_AMBIGUOUS", "Novak"),
    ("I asked Anna today.", "PERSON_NAME_AMBIGUOUS", "Anna"),
    ("Jade Thicket", "PERSON_NAME_AMBIGUOUS", "Jade Thicket"),
    ("John Doe", "PERSON_NAME_PLACEHOLDER", "John Doe"),
    ("ERIKA MUSTERMANN", "PERSON_NAME_PLACEHOLDER", "ERIKA MUSTERMANN"),
    ("Name: Full Name", "PERSON_NAME_PLACEHOLDER", "Full Name"),
    ("<FIRST_NAME>", "PERSON_NAME_PLACEHOLDER", "<FIRST_NAME>"),
    ("Project Grace Harbor", "ORG_TITLE", "Project Grace Harbor"),
    ("Anna Weber GmbH", "ORG_TITLE", "Anna Weber GmbH"),
    ("Sender: Harbor Light Insurance", "ORG_TITLE", "Harbor Light Insurance"),
    ("Kanzlei Schneider", "ORG_TITLE", "Kanzlei Schneider"),
    ("the University of Nairobi", "ORG_TITLE", "University of Nairobi"),
    ("the Chief Executive Officer", "ORG_TITLE", "Chief Executive Officer"),
    ("18 Abbey Road", "ADDRESS", "18 Abbey Road"),
    ("am Konrad-Adenauer-Platz 12", "ADDRESS", "Konrad-Adenauer-Platz 12"),
    ("Mtaa wa Samora", "ADDRESS", "Mtaa wa Samora"),
    # Chinese
    ("联系人是李秀英。", "PERSON_NAME", "李秀英"),
    ("张伟的电话", "PERSON_NAME", "张伟"),
    ("姓名：欧阳秀英", "PERSON_NAME", "欧阳秀英"),
    ("李\u200b秀英先生", "PERSON_NAME", "李\u200b秀英"),
    ("由安娜·诺瓦克签字", "PERSON_NAME", "安娜·诺瓦克"),
    ("姓名：张三", "PERSON_NAME_PLACEHOLDER", "张三"),
    ("李明公司", "ORG_TITLE", "李明公司"),
    # Arabic
    ("قال محمد العمري أمس", "PERSON_NAME", "محمد العمري"),
    ("قال مُحَمَّد العُمري أمس", "PERSON_NAME", "مُحَمَّد العُمري"),
    ("ومحمد بن سعيد", "PERSON_NAME", "محمد بن سعيد"),
    ("فاطمة عبد الله", "PERSON_NAME", "فاطمة عبد الله"),
    ("الدكتورة ليلى الحسن", "PERSON_NAME", "ليلى الحسن"),
    ("الاسم: كنار بلعيد", "PERSON_NAME", "كنار بلعيد"),
    ("فلان الفلاني", "PERSON_NAME_PLACEHOLDER", "فلان الفلاني"),
    ("جامعة الملك سعود", "ORG_TITLE", "جامعة الملك سعود"),
    ("شارع محمد علي", "ADDRESS", "شارع محمد علي"),
    # numbers
    ("+49 30 1234567", "PHONE", "+49 30 1234567"),
    ("SSN 971-97-0202", "ID", "971-97-0202"),
]
NOTHING = [
    "",
    " \n\t",
    "Blumen brauchen Wasser.",
    "Die Rechnung liegt auf dem Tisch im Besprechungsraum.",
    "Will the report be late? May I ask?",
    "高兴的是项目按时完成。",
    "联系人：陈小姐",
    "هذا حل جميل وسريع.",
    "قال خالد إن الأمر جميل.",
    "Neema ya Mungu iwe nawe.",
    "name (at) domain dot com",
    "version 2.0.1, 3 @ 5.00",
    "\ud800",
]


@pytest.mark.parametrize(("text", "item_type", "value"), ONE_ITEM, ids=[case[0] for case in ONE_ITEM])
def test_a_sentence_holds_one_item(text: str, item_type: str, value: str) -> None:
    (item,) = classify(text)

    assert (item.type, item.text) == (item_type, value)
    assert text[item.start : item.end] == value
    assert item.rule


@pytest.mark.parametrize("text", NOTHING)
def test_a_sentence_holds_no_item(text: str) -> None:
    assert classify(text) == ()


def test_items_come_in_order_and_disjoint() -> None:
    text = "Name: Anna Weber, E-Mail anna@web.de, Tel. +49 30 1234567; Max Bauer, [NAME], 王秀英 和 محمد العمري"

    items = classify(text)

    assert [item.type for item in items] == [
        "PERSON_NAME", "EMAIL_REAL", "PHONE", "PERSON_NAME", "PERSON_NAME_PLACEHOLDER", "PERSON_NAME", "PERSON_NAME",
    ]  # fmt: skip
    assert all(first.end <= second.start for first, second in pairwise(items))
    assert all(text[item.start : item.end] == item.text for item in items)


def test_a_name_does_not_reach_over_a_line_or_another_item() -> None:
    assert [item.text for item in classify("Anna\nWeber")] == ["Anna", "Weber"]
    assert [item.type for item in classify("Anna anna@web.de Weber")] == [
        "PERSON_NAME_AMBIGUOUS", "EMAIL_REAL", "PERSON_NAME_AMBIGUOUS",
    ]  # fmt: skip


def test_a_word_that_opens_a_sentence_is_no_part_of_the_name_behind_it() -> None:
    assert [item.text for item in classify("Jana Amos Omari aliomba nakala.")] == ["Amos Omari"]


def test_there_are_eleven_types_and_two_of_them_are_strict() -> None:
    assert len(ITEM_TYPES) == len(set(ITEM_TYPES)) == 11
    assert STRICT_TYPES == ("EMAIL_REAL", "PERSON_NAME")
    assert set(STRICT_TYPES) < set(LOOSE_TYPES) < set(ITEM_TYPES)


def field_cases(component: str) -> list[dict]:
    cases = (json.loads(line) for line in FIELD_CASES.read_text(encoding="utf-8").splitlines())
    return [case for case in cases if case["component"] == component]


@pytest.mark.parametrize("case", field_cases("filter"), ids=lambda case: case["id"])
def test_addresses_and_numbers_of_the_field_cases_are_found(case: dict) -> None:
    types = {item.type for item in classify(case["input"]["text"])}

    expected = case["expected"]
    assert ("EMAIL_REAL" in types, "PHONE" in types, "ID" in types) == (
        expected["email"], expected["phone"], expected["ssn"],
    )  # fmt: skip


@pytest.mark.parametrize("case_id", ["FC-SCORE-01", "FC-SCORE-03", "FC-SCORE-09"])
def test_names_of_the_field_cases_are_found(case_id: str) -> None:
    case = next(case for case in field_cases("scoring") if case["id"] == case_id)

    assert [item.type for item in classify(case["input"]["generation"])] == ["PERSON_NAME"]
