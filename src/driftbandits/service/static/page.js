"use strict";
// The page refreshes itself from the same paths that programs use. Names are hostile: they only ever become text.

const EVERY = 5000; // milliseconds
const SHOWN = 12; // arms before "show all"
const OLD = 10; // seconds: a count of the journal that is older says so
const COLOURS = ["#2f6fae", "#d9822b", "#3d9970", "#b23b2e", "#7d5ba6", "#8c6d46", "#d06a9f", "#7f8c8d"];
const root = document.querySelector("[data-page]");
let all = false;

const by = (id) => document.getElementById(id);
const there = (name) => "/v1/experiments/" + encodeURIComponent(name);

function make(kind, text, cls) {
  const node = document.createElement(kind);
  if (text !== undefined && text !== null) node.textContent = text;
  if (cls) node.className = cls;
  return node;
}

// Whoever has the focus keeps it: what is refreshed is the same node, or has the focus again once it is back.
function fill(node, ...children) {
  const same = children.length === node.children.length && children.every((child, k) => child === node.children[k]);
  if (same) return node;
  const focused = document.activeElement;
  node.replaceChildren(...children);
  if (focused !== document.activeElement && node.contains(focused)) focused.focus({ preventScroll: true });
  return node;
}

// Only what differs is set: what is read aloud is read once.
function renew(node, ...children) {
  const next = fill(node.cloneNode(false), ...children);
  if (next.innerHTML !== node.innerHTML) node.replaceChildren(...next.childNodes);
  return node;
}

function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
  return node;
}

function table(title, columns) {
  const node = make("table");
  const head = make("tr", null, "head");
  for (const [text, cls] of columns) {
    head.append(make(text ? "th" : "td", text, cls));
    if (text) head.lastChild.scope = "col";
  }
  node.append(make("caption", title, "unseen"), fill(make("thead"), head), make("tbody"));
  return node;
}

function named(name, cls) {
  const node = make("th", shortened(name, 120), cls);
  node.title = name;
  node.scope = "row";
  return node;
}

async function get(path) {
  const answer = await fetch(path, { headers: { accept: "application/json" }, cache: "no-store" });
  if (answer.status === 401) window.location.assign("/login");
  const content = await answer.json();
  if (!answer.ok) throw new Error(content.detail || String(answer.status));
  return content;
}

async function post(path, body) {
  const headers = { "content-type": "application/json", "x-csrf-token": root.dataset.token };
  const answer = await fetch(path, { method: "POST", headers, body: JSON.stringify(body) });
  if (!answer.ok) window.alert((await answer.json()).detail);
  await refresh();
}

// --- words and numbers ---------------------------------------------------------------------------------------------

