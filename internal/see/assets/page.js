"use strict";
// The page of a process: polls /state and draws it, with what chart.js has. All texts from
// outside are set as text.

const every = 1000; // ms between looks
const byId = (id) => document.getElementById(id);

const show = (e, ...children) => e.replaceChildren(...children);

// changed reports whether a part of the state is not what it was: what is pointed at, or has
// the focus, is not drawn anew for nothing.
const before = {};
function changed(part, value) {
  const now = JSON.stringify(value), was = before[part];
  before[part] = now;
  return now !== was;
}

const num = (x, digits = 3) => figure(x, digits);
const rate = (x) => (x > 0 && x < 0.05 ? "<0.1" : num(x < 10 ? Math.round(x * 10) / 10 : Math.round(x))) + "/s";
const percent = (x) => (x === null || x === undefined ? "–" : (100 * x).toFixed(x < 0.1 || (x > 0.995 && x < 1) ? 1 : 0) + "%");
function span(s) {
  if (s === null || s === undefined) return "–";
  if (s < 1) return num(Math.round(s * 1000)) + " ms";
  if (s < 90) return num(s, 2) + " s";
  if (s < 5400) return Math.round(s / 60) + " min";
  if (s < 36 * 3600) return num(s / 3600, 2) + " h";
  return num(s / 86400, 2) + " d";
}
const clock = (t) => second(Date.parse(t) / 1000);

// table makes a table; each cell knows its column's name, which a narrow screen shows beside it.
const table = (names, rows) => make("table", {}, make("tr", {}, ...names.map((n) => make("th", { scope: "col" }, n))), ...rows.map((cells) => {
  cells.forEach((cell, i) => cell.setAttribute("data-name", names[i]));
  return make("tr", {}, ...cells);
}));

function drawHeader(s) {
  byId("model").textContent = s.model;
  document.title = (s.ready ? "" : "! ") + s.model + " – Hindsight";
  const status = byId("status");
  status.className = "pill " + (s.ready ? "good" : "bad");
  status.textContent = s.ready ? "ready" : "not ready: " + s.why;
  const mode = byId("mode");
  mode.hidden = !s.mode;
  mode.className = "pill " + (s.mode === "live" ? "" : "warn");
  mode.textContent = s.mode === "live" ? "live" : s.mode + ": the baseline answers";
  byId("verdict").textContent = s.verdict;
  const parts = [];
  if (s.deciders.length) parts.push("decides partition " + s.deciders.join(", "));
  if (s.joiner) parts.push("joins");
  byId("about").textContent = [s.program, parts.join(", "), "up " + span(s.up_seconds)].filter((x) => x).join(" · ");
  byId("version").textContent = s.version;
  byId("certlinks").hidden = s.program !== "decider";
}

function drawAlarms(s) {
  if (!changed("alarms", s.alarms)) return;
  const cards = s.alarms.filter((a) => a.firing || a.severity === "wake").map((a) => make("div", { class: "flag " + (a.firing ? (a.severity === "wake" ? "bad" : "warn") : "coming") },
    make("strong", {}, a.name), make("span", { class: "when" }, (a.firing ? "since " : "pending since ") + clock(a.since) + " UTC"),
    make("p", {}, a.says), make("p", {}, a.do)));
  if (!s.alarms.some((a) => a.firing)) {
    cards.unshift(make("p", { class: "flag " + (cards.length ? "warn" : "good") }, make("strong", {}, cards.length ? "No alarm yet" : "No alarm"), make("span", {}, "of those that one process can judge")));
  }
  cards.push(make("p", { class: "quiet" }, "Only Prometheus, which sees all processes, judges ", s.elsewhere.join(", "), "."));
  show(byId("alarms"), ...cards);
}

