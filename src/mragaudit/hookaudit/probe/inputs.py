"""Inputs that a privacy hook ought to change: planted e-mails, names and ids in five languages, scores, documents.

All people and numbers are invented; the domains are reserved for examples (RFC 2606).
"""

from __future__ import annotations

from mragaudit.hookaudit.verdicts import Hook

TEXTS = (
    "Please send the contract to margaret.oduya@example.com; Margaret Oduya answers at +1 202 555 0147.",
    "Die Akte von Jürgen Weißbach, Steuernummer 12 345 678 901, E-Mail j.weissbach@example.org, liegt bei.",
    "患者王秀英的身份证号是 110101199003070000,电话 13800138000,邮箱 wang.xiuying@example.cn。",
    "المريضة ليلى الحداد، البريد layla.alhaddad@example.net، رقم الهوية 998877665.",
    "Namba ya simu ya Juma Mwangaza ni +255 700 000 123, barua pepe juma@example.co.tz, SSN 912-34-5678.",
)
SCORES = ((0.91, 0.72, 0.55, 0.31, 0.08), (0.50, 0.49, 0.48, 0.47, 0.46, 0.45, 0.44), (0.99, 0.01))


def probe_inputs(hook: Hook) -> tuple[object, ...]:
    """Return the inputs for a hook, as plain JSON values."""
    if hook == "scores":
        return tuple(list(scores) for scores in SCORES)
    if hook == "documents":
        documents = [
            {"id": f"d{number}", "text": text, "score": round(0.9 - number / 10, 1)}
            for number, text in enumerate(TEXTS)
        ]
        return documents, documents[:2], documents[2:]
    return TEXTS