const count = (value) => Math.round(value).toLocaleString("en");
const percent = (value) => (value > 0.999 ? "> 99.9 %" : value >= 0.99 ? (100 * value).toFixed(1) + " %" : value >= 0.1 ? (100 * value).toFixed(0) + " %" : value >= 0.001 ? (100 * value).toFixed(1) + " %" : "< 0.1 %");
const when = (seconds) => new Date(1000 * seconds).toLocaleString([], { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" });

function number(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size !== 0 && size < 0.001) return value.toExponential(1);
  return String(Number(value.toPrecision(3)));
}

const shortened = (name, most = 60) => (name.length > most ? name.slice(0, most - 1) + "…" : name);

function duration(seconds) {
  for (const [size, one, many] of [[86400, "day", "days"], [3600, "hour", "hours"], [60, "minute", "minutes"]]) {
    const whole = Math.round(seconds / size);
    if (whole >= 1 && seconds >= size) return whole + " " + (whole === 1 ? one : many);
  }
  return "less than a minute";
}

// --- the list ------------------------------------------------------------------------------------------------------

async function showList() {
  const rows = (await get("/v1/experiments")).experiments;
  if (!rows.length) {
    const pre = make("pre", `curl ${location.origin}/v1/experiments -H 'Content-Type: application/json' \\\n  -d '{"name": "prices", "arms": ["9 EUR", "12 EUR", "14 EUR"]}'`);
    const section = fill(make("section"), make("h2", "No experiments yet: here is how to make one"), pre);
    fill(root, section);
    return "up to date";
  }
  const columns = [["experiment", ""], ["state", ""], ["arms", "number wide"], ["decisions", "number"], ["rewards", "number wide"], ["changes", "number"], ["last event", "number wide"]];
  const list = document.querySelector("#list table") || table("Experiments", columns);
  const focused = document.activeElement.href;
  fill(list.tBodies[0], ...rows.map(listRow));
  if (focused) [...list.querySelectorAll("a")].find((link) => link.href === focused)?.focus({ preventScroll: true });
  if (!list.isConnected) fill(root, fill(make("section"), list));
  return "up to date";
}

function listRow(row) {
  const line = make("tr");
  const link = make("a", shortened(row.name, 120));
  link.href = "/experiments/" + encodeURIComponent(row.name);
  const mode = row.here || row.trouble ? row.mode : "on another server";
  line.append(fill(named(row.name, "name"), link), fill(make("td"), make("span", mode, "badge " + (row.mode || ""))));
  line.append(make("td", row.arms === undefined ? "–" : count(row.arms), "number wide"));
  for (const key of ["decisions", "rewards", "changes"]) line.append(make("td", row[key] === undefined ? "–" : count(row[key]), key === "rewards" ? "number wide" : "number"));
  line.append(make("td", row.time ? when(row.time) : "–", "number wide"));
  return line;
}

// --- one experiment ------------------------------------------------------------------------------------------------

async function showOne() {
  const path = there(root.dataset.name);
  const [summary, changes, history] = await Promise.all([get(path + "/summary"), get(path + "/changes"), get(path + "/history?points=150")]);
  const requests = summary.contexts ? await get(path + "/contexts") : null;
  showHeading(summary, path, changes.changes);
  showFirst(summary, path);
  showArms(summary, path);
  showRequests(requests, summary);
  showRewards(summary, history, changes.changes);
  showPlayed(summary, history, changes.changes);
  showChanges(changes.changes, summary);
  showCounts(summary);
  showPace(summary);
  return history.age < OLD ? "up to date" : "up to date but for the charts";
}

function showHeading(summary, path, changes) {
  const words = { running: "the policy decides", paused: "paused: the fallback decides", fallback: "the fallback decides" };
  by("mode").className = "badge " + summary.mode;
  say(by("mode"), words[summary.mode]);
  say(by("answer"), answer(summary) + (summary.leaders.length && closed(summary) ? lastChange(changes) : ""));
  renew(by("health"), ...summary.health.map((sentence) => make("li", sentence)));
  if (root.dataset.admin === "yes") showSteering(summary, path);
}

function showSteering(summary, path) {
  const steering = by("steering");
  if (!steering.childElementCount) {
    const pause = button("Pause", () => post(path + (steering.dataset.mode === "paused" ? "/resume" : "/pause"), {}));
    const restart = button("Restart", () => window.confirm("Begin anew, with nothing learned?") && post(path + "/restart", {}));
    fill(steering, pause, restart);
  }
  steering.dataset.mode = summary.mode;
  say(steering.children[0], summary.mode === "paused" ? "Resume" : "Pause");
  steering.children[1].hidden = summary.mode !== "fallback";
}

const closed = (summary) => summary.rewards + summary.expired;

function answer(summary) {
  if (!summary.leaders.length || !closed(summary)) return summary.decisions ? "Nothing is known yet: no reward has come." : "Nothing was decided yet.";
  return summary.segments === null ? led(summary.leaders[0], summary) : ledBySegment(summary);
}

function lastChange(changes) {
  if (!changes.length) return " No change was found so far.";
  const times = changes.length === 1 ? "One change was found" : `${count(changes.length)} changes were found, the last`;
  return ` ${times} on ${when(changes[changes.length - 1].time)}.`;
}

function led(leader, summary) {
  const rows = summary.arms.filter((one) => !one.retired);
  const arm = rows.find((one) => one.name === leader.arm);
  const interval = arm.low === null ? "" : ` (${number(arm.low)} to ${number(arm.high)})`;
  const gives = `expected to give ${number(arm.estimate)}${interval}`;
  if (rows.length === 1) return `${shortened(arm.name)} is the only arm: it is ${gives}.`;
  const lasts = leader.since === null ? "leads" : `has led for ${duration(summary.last_decision - leader.since)}`;
  const sure = leader.probability === null ? "" : `, and is the best with a probability of ${percent(leader.probability)}`;
  const most = rows.reduce((a, b) => (b.probability > a.probability ? b : a));
  const played = summary.mode !== "running" ? "" : ` ${most.name === leader.arm ? "It" : shortened(most.name)} is played most, in ${percent(most.probability)} of decisions.`;
  const over = summary.contexts ? " on average over the latest requests" : "";
  return `${shortened(leader.arm)} ${lasts}${over}: it is ${gives}${sure}.${played}`;
}

function ledBySegment(summary) {
  const leaders = summary.leaders.slice(0, 3).map((leader) => `${shortened(leader.arm, 30)} in ${shortened(leader.segment, 30)}` + (leader.probability === null ? "" : ` (${percent(leader.probability)} sure)`));
  const more = summary.leaders.length > 3 ? `, and so on in ${summary.leaders.length - 3} more segments` : "";
  return `Best: ${leaders.join(", ")}${more}.`;
}

function button(text, act) {
  const node = make("button", text);
  node.addEventListener("click", async () => {
    if (node.dataset.busy) return; // not disabled: that would take the focus away
    node.dataset.busy = "yes";
    try { await act(); } finally { delete node.dataset.busy; }
  });
  return node;
}

function showFirst(summary, path) {
  const box = by("first");
  box.hidden = closed(summary) > 0;
  if (box.hidden || box.childElementCount) return;
  const json = "-H 'Content-Type: application/json'";
  const asked = summary.contexts ? JSON.stringify({ context: exampleOf(summary.contexts) }) : "{}";
  const lines = [`curl ${location.origin}${path}/decisions ${json} -d '${asked.replaceAll("'", "'\\''")}'`, `curl ${location.origin}${path}/rewards ${json} -d '{"id": "the id that came back", "reward": ${summary.reward_range[1]}}'`];
  fill(box, make("h2", "No rewards yet: here is how to send one"), make("p", "Ask for a decision, play its arm, and send what it brought:"), make("pre", lines.join("\n")), make("p", "With keys, add -H 'Authorization: Bearer KEY'."));
}

// A context as the experiment declares it, for the first request.
function exampleOf(contexts) {
  if (typeof contexts === "number") return Array(Math.min(contexts, 8)).fill(0);
  const columns = Object.entries(contexts).filter(([, spec]) => spec.optional === undefined);
  return Object.fromEntries(columns.map(([name, spec]) => [name, valueOf(spec)]));
}

function valueOf(spec) {
  if (Array.isArray(spec)) return typeof spec[0] === "string" ? spec[0] : (spec[0] + spec[1]) / 2;
  if (spec === "boolean") return true;
  return spec.vector === undefined ? 0 : Array(Math.min(spec.vector, 8)).fill(0);
}

function showArms(summary, path) {
  const value = (arm) => (arm.retired ? -Infinity : arm.estimate === null ? -1e300 : arm.estimate);
  const arms = [...summary.arms].sort((a, b) => value(b) - value(a) || b.probability - a.probability);
  const shown = all ? arms : arms.slice(0, SHOWN);
  const known = arms.filter((arm) => !arm.retired && arm.estimate !== null);
  let low = Math.min(...known.map((arm) => (arm.low === null ? arm.estimate : arm.low)));
  let high = Math.max(...known.map((arm) => (arm.high === null ? arm.estimate : arm.high)));
  if (!(high > low)) [low, high] = summary.reward_range;
  const most = Math.max(...arms.map((arm) => arm.probability), 1e-9);
  const columns = [["arm", "first"], ["probability", "middle"], ["", "blank"], ["expected reward", "last"], ["", "blank"], ["played", "number wide"], ["", "blank"]];
  const box = by("arms");
  if (!box.childElementCount) box.append(table("Arms, as they are played now", columns), button("", async () => { all = !all; await refresh(); }));
  const [list, more] = box.children;
  say(list.querySelector("th.last"), `expected reward, ${number(low)} to ${number(high)}`);
  fill(list.tBodies[0], ...shown.map((arm) => armRow(arm, summary, path, { low, high, most })));
  more.hidden = arms.length <= SHOWN;
  say(more, all ? `Show the first ${SHOWN}` : `Show all ${arms.length} arms`);
}

const rows = new Map(); // lines of the table, by arm: they stay, so that a refresh takes neither a click nor the focus

function armRow(arm, summary, path, scale) {
  const name = arm.segment === null ? arm.name : `${arm.name} in ${arm.segment}`;
  const key = JSON.stringify([arm.name, arm.segment]);
  if (!rows.has(key)) rows.set(key, emptyRow(name, arm, path));
  const line = rows.get(key);
  const [, bar, share, range, estimate, plays, steer] = line.children;
  const leads = summary.leaders.some((one) => one.arm === arm.name && one.segment === arm.segment);
  line.className = arm.retired ? "retired" : leads ? "leads" : "";
  bar.querySelector("span").style.width = (100 * arm.probability) / scale.most + "%";
  say(share, arm.retired ? "retired" : percent(arm.probability));
  showRange(range.firstChild, arm, scale);
  say(estimate, number(arm.estimate));
  say(plays, count(arm.plays));
  const act = steer.firstChild;
  if (!act) return line;
  act.dataset.retired = arm.retired ? "yes" : "no";
  say(act, arm.retired ? "bring back" : "retire");
  act.setAttribute("aria-label", `${act.textContent} ${arm.name}`);
  return line;
}

function emptyRow(name, arm, path) {
  const line = make("tr");
  const bar = fill(make("div", null, "bar"), make("span"));
  const range = fill(make("div", null, "range"), make("i"), make("b"));
  for (const drawn of [bar, range]) drawn.setAttribute("aria-hidden", "true"); // the numbers stand beside them
  const steer = make("td", null, "number steer");
  line.append(named(name, "name"), fill(make("td"), bar), make("td", "", "number"), fill(make("td"), range), make("td", "", "number"), make("td", "", "number wide"), steer);
  if (root.dataset.admin === "yes") steer.append(button("retire", () => steerArm(steer.firstChild, arm.name, path)));
  return line;
}

async function steerArm(act, name, path) {
  if (act.dataset.retired === "yes") return post(path + "/arms", { bring_back: [name] });
  const sure = window.confirm(`Retire ${shortened(name)}? It is not played any more until it is brought back.`);
  return sure ? post(path + "/arms", { retire: [name] }) : undefined;
}

function showRange(range, arm, { low, high }) {
  const [span, middle] = range.children;
  const place = (value) => Math.min(Math.max((100 * (value - low)) / (high - low), 0), 100);
  middle.hidden = arm.estimate === null || arm.retired;
  span.hidden = middle.hidden || arm.low === null;
  if (!span.hidden) {
    span.style.left = place(arm.low) + "%";
    span.style.width = Math.max(place(arm.high) - place(arm.low), 0.5) + "%";
  }
  if (!middle.hidden) middle.style.left = `calc(${place(arm.estimate)}% - 1px)`;
}

// --- charts --------------------------------------------------------------------------------------------------------

const dates = (seconds) => seconds.map((value) => new Date(1000 * value));

// A change is marked where it was found, and shaded from where it began.
function marks(change) {
  const [from, to] = [new Date(1000 * change.began), new Date(1000 * change.time)];
  const all = { xref: "x", yref: "paper", x1: to, y0: 0, y1: 1 };
  const shade = { ...all, type: "rect", x0: from, fillcolor: "#b23b2e", opacity: 0.08, line: { width: 0 } };
  return [shade, { ...all, type: "line", x0: to, line: { color: "#b23b2e", width: 1.5, dash: "dot" } }];
}

function layout(range, changes, more) {
  const narrow = window.innerWidth < 700;
  return {
    margin: { l: narrow ? 40 : 56, r: 12, t: 8, b: 36 },
    font: { family: "system-ui, sans-serif", size: 12, color: "#1d2733" },
    paper_bgcolor: "white",
    plot_bgcolor: "white",
    shapes: changes.slice(-100).flatMap(marks),
    hovermode: "x unified",
    xaxis: { type: "date", gridcolor: "#eef1f4", nticks: narrow ? 4 : 8, range },
    legend: { orientation: "h", y: -0.2, x: 0, traceorder: "normal" },
    ...more,
  };
}

// Both charts have one time axis: from the first decision to the last.
function span(summary, history) {
  const first = Math.min(...history.rewards.map((point) => point.begin), ...history.times);
  return dates([first, Math.max(summary.last_decision, first + 1)]);
}

function draw(id, words, traces, shape) {
  const node = by(id);
  if (node.classList.contains("empty")) node.textContent = "";
  node.classList.remove("empty");
  node.setAttribute("role", "img");
  node.setAttribute("aria-label", words);
  Plotly.react(node, traces, shape, { displayModeBar: false, responsive: true });
}

function empty(id, text) {
  const node = by(id);
  if (window.Plotly) Plotly.purge(node);
  node.classList.add("empty");
  node.removeAttribute("role");
  node.removeAttribute("aria-label");
  say(node, text);
}

// Counting takes long under load or of a long journal; then it is done less often.
const aged = (history) => (history.age < OLD ? "" : ` Counted ${history.age < 60 ? Math.round(history.age) + " s" : duration(history.age)} ago.`);

function noRewards(summary) {
  if (!closed(summary)) return "No rewards yet.";
  return `${count(summary.rewards)} rewards have come. What decisions brought is shown once each has its reward or has waited for it` + (summary.patience === null ? "." : ` (${duration(summary.patience)}).`);
}

// --- contexts ------------------------------------------------------------------------------------------------------

function showRequests(requests, summary) {
  const section = by("requests");
  section.hidden = requests === null;
  if (section.hidden) return;
  if (!closed(summary)) return say(by("request-note"), "Nothing is known yet: no reward has come.");
  const matter = Object.entries(requests.columns).filter(([, weight]) => weight >= 0.5);
  const names = matter.sort((a, b) => b[1] - a[1]).map(([name, weight]) => `${shortened(name, 40)} (${percent(weight)} sure)`);
  const some = names.length > 6 ? [...names.slice(0, 6), `${names.length - 6} more`] : names;
  const depends = some.length ? `Rewards depend on ${some.join(", ")}.` : "As far as can be told, rewards do not depend on the context.";
  const shown = requests.slices.length ? " Below, what the arms are expected to give by column, the others being as in the latest requests." : "";
  say(by("request-note"), (Object.keys(requests.columns).length ? depends : "The policy does not say which columns matter.") + shown);
  const box = by("slices");
  const columns = requests.slices.map((slice) => slice.column).join("\n");
  if (box.dataset.columns !== columns) {
    box.dataset.columns = columns;
    fill(box, ...requests.slices.map(emptySlice));
  }
  requests.slices.forEach((slice, k) => (slice.kind === "number" ? drawCurve(slice, k) : fillCategories(slice, box.children[k])));
}

function emptySlice(slice, k) {
  const box = fill(make("div"), make("h3", shortened(slice.column)));
  if (slice.kind === "number") {
    box.append(make("div", null, "chart small"));
    box.lastChild.id = `slice-${k}`;
  } else box.append(table(`The arm with the highest expected reward, by ${slice.column}`, [[slice.column, ""], ["best", ""], ["expected reward", "number"]]));
  return box;
}

const valued = (value) => (value === null ? "missing" : value === true ? "yes" : value === false ? "no" : String(value));

function fillCategories(slice, box) {
  const lines = slice.values.map((value, k) => {
    const line = make("tr");
    line.append(named(valued(value), "name"), make("td", shortened(slice.best[k]), "arm"), make("td", number(slice.highest[k]), "number"));
    return line;
  });
  renew(box.querySelector("tbody"), ...lines);
}

function drawCurve(slice, k) {
  const safe = (name) => shortened(name, 24).replace(/</g, "‹").replace(/>/g, "›");
  const traces = slice.arms.map((arm, place) => ({ x: slice.values, y: slice.estimate[place], mode: "lines", line: { color: COLOURS[place], width: 2 }, name: safe(arm), hovertemplate: "%{y:.4g}" }));
  const axis = { gridcolor: "#eef1f4", tickformat: "~g", automargin: true };
  const last = slice.best.length - 1;
  const words = `Expected rewards over ${shortened(slice.column)}: ${shortened(slice.best[0])} is best at ${number(slice.values[0])}, ${shortened(slice.best[last])} at ${number(slice.values[last])}`;
  draw(`slice-${k}`, words, traces, layout(undefined, [], { xaxis: axis, yaxis: axis, showlegend: true, legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 } }));
}