// The loop. It is built once; rates, texts and what is here change.
const loop = { flows: {}, texts: {}, boxes: {} };
function buildLoop() {
  const svg = byId("loop");
  const head = (x, y, turn) => make("polygon", { class: "head", points: "0,0 -9,-4.5 -9,4.5", transform: `translate(${x} ${y}) rotate(${turn})` });
  const arrow = (name, d, x, y, turn) => {
    svg.append(make("path", { class: "arrow", d }), head(x, y, turn));
    loop.flows[name] = svg.appendChild(make("path", { class: "flow off", d }));
  };
  const text = (name, x, y, kind, anchor) => {
    loop.texts[name] = svg.appendChild(make("text", { x, y, class: kind, "text-anchor": anchor || "middle" }));
  };
  const box = (name, x, y, w, h, title) => {
    loop.boxes[name] = svg.appendChild(make("rect", { class: "box", x, y, width: w, height: h, rx: 9 }));
    svg.append(make("text", { x: x + w / 2, y: y + 30, class: "name", "text-anchor": "middle" }, title));
    text(name + "1", x + w / 2, y + 52, "soft");
    text(name + "2", x + w / 2, y + 70, "soft");
  };
  arrow("topic", "M140 70 H228", 232, 70, 0);
  arrow("requests", "M140 130 H228", 232, 130, 0);
  arrow("decisions", "M412 100 H518", 522, 100, 0);
  arrow("outcomes", "M652 100 H748", 752, 100, 0);
  arrow("feedback", "M840 146 V206 H322 V150", 322, 146, -90);
  arrow("rejects", "M880 54 V26 H790", 786, 26, 180);
  for (const [name, y] of [["contexts", 70], ["requests", 130]]) svg.append(make("text", { x: 130, y: y + 4, "text-anchor": "end" }, name));
  box("decider", 232, 54, 180, 92, "decider");
  box("acts", 522, 54, 130, 92, "application");
  box("joiner", 752, 54, 176, 92, "joiner");
  loop.boxes.acts.classList.add("away");
  text("topic", 184, 61, "rate");
  text("requests", 184, 121, "rate");
  text("decisions", 466, 91, "rate");
  text("outcomes", 701, 91, "rate");
  text("feedback", 581, 197, "rate");
  text("rejects", 780, 31, "rate", "end");
  for (const [label, x, y] of [["decisions", 466, 120], ["outcomes", 701, 120], ["feedback, in the order of the decisions", 581, 225]]) {
    svg.append(make("text", { x, y, class: "soft", "text-anchor": "middle" }, label));
  }
  text("head", 581, 250, "soft");
}

const absent = (why) => (why ? "not at work now" : "not in this process");
// loopNames are what the list says in place of the picture, where there is no room for that.
const loopNames = { topic: "contexts by topic", requests: "contexts by request", decisions: "decisions", outcomes: "outcomes", rejects: "rejects", feedback: "feedback" };

function drawLoop(s) {
  const f = s.flow, w = s.waiting;
  const rates = { topic: f.topic_contexts, requests: f.requests, decisions: f.decisions, outcomes: f.outcomes, rejects: f.rejects, feedback: s.joiner ? f.feedback : f.learned };
  const decides = s.deciders.length > 0;
  if (!s.joiner) rates.outcomes = f.outcomes_by_request;
  const known = { topic: decides, requests: decides, decisions: decides, outcomes: s.joiner || f.outcomes_by_request > 0, feedback: true, rejects: true };
  for (const [name, x] of Object.entries(rates)) {
    loop.texts[name].textContent = known[name] ? rate(x) : "–";
    loop.flows[name].classList.toggle("off", !(x > 0));
  }
  loop.texts.rejects.textContent = "rejects " + rate(f.rejects);
  loop.flows.rejects.classList.add("bad");
  loop.boxes.decider.setAttribute("class", "box " + (decides ? "here" : "away"));
  loop.boxes.joiner.setAttribute("class", "box " + (s.joiner ? "here" : "away"));
  loop.texts.decider1.textContent = decides ? (w.contexts > 0 ? num(w.contexts) + " contexts wait" : "no context waits") : absent(s.idle.decider);
  loop.texts.decider2.textContent = decides ? num(w.outstanding) + " without feedback" : "";
  loop.texts.joiner1.textContent = s.joiner ? num(w.pending) + " rounds wait" : absent(s.idle.joiner);
  loop.texts.joiner2.textContent = s.joiner ? num(w.held) + " for earlier rounds" : "";
  const h = w.head;
  loop.texts.head.textContent = h ? `oldest open round: ${h.round} of partition ${h.partition}, for ${span(h.age_seconds)}` : "";
  const rows = Object.keys(rates).map((name) => [loopNames[name], loop.texts[name].textContent.replace("rejects ", "")]);
  for (const part of ["decider", "joiner"]) rows.push([part, [1, 2].map((i) => loop.texts[part + i].textContent).filter((x) => x).join(", ")]);
  show(byId("loop-list"), ...rows.flatMap(([k, v]) => [make("dt", {}, k), make("dd", {}, v)]));
  const lags = [];
  for (const part of ["decider", "joiner"]) if (s.idle[part]) lags.push(`The ${part} is not at work: ${s.idle[part]}`);
  if (w.feedback > 0) lags.push(num(w.feedback) + " feedback records are not yet learned");
  if (w.joiner > 0) lags.push(num(w.joiner) + (w.joiner === 1 ? " record is" : " records are") + " not yet read by the joiner");
  if (f.refused > 0) lags.push(num(f.refused, 2) + " requests a second fail");
  byId("loop-says").textContent = lags.join("; ") || (decides || s.joiner ? "Nothing lags behind." : "Neither a decider nor a joiner is at work here now.");
  if (w.provisional !== null) byId("loop-says").append(` Rounds learned early, before their feedback: ${num(w.provisional)}.`);
}

