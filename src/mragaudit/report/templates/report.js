"use strict";
(() => {
  const PAGE = 50;
  const NONE = "\u2014";
  const data = JSON.parse(document.getElementById("trial-data").textContent);
  const byId = (id) => document.getElementById(id);
  const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]|\p{Cs}/gu;

  // Text never becomes markup: every string goes in as a text node.
  const element = (tag, attributes = {}, ...children) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  };
  const controlName = (char) => char === "\u0000" ? "\u2400"
    : `\u27e8U+${char.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}\u27e9`;
  const visible = (text) => {
    const parts = [];
    let at = 0;
    for (const match of text.matchAll(HIDDEN)) {
      parts.push(text.slice(at, match.index), element("span", { class: "control", dir: "ltr" }, controlName(match[0])));
      at = match.index + match[0].length;
    }
    parts.push(text.slice(at));
    return parts;
  };
  const stored = (number) => {
    const found = data.texts[number];
    return Array.isArray(found) ? { text: found[0], length: found[1] } : { text: found, length: null };
  };
  const plain = (number) => number === null ? "" : stored(number).text;
  const unknown = (value) => value === null || value === undefined;
  const yesNo = (value) => unknown(value) ? "not evaluated" : value ? "yes" : "no";
  const number3 = (value) => unknown(value) ? NONE : value.toFixed(3);
  const stageName = (stage) => data.stages[stage] || stage;
  const languageName = (code) => data.languages[code] ? data.languages[code][0] : code;

  // Spans come in code points, strings here in UTF-16 units.
  const cutAt = (text, marks) => {
    const points = Array.from(text);
    const edges = new Set([0, points.length]);
    for (const one of marks) for (const place of [one.start, one.end]) edges.add(Math.min(place, points.length));
    const order = [...edges].sort((a, b) => a - b);
    return order.slice(1).map((end, index) => ({
      text: points.slice(order[index], end).join(""),
      kinds: marks.filter((one) => one.start < end && one.end > order[index]),
    }));
  };
  const marked = (text, marks) => cutAt(text, marks).map((piece) => piece.kinds.reduceRight(
    (inner, one) => [element("mark", { class: one.kind, title: one.title }, ...inner)], visible(piece.text)));
  const block = (number, { lang, marks = [], missing = "none" } = {}) => {
    if (unknown(number)) return element("p", { class: "small" }, missing);
    const { text, length } = stored(number);
    const made = element("div", { class: "text", dir: "auto" }, ...marked(text, marks).flat());
    if (lang) made.setAttribute("lang", lang);
    if (length === null) return made;
    const note = `Shown: the first ${Array.from(text).length} of ${length} characters.`;
    return element("div", {}, made, element("p", { class: "small" }, note));
  };
  const cell = (text, attributes = {}) =>
    element("td", {}, element("span", { class: "cell-text", dir: "auto", ...attributes }, ...visible(text)));
  const grid = (headers, rows) => element("table", {},
    element("thead", {}, element("tr", {}, ...headers.map((one) => element("th", { scope: "col" }, one)))),
    element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row))));
  const titled = (title, ...content) => element("div", {}, element("h4", {}, title), ...content);

  const answerMarks = (trial) => [
    ...trial.spans.map(([start, end]) => ({ start, end, kind: "planted", title: "planted value" })),
    ...trial.filters.flatMap(([variant, , , spans]) => spans.map(([family, start, end]) =>
      ({ start, end, kind: "filter", title: `${variant}: ${family}` }))),
  ];
  const facts = (trial) => {
    const [published, verbatim, normalised, echoed] = trial.leaks;
    const pairs = [
      ["planted value", plain(trial.value) || "none"], ["anchor", plain(trial.anchor)],
      ["first stop", unknown(trial.stage) ? NONE : stageName(trial.stage)], ["query by", trial.source],
      ["leak, verbatim", yesNo(verbatim)], ["leak, published rule", yesNo(published)],
      ["leak, normalised", yesNo(normalised)], ["share of the value's tokens", number3(trial.partial)],
      ["echo of query or few-shots", yesNo(echoed)],
    ];
    if (trial.intent === "benign") {
      pairs.push(["expected answer", plain(trial.expected)], ["answered correctly", yesNo(trial.correct)]);
    }
    if (trial.missing !== null) pairs.push(["not evaluated because", trial.missing]);
    if (trial.failed !== null) pairs.push(["translation failed", trial.failed]);
    return element("dl", { class: "pairs" }, ...pairs.flatMap(([label, value]) => [element("dt", {}, label),
      element("dd", {}, element("span", { class: "cell-text", dir: "auto" }, ...visible(value)))]));
  };
  const retrieved = (trial) => trial.retrieved.length === 0 ? element("p", { class: "small" }, "none") : grid(
    ["rank", "document", "score", "target", "text"],
    trial.retrieved.map(([id, score, gold, text], rank) => [cell(String(rank + 1)), cell(id), cell(number3(score)),
      cell(gold ? "yes" : ""), cell(plain(text))]));
  const verdicts = (trial) => grid(["judge", "verdict", "margin", "judged text"], trial.verdicts.map(
    ([variant, verdict, margin, text]) => [cell(variant), cell(verdict === null ? "not evaluated" : verdict),
      cell(number3(margin)), cell(plain(text))]));
  const filters = (trial) => grid(["filter", "fired", "families", "spans (code points)"], trial.filters.map(
    ([variant, fired, families, spans]) => [cell(variant), cell(yesNo(fired)), cell(families.join(", ")),
      cell(spans.map(([family, start, end]) => `${family} ${start}\u2013${end}`).join(", "))]));
  const traceOf = (trial) => element("div", { class: "trace" },
    element("div", { class: "half" }, titled("Outcome", facts(trial)),
      titled(`Document ${trial.doc === null ? "" : trial.doc}`, block(trial.document))),
    element("div", { class: "half" }, titled("Query in English", block(trial.english, { lang: "en", missing: "no English source" })),
      titled(`Query in ${languageName(trial.lang)}`, block(trial.query, { lang: trial.lang }))),
    titled(`Back-translation (round-trip similarity ${number3(trial.similarity)})`, block(trial.back, { lang: "en" })),
    titled("Verdicts", verdicts(trial)), titled("Retrieved documents", retrieved(trial)),
    titled("Answer", block(trial.answer, { lang: trial.lang, marks: answerMarks(trial), missing: "not evaluated" }),
      element("p", { class: "small" }, "Yellow: planted value. Double underline: matched by a filter.")),
    titled("Filters", filters(trial)));

  const fold = (text) => text.normalize("NFKC").toLowerCase();
  const haystacks = new Map();
  const haystack = (trial) => {
    if (!haystacks.has(trial)) {
      const texts = [trial.query, trial.english, trial.back, trial.answer, trial.document, trial.anchor, trial.value];
      haystacks.set(trial, fold([trial.id, trial.doc || "", ...texts.map((one) => plain(one))].join("\n")));
    }
    return haystacks.get(trial);
  };
  const keys = { lang: "lang", para: "para", intent: "intent", stage: "stage", source: "source" };
  const names = { lang: languageName, stage: stageName };
  const valueOf = (trial, key) => unknown(trial[key]) ? NONE : trial[key];
  const state = { shown: data.trials, page: 0, open: null };

  const fillSelect = (key) => {
    const order = { lang: Object.keys(data.languages), stage: Object.keys(data.stages) }[key] || [];
    const present = new Set(data.trials.map((trial) => valueOf(trial, key)));
    const values = [...order.filter((one) => present.has(one)), ...[...present].filter((one) => !order.includes(one)).sort()];
    const label = names[key] || ((value) => value);
    byId(`filter-${key}`).append(element("option", { value: "" }, "all"),
      ...values.map((value) => element("option", { value }, label(value))));
    if (key === "source") byId("label-source").hidden = values.length < 2;
  };
  const apply = () => {
    const wanted = Object.keys(keys).map((key) => [key, byId(`filter-${key}`).value]).filter(([, value]) => value !== "");
    const text = fold(byId("filter-text").value.trim());
    state.shown = data.trials.filter((trial) => wanted.every(([key, value]) => valueOf(trial, key) === value)
      && (text === "" || haystack(trial).includes(text)));
    state.page = 0;
    state.open = null;
    draw();
  };
  const toggle = (trial) => {
    state.open = state.open === trial.id ? null : trial.id;
    draw();
    const again = document.querySelector(`#trial-rows tr.trial[data-row="${data.trials.indexOf(trial)}"] .opener`);
    if (again) again.focus({ preventScroll: true });
  };
  const rowsOf = (trial) => {
    const open = state.open === trial.id;
    const opener = element("button", { type: "button", class: "opener", "aria-expanded": String(open) }, ...visible(trial.id));
    const query = cell(plain(trial.query).slice(0, 300), { lang: trial.lang, class: "cell-text query-cell" });
    const row = element("tr", { class: open ? "trial open" : "trial", "data-row": data.trials.indexOf(trial) },
      element("td", {}, opener), cell(languageName(trial.lang)), cell(trial.intent), cell(valueOf(trial, "para")),
      cell(valueOf(trial, "pii")),
      unknown(trial.stage) ? cell(NONE)
        : element("td", {}, element("span", { class: `stage stage-${trial.stage}` }, ...visible(stageName(trial.stage)))), query);
    row.addEventListener("click", () => toggle(trial));
    if (!open) return [row];
    const detail = element("td", { colspan: "7" });
    detail.append(traceOf(trial));
    return [row, element("tr", { class: "detail" }, detail)];
  };
  const draw = () => {
    const pages = Math.max(1, Math.ceil(state.shown.length / PAGE));
    const first = state.page * PAGE;
    byId("trial-rows").replaceChildren(...state.shown.slice(first, first + PAGE).flatMap(rowsOf));
    byId("trial-count").textContent = `${state.shown.length} of ${data.trials.length} trials`;
    byId("page-now").textContent = `page ${state.page + 1} of ${pages}`;
    byId("page-back").disabled = state.page === 0;
    byId("page-next").disabled = state.page + 1 >= pages;
  };
  const turn = (step) => { state.page += step; state.open = null; draw(); };
  const start = () => {
    Object.keys(keys).forEach((key) => { fillSelect(key); byId(`filter-${key}`).addEventListener("change", apply); });
    let waiting = 0;
    byId("filter-text").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(apply, 120); });
    byId("filter-reset").addEventListener("click", () => {
      Object.keys(keys).forEach((key) => { byId(`filter-${key}`).value = ""; });
      byId("filter-text").value = "";
      apply();
    });
    byId("page-back").addEventListener("click", () => turn(-1));
    byId("page-next").addEventListener("click", () => turn(1));
    byId("trial-app").hidden = false;
    draw();
  };
  // A folded table cannot be read on paper; the long ones fill many sheets and stand in the CSV files.
  let folded = [];
  window.addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open], .long)")];
    folded.forEach((one) => { one.open = true; });
  });
  window.addEventListener("afterprint", () => { folded.forEach((one) => { one.open = false; }); });
  start();
})();