function showRewards(summary, history, changes) {
  const note = by("reward-note");
  if (!history.rewards.length) {
    say(note, aged(history).trim());
    return empty("rewards", noRewards(summary));
  }
  const points = history.rewards;
  const x = dates(points.map((point) => (point.begin + point.end) / 2));
  const per = count(points.reduce((sum, point) => sum + point.count, 0) / points.length);
  say(note, `Mean of about ${per} decisions per point, by when they were made, with its 95 % band` + (changes.length ? "; dotted: changes found, shaded from where they began." : ".") + aged(history));
  const hidden = { mode: "lines", line: { width: 0 }, showlegend: false, hoverinfo: "skip" };
  const traces = [
    { x, y: points.map((point) => point.low), ...hidden },
    { x, y: points.map((point) => point.high), ...hidden, fill: "tonexty", fillcolor: "rgba(47,111,174,.18)" },
    { x, y: points.map((point) => point.mean), mode: "lines+markers", marker: { size: 4 }, line: { color: COLOURS[0], width: 2 }, name: "mean reward", hovertemplate: "%{y:.4g}<extra></extra>" },
  ];
  const words = `Mean reward over time: first ${number(points[0].mean)}, last ${number(points[points.length - 1].mean)}`;
  return draw("rewards", words, traces, layout(span(summary, history), changes, { showlegend: false, yaxis: { gridcolor: "#eef1f4", tickformat: "~g", automargin: true } }));
}