// A chart is made when there is something to draw.
const charts = {};
const plot = (id, c) => (charts[id] ? charts[id].set(c) : (charts[id] = chart({ id, ...c })));

// Loss over time, or reward where outcomes are rewards.
function drawLoss(s) {
  const l = s.losses;
  if (!changed("loss", l)) return;
  byId("loss-title").textContent = (l.of === "reward" ? "Reward" : "Loss") + " over time";
  const points = l.buckets.map((b, i) => ({ at: Date.parse(l.start) / 1000 + i * l.bucket_seconds, ...b })).filter((b) => b.rounds > 0);
  byId("loss-says").textContent = points.length ? `Means over intervals of ${span(l.bucket_seconds)}.` : `No round has its ${l.of} yet.`;
  if (points.length) plot("loss", { kind: "lines", x: { label: "time (UTC)", scale: "time" }, y: { label: `mean ${l.of} a round` }, at: points.map((b) => b.at),
    views: [{ series: [{ name: "played", y: points.map((b) => b.mean) }, { name: "uniform play (estimate)", y: points.map((b) => b.uniform_mean), aside: true }] }] });
}

// Budgets: what was spent, what is to come, and the price over the rounds.
function drawBudgets(s) {
  byId("budgets").hidden = !s.budgets.length;
  if (!changed("budgets", s.budgets) || !s.budgets.length) return;
  show(byId("budget-table"), table(["budget", "limit", "mean so far", "recent mean", "next 1,000 rounds", "price λ"], s.budgets.map((b) => [make("td", {}, b.name), make("td", {}, (b.at_least ? "≥ " : "≤ ") + num(b.limit)),
    make("td", { class: "state " + (b.missed ? "bad" : "good") }, b.rounds ? num(b.mean) : "–"), make("td", {}, b.late === null ? "–" : `${num(b.late)} ± ${num(b.error, 2)}`),
    make("td", {}, num(b.next)), make("td", {}, num(b.price))])));
  for (const [i, b] of s.budgets.entries()) {
    const id = i ? "budget-" + i : "budget", at = b.points.map((p) => p.rounds);
    if (!byId("chart-" + id)) byId("budget-table").before(budgetFigure(id));
    byId(id + "-title").textContent = s.budgets.length > 1 ? "Budget: " + b.name : "Budget";
    if (at.length > 1) plot(id, { kind: "lines", x: { label: "rounds whose cost was learned" }, y: { label: `${b.name} a round` }, at, views: [
      { name: "spent", series: [{ name: "mean", y: b.points.map((p) => p.mean) }, { name: "limit", y: at.map(() => b.limit), aside: true }] },
      { name: "price", series: [{ name: "price λ", y: b.points.map((p) => p.price) }] }] });
  }
}

// The figure of a further budget, like that of the first before anything is drawn in it.
const emptyFigure = byId("chart-budget").cloneNode(true);
function budgetFigure(id) {
  const f = emptyFigure.cloneNode(true);
  f.id = "chart-" + id;
  f.querySelector("h2").id = id + "-title";
  f.querySelector(".plot").setAttribute("aria-labelledby", id + "-title");
  return f;
}

