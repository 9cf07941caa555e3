"""Cue words that say what a bare number is, per language, and words that say it is something else.

The cue nearest before the number decides, the longer one where two end at the same place: so an order number
whose name ends in the general word for "number" is no id.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

ID_CUES: Mapping[str, Sequence[str]] = {
    "en": (
        "ssn", "social security", "id", "id number", "id no", "identity", "identity number", "identity card",
        "identification", "identification number", "national id", "tax id", "taxpayer", "tin", "passport",
        "personnel number", "personal number", "employee number", "employee id", "social insurance",
    ),
    "zh": (
        "身份证", "身分證", "身份證", "证件", "證件", "证号", "證號", "社会保障", "社會保障", "社会安全",
        "社會安全",
        "社保", "身份号码", "身份编号", "身份識別", "身份识别", "识别号", "識別號", "编号", "編號", "护照",
        "護照", "工号",
    ),
    "de": (
        "ausweis", "ausweisnummer", "ausweis-nr", "personalausweis", "personalausweisnummer", "id-nummer",
        "id-nr",
        "sozialversicherung", "sozialversicherungsnummer", "sozialversicherungs-nr", "sv-nummer", "sv-nr",
        "identifikationsnummer", "identnummer", "kennnummer", "kenn-nummer", "personenkennzahl", "steuer-id",
        "personalnummer", "passnummer", "reisepass", "versicherungsnummer", "personenkennziffer", "kennung",
    ),
    "ar": (
        "الرقم", "رقم الهوية", "الهوية", "هوية", "الرقم القومي", "الرقم الوطني", "رقم التعريف",
        "الضمان الاجتماعي",
        "بطاقة الهوية", "رقم البطاقة", "جواز السفر", "رقم الجواز", "رقم الضمان", "المعرف", "معرف",
    ),
    "sw": (
        "kitambulisho", "vitambulisho", "namba", "nambari", "namba ya kitambulisho",
        "nambari ya kitambulisho",
        "hifadhi ya jamii", "nida", "pasipoti", "utambulisho",
    ),
    "fr": ("sécurité sociale", "numéro d'identité", "carte d'identité", "pièce d'identité", "identifiant",
    "passeport"),
    "es": ("seguridad social", "dni", "cédula", "identificación", "documento de identidad", "pasaporte"),
}  # fmt: skip
OTHER_CUES: Mapping[str, Sequence[str]] = {
    "en": tuple(
        f"{thing} {number}".strip()
        for thing in (
            "order", "invoice", "ticket", "tracking", "part", "serial", "account", "case", "contract",
            "document",
            "transaction", "product", "item", "batch", "reference", "request", "project", "session",
            "message",
            "device", "phone", "fax", "version", "build", "article", "customer", "purchase", "shipment",
            "file",
        )
        for number in ("", "id", "number", "no")
    ),
    "zh": (
        "订单", "订单号", "订单编号", "訂單編號", "发票", "发票号", "发票编号", "合同", "合同号",
        "合同编号", "产品编号",
        "商品编号", "项目编号", "电话", "手机", "手机号", "快递单号", "单号", "工单编号", "案件编号",
        "文件编号",
        "货号", "账号", "账户", "序列号", "批次编号", "客户编号", "设备编号", "版本", "交易编号", "任务编号",
    ),
    "de": (
        "auftrag", "auftragsnummer", "bestellung", "bestellnummer", "rechnung", "rechnungsnummer",
        "artikelnummer",
        "seriennummer", "telefon", "telefonnummer", "kontonummer", "konto", "ticket", "ticketnummer",
        "vertrag",
        "vertragsnummer", "vorgang", "vorgangsnummer", "aktenzeichen", "sendungsnummer", "kundennummer",
        "chargennummer",
        "teilenummer", "referenznummer", "transaktion", "auftrags-id", "ticket-id", "projekt-id",
        "transaktions-id",
        "faxnummer", "rufnummer", "projektnummer", "produktnummer", "gerätenummer",
    ),
    "ar": (
        "رقم الطلب", "رقم الفاتورة", "رقم الهاتف", "الهاتف", "رقم الحساب", "رقم العقد", "رقم التذكرة",
        "رقم المنتج",
        "رقم التتبع", "الرقم التسلسلي", "رقم المشروع", "رقم القضية", "رقم الملف", "رقم المعاملة", "الطلب",
        "الفاتورة",
        "معرف الطلب", "الرقم المرجعي",
    ),
    "sw": tuple(
        f"{word} ya {thing}"
        for word in ("namba", "nambari")
        for thing in (
            "simu", "agizo", "oda", "ankara", "bidhaa", "akaunti", "tiketi", "mkataba", "mradi", "hati",
            "kesi",
            "kumbukumbu", "ufuatiliaji", "mteja", "muamala", "serial",
        )
    ),
}  # fmt: skip
PHONE_CUES: Mapping[str, Sequence[str]] = {
    "en": ("phone", "phone number", "telephone", "tel", "call", "mobile", "cell", "fax", "dial", "reach"),
    "zh": ("电话", "電話", "手机", "手機", "手机号", "致电", "拨打", "撥打", "传真", "联系电话", "电话号码"),
    "de": ("telefon", "telefonnummer", "tel", "handy", "mobil", "rufnummer", "anrufen", "fax", "durchwahl"),
    "ar": ("هاتف", "الهاتف", "رقم الهاتف", "جوال", "الجوال", "اتصل", "موبايل", "فاكس", "تليفون"),
    "sw": ("simu", "namba ya simu", "nambari ya simu", "piga", "pigia", "rununu", "faksi"),
}
_SPAN_CHARS = 48  # how far before the number its cue may stand: "Ausweisnummer von <name> lautet"
_SENTENCE_END = re.compile(r"[.!?。！？؟]\s|[\n。]")
_AFTER = re.compile(r"\s*(?:is|was|ist|war|是|为|هو|هي|ni|ndiyo|ndio|est|es)(?![a-z])(?P<rest>[^.\n。,،，;]{0,32})")


@dataclass(frozen=True, slots=True, kw_only=True)
class CueSet:
    """Cues for one kind of number, and those against it, as one pattern."""

    pattern: re.Pattern[str]
    # the longest cue first
    wanted: frozenset[str]
    # the cues that speak for the number


def _form(text: str) -> str:
    """Return the text as cues are written: case folded, no Arabic vowel points, no tatweel."""
    return "".join(char for char in text.casefold() if unicodedata.category(char) != "Mn" and char != "ـ")


def cue_set(*, wanted: Mapping[str, Sequence[str]], other: Mapping[str, Sequence[str]]) -> CueSet:
    """Return one pattern for the cues of all languages; a word in both tables speaks for the number."""
    for_it = frozenset(_form(cue) for cues in wanted.values() for cue in cues)
    every = for_it | {_form(cue) for cues in other.values() for cue in cues}
    ordered = sorted(every, key=lambda cue: (-len(cue), cue))
    # A Latin cue is a word of its own; others may touch their neighbours (Arabic prefixes, Chinese).
    words = "|".join(re.escape(cue) for cue in ordered if cue[0] < "ɐ")
    glued = "|".join(re.escape(cue) for cue in ordered if cue[0] >= "ɐ")
    return CueSet(
        pattern=re.compile(rf"(?<![^\W_0-9\u0250-\U0010ffff])(?:{words})(?![^\W_0-9\u0250-\U0010ffff])|{glued}"),
        wanted=for_it,
    )


ID = cue_set(wanted=ID_CUES, other={**OTHER_CUES})
PHONE = cue_set(wanted=PHONE_CUES, other={"ids": [cue for cues in ID_CUES.values() for cue in cues]})


def announced(text: str, span: tuple[int, int], *, cues: CueSet) -> bool:
    """Whether the nearest cue before the span speaks for it, or a sentence after it says what it is.

    A cue counts within 48 code points before, in the same sentence. Behind the number only the form
    "<number> is her SSN" counts, in English, Chinese, German, Arabic, Swahili, French and Spanish.
    """
    before = _form(text[max(0, span[0] - _SPAN_CHARS) : span[0]])
    before = _SENTENCE_END.split(before)[-1]
    found = cues.pattern.findall(before)
    if found:
        return found[-1] in cues.wanted
    after = _AFTER.match(_form(text[span[1] : span[1] + _SPAN_CHARS]))
    if after is None:
        return False
    named = cues.pattern.search(after["rest"])
    return named is not None and named[0] in cues.wanted