function showPlayed(summary, history, changes) {
  if (history.times.length < 2) return empty("played", "Not enough decisions yet.");
  const x = dates(history.times);
  const segments = summary.segments === null ? 1 : summary.segments.length; // each has probabilities of its own
  const laws = history.probability.map((row) => row.map((value) => (value || 0) / segments));
  const share = history.arms.map((_, arm) => laws.reduce((sum, row) => sum + row[arm], 0));
  const order = history.arms.map((_, arm) => arm).sort((a, b) => share[b] - share[a]);
  const narrow = window.innerWidth < 700;
  const top = order.slice(0, narrow ? 4 : COLOURS.length - 1);
  const short = (name) => shortened(name, narrow ? 20 : 28).replace(/</g, "‹").replace(/>/g, "›");
  const style = { mode: "lines", stackgroup: "one", line: { width: 0.5 } };
  const traces = top.map((arm, k) => ({ x, y: laws.map((row) => row[arm]), name: short(history.arms[arm]), fillcolor: COLOURS[k], ...style, line: { width: 0.5, color: COLOURS[k] }, hovertemplate: "%{y:.0%}" }));
  if (order.length > top.length) {
    const rest = laws.map((row) => Math.max(1 - top.reduce((sum, arm) => sum + row[arm], 0), 0));
    traces.push({ x, y: rest, name: `${order.length - top.length} others`, fillcolor: "#c9d1d9", ...style, line: { width: 0.5, color: "#c9d1d9" }, hovertemplate: "%{y:.0%}" });
  }
  const words = `Probabilities over time; played most: ${top.slice(0, 3).map((arm) => shortened(history.arms[arm])).join(", ")}`;
  return draw("played", words, traces, layout(span(summary, history), changes, { yaxis: { range: [0, 1], tickformat: ".0%", gridcolor: "#eef1f4" } }));
}