// Candidates: what policies are worth on what was played, and whether one should take over.
function drawCandidates(s) {
  const c = s.candidates;
  byId("candidates").hidden = !c;
  if (!changed("candidates", c) || !c) return;
  const ends = (i) => `${num(i.mean)} (${num(i.low)} to ${num(i.high)})`;
  show(byId("candidates-table"), table(["candidate", "rounds", "loss", "gain over the played actions", ""], c.candidates.map((p) => [make("td", {}, p.policy), make("td", {}, num(p.rounds)),
    make("td", {}, p.rounds ? ends(p.loss) : "–"), make("td", {}, p.rounds ? ends(p.gain) : "–"), make("td", {}, p.beaten ? "beaten" : p.gain.low > 0 ? "better than the played actions" : "")])));
  const r = c.promote, says = [];
  if (r) says.push(r.feedback ? `${r.of} is better than the played actions by ${num(r.better_by)}: the rule has held since feedback ${r.feedback}.` : `The rule waits until ${r.of} is better than the played actions by ${num(r.better_by)}.`);
  if (c.without_loss) says.push(`${num(c.without_loss)} of ${num(c.rounds)} rounds have no loss. Assumption: ${c.assumes}.`);
  byId("candidates-says").textContent = says.join(" ");
  const at = c.points.map((p) => p.rounds), of = (i, end) => c.points.map((p) => p.losses[i][end]);
  if (at.length > 1) plot("candidates", { kind: "lines", x: { label: "final rounds" }, y: { label: "loss a round" }, at, views: c.candidates.map((p, i) => (
    { name: p.policy, series: [{ name: "estimate", y: of(i, "mean") }, { name: "lower end", y: of(i, "low"), aside: true }, { name: "upper end", y: of(i, "high"), aside: true }] })) });
}

function bars(into, rows, total) {
  show(into, make("div", { class: rows.some((r) => r[2] !== null && r[2] !== undefined) ? "rows valued" : "rows" }, ...rows.flatMap(([name, n, value, means]) => {
    const fill = make("div", { class: "fill" });
    fill.style.width = (total ? 100 * n / total : 0) + "%";
    const cells = [make("span", { class: "label", title: name }, name), make("div", { class: "track" }, fill), make("span", {}, percent(total ? n / total : 0))];
    return value === null || value === undefined ? cells : [...cells, make("span", { class: "value", title: means }, value)];
  })));
}

function drawActions(s) {
  if (!changed("actions", [s.actions, s.assigned, s.shadow, s.apprentice, s.losses.of])) return;
  const a = s.actions, means = a.most.some((x) => x.rounds > 0);
  const rows = a.most.map((x) => [x.action, x.decisions, means ? num(x.mean) : null, `mean ${s.losses.of} of ${num(x.rounds)} rounds`]);
  if (a.others) rows.push(["all others", a.others, means ? "" : null]);
  bars(byId("actions"), rows, a.decisions);
  byId("actions-says").textContent = (a.decisions ? `Share of the last ${num(a.decisions)} decisions in this process.` : "No decision yet.") + (means ? ` The last column is the mean ${s.losses.of} of the released rounds of an action.` : "") + assignedSays(s.assigned) + apprenticeSays(s.apprentice) + shadowSays(s.shadow);
}

// Rounds that another system decided.
const assignedSays = (x) => (x.rounds ? ` Other systems assigned ${num(x.rounds)} more; ${num(x.without_propensity)} of them have no propensity and are in no estimate.` : "");

// How near an apprentice is to its baseline.
const apprenticeSays = (x) => (x.rounds ? ` In apprentice mode (${num(x.rounds)} rounds), the learner agrees with the baseline with probability ${percent(x.match)} on average.` : "");

// How often the learner agrees with the baseline; the verdict says what that is worth.
function shadowSays(x) {
  if (!x.decisions) return "";
  return ` In shadow mode (${num(x.decisions)} of them), the learner agrees with the baseline with probability ${percent(x.agreement)} on average` +
    (x.gap === null && x.uncovered !== null ? `; the baseline never plays ${percent(x.uncovered)} of what the learner would play.` : ".");
}