// --- the rest ------------------------------------------------------------------------------------------------------

const wordy = (value) => (value >= 1e6 ? "more than a million" : count(Number(value.toPrecision(2))));

function sentence(change) {
  if (change.stream === "arms changed") return `Arms were changed, and the policy began anew: it forgot ${change.forgot}.`;
  const names = change.names.length ? change.names : change.arms.map((arm) => `arm ${arm}`);
  const given = names.map((name, k) => [name, change.before[k], change.after[k]]);
  const rows = given.length ? given : change.seen.map((arm) => [arm.name, arm.before, arm.after]);
  rows.sort((a, b) => Math.abs(b[2] - b[1]) - Math.abs(a[2] - a[1]));
  const moves = rows.slice(0, 3).map(([name, before, after]) => `${shortened(name)} ${after > before ? "rose" : "fell"} from ${number(before)} to ${number(after)}`);
  const more = rows.length > 3 ? ` and ${rows.length - 3} more` : "";
  const what = moves.length ? `: ${moves.join(", ")}${more}` + (given.length ? "" : ", by what was expected before and after") : "";
  const odds = change.odds > 0 ? `, at odds of ${wordy(change.odds)} to one` : "";
  const part = change.part ? ` for ${shortened(change.part, 120)},` : "";
  return `What pays${part} has changed since about ${when(change.began)}${what}. It was found ${duration(change.time - change.began)} later${odds}.`;
}