function drawDelays(s) {
  if (!changed("delays", [s.delays, s.waiting.window_seconds])) return;
  const d = s.delays.seconds, r = s.delays.rounds;
  byId("delays-says").textContent = d.n === 0 ? "No outcome yet." : `Half of the outcomes come within ${span(d.p50)}, 90% within ${span(d.p90)}, 99% within ${span(d.p99)}; the window is ${s.waiting.window_seconds === null ? "in rounds, or not known here" : span(s.waiting.window_seconds)}. ` +
    `When a decision was made, ${num(r.p50)} earlier feedback records were outstanding (median; 99th percentile: ${num(r.p99)}).`;
  if (d.n) plot("delays", { kind: "bars", x: { label: "delay, at most" }, y: { label: "outcomes", zero: true }, names: d.buckets.map((b) => span(b.to)), at: d.buckets.map((b, i) => i),
    views: [{ series: [{ name: "outcomes", y: d.buckets.map((b) => b.n) }] }] });
}

// explained writes names with what they mean.
const explained = (pairs) => pairs.map(([name, means]) => `${name}: ${means}.`).join(" ");

const fates = { observed: "the outcome came within the window", imputed: "no outcome came, and the default loss of the model was learned", skipped: "no outcome came, and nothing was learned", withdrawn: "the client withdrew the round" };
function drawFates(s) {
  if (!changed("fates", [s.fates, s.refused, s.losses.join_ratio])) return;
  const names = Object.keys(fates), total = names.reduce((a, n) => a + (s.fates[n] || 0), 0);
  const stack = names.map((n, i) => {
    const part = make("span", { class: "k" + i });
    part.style.width = (total ? 100 * (s.fates[n] || 0) / total : 0) + "%";
    return part;
  });
  const rows = names.flatMap((n, i) => [make("dt", { title: fates[n] }, make("span", { class: "key k" + i }), n), make("dd", {}, num(s.fates[n] || 0))]);
  for (const [reason, n] of Object.entries(s.refused)) if (n > 0) rows.push(make("dt", {}, "rejected: " + reason), make("dd", {}, num(n)));
  byId("fates-means").textContent = explained(names.map((n) => [n, fates[n]])) + " Rejected records belong to no round.";
  show(byId("fates"), make("div", { class: "track" }, ...stack), make("dl", {}, ...rows));
  const j = s.losses.join_ratio;
  byId("fates-says").textContent = j === null ? "" : `Of the last rounds released ${percent(j)} had their outcome in time.`;
}

function drawExploration(s) {
  const e = s.exploration, rows = [["γ", num(e.gamma), "the larger γ, the less the learner explores"], ["least propensity", percent(e.floor), "the least probability of any action in the last decisions"],
    ["entropy", percent(e.entropy), "of the probabilities, as a share of that of uniform play: at 100% all actions are equally likely"],
    ["effective share for uniform play", percent(e.effective), "effective sample size of the dashed line in the loss chart, as a share of the last rounds"],
    ["largest importance weight", percent(e.largest), "of one round in that estimate, as a share of all weights"]];
  if (e.top_weight !== null) rows.push(["largest weight in the model", percent(e.top_weight), "of one function, policy or member"]);
  if (e.outside_values > 0) rows.push(["values out of range", num(e.outside_values), "since the start: feature values beyond the ranges of the model file"]);
  if (e.functions !== null) rows.push(["functions not refuted", `${num(e.surviving)} of ${num(e.functions)}`, "functions of the class that the data has not refuted"]);
  byId("exploration-means").textContent = explained(rows.map(([k, , means]) => [k, means])) + " By chance the evidence against correct draws ever reaches 10,000 with a probability of at most 1 in 10,000.";
  show(byId("exploration"), ...rows.flatMap(([k, v, title]) => [make("dt", { title }, k), make("dd", {}, v)]));
  const says = byId("draws-says");
  says.className = "quiet" + (e.refuted ? " bad" : "");
  says.textContent = e.draws === 0 ? "" : e.refuted ? "Draws do NOT follow their logged propensities: run replayer verify."
    : `${num(e.draws)} draws were checked against their logged propensities: evidence against them: at most ${num(e.evidence)} so far; the alarm fires at 10,000.`;
}

const boundNames = { plausible_set: "by the functions not refuted", measured: "measured", realised_loss: "by realised loss", measured_drift: "measured drift", a_priori: "a priori" };
const certificateAge = (s) => `computed ${Math.floor(s.certificate_age_seconds)} s ago; the rest of this page is of now.`;
const stateClass = { enforced: "good", holds: "good", measured: "good", "not needed": "good", "not refuted": "good", assumed: "warn", refuted: "bad", void: "bad" };
function drawCertificate(s) {
  const into = byId("certificate"), page = s.certificate;
  if (page && byId("certificate-age")) byId("certificate-age").textContent = certificateAge(s);
  if (!changed("certificate", page)) return;
  if (!page) {
    show(into, make("p", { class: "quiet" }, "The page of a decider shows bounds on the regret. No decider runs here."));
    return;
  }
  const c = page.certificate, rows = [];
  for (const [key, name] of Object.entries(boundNames)) {
    const b = c[key];
    if (b) rows.push(make("tr", {}, make("td", {}, name), make("td", { class: "state" }, b.void ? "void" : b.value === null ? "none" : num(b.value, 4)),
      make("td", { class: b.void ? "bad" : b.vacuous ? "warn" : "good" }, b.void ? b.void : b.vacuous ? "vacuous: not below the number of rounds" : `${num(b.value / c.t, 2)} a round`)));
  }
  const parts = [make("p", { class: "quiet" }, `Bounds on the regret (${s.losses?.of === "reward" ? "missed reward: 1 is the whole range" : "loss above the best"}) of ${num(c.t || 0)} rounds of epoch ${page.epoch}, `, make("span", { id: "certificate-age" }, certificateAge(s)))];
  if (rows.length) parts.push(make("table", {}, ...rows));
  if (c.assumptions && c.assumptions.length) {
    parts.push(make("h3", {}, "Assumptions"), make("table", {}, ...c.assumptions.map((a) => make("tr", {}, make("td", {}, a.assumption),
      make("td", { class: "state " + (stateClass[a.state] || "") }, a.state), make("td", {}, a.detail)))));
  }
  for (const n of c.notes || []) parts.push(make("p", { class: "quiet" }, n + "."));
  show(into, ...parts);
}

function drawRejects(s) {
  if (!changed("rejects", s.rejects)) return;
  const into = byId("rejects");
  if (s.rejects.length === 0) {
    show(into, make("p", { class: "quiet" }, "None since this process started."));
    return;
  }
  show(into, table(["when (UTC)", "record", "round", "reason", "detail"], s.rejects.map((r) => [make("td", { title: r.time }, clock(r.time)), make("td", {}, `${r.topic}[${r.partition}]@${r.offset}`),
    make("td", { class: "id" }, r.id ? make("button", { class: "link", type: "button", onclick: () => explain(r.id) }, r.id) : "–"), make("td", { class: "state" }, r.reason), make("td", { title: r.means }, r.detail || r.means)])));
}

async function explain(id) {
  byId("id").value = id;
  byId("life").hidden = false;
  const story = byId("story");
  story.textContent = "reading the logs…";
  try {
    const answer = await fetch("explain?format=text&id=" + encodeURIComponent(id), { cache: "no-store" });
    const text = await answer.text();
    story.textContent = answer.ok ? text : JSON.parse(text).error.message;
  } catch (e) {
    story.textContent = "the process does not answer";
  }
  byId("life").scrollIntoView({ behavior: "smooth", block: "nearest" });
}

async function look() {
  try {
    const answer = await fetch("state", { cache: "no-store" });
    if (!answer.ok) throw new Error("answer " + answer.status);
    const s = await answer.json();
    document.body.classList.remove("stale");
    for (const draw of [drawHeader, drawAlarms, drawLoop, drawLoss, drawBudgets, drawCandidates, drawActions, drawDelays, drawFates, drawExploration, drawCertificate, drawRejects]) draw(s);
    document.body.dataset.looks = String(Number(document.body.dataset.looks || 0) + 1);
  } catch (e) {
    document.body.classList.add("stale");
    byId("status").className = "pill bad";
    byId("status").textContent = "the process does not answer";
  }
  setTimeout(look, every);
}

buildLoop();
byId("ask").addEventListener("submit", (e) => { e.preventDefault(); explain(byId("id").value.trim()); });
look();