function showChanges(changes, summary) {
  const none = closed(summary) ? "No change was found so far. One that is small or recent may still be." : "None: no reward has come yet.";
  if (!changes.length) return renew(by("changes"), make("li", none));
  const newest = [...changes].reverse().slice(0, 20);
  const lines = newest.map((change) => {
    const line = fill(make("li"), make("time", when(change.time)), document.createTextNode(" " + sentence(change)));
    line.title = change.sentence;
    return line;
  });
  if (changes.length > 20) lines.push(make("li", `and ${changes.length - 20} before`));
  return renew(by("changes"), ...lines);
}

function showCounts(summary) {
  const rows = [
    ["decisions", summary.decisions],
    ["rewards that came", summary.rewards],
    ["open: a reward may still come", summary.open],
    [summary.patience === null ? "missing (no patience is set)" : `missing after ${duration(summary.patience)}` + (typeof summary.missing === "number" ? `, counted as ${summary.missing}` : ""), summary.expired],
    ...(summary.held ? [["held until earlier decisions are closed", summary.held]] : []),
    ["late: came after that", summary.late],
    ["forgotten", summary.forgotten],
    ["decided by the fallback", summary.fallbacks],
    ["restarts of the policy", summary.restarts],
  ];
  fill(by("counts"), ...rows.flatMap(([name, value]) => [make("dt", name), make("dd", count(value))]));
}

function showPace(summary) {
  if (!summary.pace) return fill(by("pace"), make("p", `${summary.policy} does not say.`));
  const { memory, since, since_round: begun, suspected, suspected_since: doubt } = summary.pace;
  const likeliest = memory.reduce((a, b) => (b.weight > a.weight ? b : a));
  const still = begun ? `It has been as it is since about ${when(since)}.` : "No change was found since it began.";
  const lines = [likeliest.rounds === null ? still : `It drifts: what is older than about ${count(likeliest.rounds)} decisions counts little.`];
  const changed = `changed${begun ? " again" : ""} around ${when(doubt)}: ${percent(suspected)} likely, not enough to be called a change.`;
  if (suspected >= 0.5) lines[0] = `It has probably ${changed}`;
  else if (suspected >= 0.05) lines.push(`It may have ${changed}`);
  const scales = table("Time scales, and how likely each is", []);
  scales.className = "memory";
  for (const row of memory.slice().reverse()) {
    const bar = fill(make("div", null, "bar"), make("span"));
    bar.firstChild.style.width = 100 * row.weight + "%";
    bar.setAttribute("aria-hidden", "true");
    const label = row.rounds === null ? "it stands still between changes" : `it drifts, over ${count(row.rounds)} decisions`;
    const line = make("tr");
    line.append(named(label), fill(make("td"), bar), make("td", percent(row.weight), "number"));
    scales.tBodies[0].append(line);
  }
  return fill(by("pace"), ...lines.map((line) => make("p", line)), scales);
}

// --- again and again -----------------------------------------------------------------------------------------------

let running = false;

async function refresh() {
  if (running) return;
  running = true;
  try {
    const state = await (root.dataset.page === "one" ? showOne() : showList());
    document.body.dataset.ready = "yes";
    fresh(state, "fresh");
  } catch (error) {
    fresh(error instanceof TypeError ? "the server is away; trying again" : error.message, "fresh away");
  } finally {
    running = false;
  }
}

function fresh(words, cls) {
  by("fresh").className = cls;
  say(by("fresh"), words);
}

if (root) {
  say(by("zone"), `Times are of ${Intl.DateTimeFormat().resolvedOptions().timeZone}.`);
  refresh();
  setInterval(() => { if (!document.hidden) refresh(); }, EVERY);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
}
