"use strict";
// The page refreshes itself from the same paths that programs use. Names are hostile: they only ever become text.

const EVERY = 5000; // milliseconds
const SHOWN = 12; // arms before "show all"
const COLOURS = ["#2f6fae", "#d9822b", "#3d9970", "#b23b2e", "#7d5ba6", "#8c6d46", "#d06a9f", "#7f8c8d"];
const root = document.querySelector("[data-page]");
let updated = 0;
let all = false;

const by = (id) => document.getElementById(id);
const there = (name) => "/v1/experiments/" + encodeURIComponent(name);

function make(kind, text, cls) {
  const node = document.createElement(kind);
  if (text !== undefined && text !== null) node.textContent = text;
  if (cls) node.className = cls;
  return node;
}

function fill(node, ...children) {
  node.replaceChildren(...children);
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
    return fill(root, section);
  }
  const table = make("table");
  const head = make("tr");
  for (const [text, cls] of [["experiment", ""], ["state", ""], ["arms", "number wide"], ["decisions", "number"], ["rewards", "number wide"], ["changes", "number"], ["last event", "number wide"]]) head.append(make("th", text, cls));
  table.append(head);
  for (const row of rows) {
    const line = make("tr");
    const link = make("a", row.name);
    link.href = "/experiments/" + encodeURIComponent(row.name);
    const mode = row.here || row.trouble ? row.mode : "on another server";
    line.append(fill(make("td", "", "name"), link), fill(make("td"), make("span", mode, "badge " + (row.mode || ""))));
    line.append(make("td", row.arms === undefined ? "–" : count(row.arms), "number wide"));
    for (const key of ["decisions", "rewards", "changes"]) line.append(make("td", row[key] === undefined ? "–" : count(row[key]), key === "rewards" ? "number wide" : "number"));
    line.append(make("td", row.time ? when(row.time) : "–", "number wide"));
    table.append(line);
  }
  return fill(root, fill(make("section"), table));
}

// --- one experiment ------------------------------------------------------------------------------------------------

async function showOne() {
  const path = there(root.dataset.name);
  const [summary, changes, history] = await Promise.all([get(path + "/summary"), get(path + "/changes"), get(path + "/history?points=150")]);
  showHeading(summary, path, changes.changes);
  showFirst(summary, path);
  showArms(summary, path);
  showRewards(summary, history, changes.changes);
  showPlayed(summary, history, changes.changes);
  showChanges(changes.changes, summary);
  showCounts(summary);
  showPace(summary);
}

function showHeading(summary, path, changes) {
  const words = { running: "the policy decides", paused: "paused: the fallback decides", fallback: "the fallback decides" };
  const mode = by("mode");
  mode.textContent = words[summary.mode];
  mode.className = "badge " + summary.mode;
  by("answer").textContent = answer(summary) + (summary.leaders.length && summary.rewards + summary.expired ? lastChange(changes) : "");
  fill(by("health"), ...summary.health.map((sentence) => make("li", sentence)));
  const steering = by("steering");
  if (root.dataset.admin !== "yes" || steering.dataset.mode === summary.mode) return;
  steering.dataset.mode = summary.mode;
  const buttons = [];
  if (summary.mode === "paused") buttons.push(button("Resume", () => post(path + "/resume", {})));
  else buttons.push(button("Pause", () => post(path + "/pause", {})));
  if (summary.mode === "fallback") buttons.push(button("Restart", () => window.confirm("Begin anew, with nothing learned?") && post(path + "/restart", {})));
  fill(steering, ...buttons);
}

function answer(summary) {
  const learned = summary.rewards + summary.expired;
  if (!summary.leaders.length || !learned) return summary.decisions ? "Nothing is known yet: no reward has come." : "Nothing was decided yet.";
  return summary.leaders.slice(0, 3).map((leader) => led(leader, summary)).join(" ");
}

function lastChange(changes) {
  if (!changes.length) return " No change was found.";
  const times = changes.length === 1 ? "One change was found" : `${count(changes.length)} changes were found, the last`;
  return ` ${times} on ${when(changes[changes.length - 1].time)}.`;
}

function led(leader, summary) {
  const rows = summary.arms.filter((one) => one.segment === leader.segment && !one.retired);
  const arm = rows.find((one) => one.name === leader.arm);
  const where = leader.segment === null ? "" : ` in ${leader.segment}`;
  const lasts = leader.since === null ? "leads" : `has led for ${duration(summary.last_decision - leader.since)}`;
  const interval = arm.low === null ? "" : ` (${number(arm.low)} to ${number(arm.high)})`;
  const sure = leader.probability === null ? "" : `, and is the best with a probability of ${percent(leader.probability)}`;
  const most = rows.reduce((a, b) => (b.probability > a.probability ? b : a));
  const played = summary.mode !== "running" ? "" : ` ${most.name === leader.arm ? "It" : most.name} is played most, in ${percent(most.probability)} of decisions.`;
  return `${leader.arm} ${lasts}${where}: it is expected to give ${number(arm.estimate)}${interval}${sure}.${played}`;
}

function button(text, act) {
  const node = make("button", text);
  node.addEventListener("click", async () => {
    node.disabled = true;
    try { await act(); } finally { node.disabled = false; }
  });
  return node;
}

function showFirst(summary, path) {
  const box = by("first");
  box.hidden = summary.rewards + summary.expired > 0;
  if (box.hidden || box.childElementCount) return;
  const json = "-H 'Content-Type: application/json'";
  const lines = [`curl ${location.origin}${path}/decisions ${json} -d '{}'`, `curl ${location.origin}${path}/rewards ${json} -d '{"id": "the id that came back", "reward": ${summary.reward_range[1]}}'`];
  fill(box, make("h2", "No rewards yet: here is how to send one"), make("p", "Ask for a decision, play its arm, and send what it brought:"), make("pre", lines.join("\n")), make("p", "With keys, add -H 'Authorization: Bearer KEY'."));
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
  const table = make("table");
  const head = make("tr", null, "head");
  const expected = `expected reward, ${number(low)} to ${number(high)}`;
  for (const [text, cls] of [["arm", "first"], ["probability", "middle"], ["", "blank"], [expected, "last"], ["", "blank"], ["played", "number wide"], ["", "blank"]]) head.append(make("th", text, cls));
  table.append(head);
  for (const arm of shown) table.append(armRow(arm, summary, path, low, high, most));
  const parts = [table];
  if (arms.length > SHOWN) parts.push(button(all ? `Show the first ${SHOWN}` : `Show all ${arms.length} arms`, async () => { all = !all; showArms(summary, path); }));
  fill(by("arms"), ...parts);
}

function armRow(arm, summary, path, low, high, most) {
  const line = make("tr", null, arm.retired ? "retired" : summary.leaders.some((one) => one.arm === arm.name && one.segment === arm.segment) ? "leads" : "");
  const bar = make("div", null, "bar");
  const inner = make("span");
  inner.style.width = (100 * arm.probability) / most + "%";
  bar.append(inner);
  const range = make("div", null, "range");
  const place = (value) => Math.min(Math.max((100 * (value - low)) / (high - low), 0), 100);
  if (arm.estimate !== null && !arm.retired) {
    if (arm.low !== null) {
      const span = make("i");
      span.style.left = place(arm.low) + "%";
      span.style.width = Math.max(place(arm.high) - place(arm.low), 0.5) + "%";
      range.append(span);
    }
    const middle = make("b");
    middle.style.left = `calc(${place(arm.estimate)}% - 1px)`;
    range.append(middle);
  }
  const steer = make("td", null, "number steer");
  if (root.dataset.admin === "yes") {
    const change = arm.retired ? { bring_back: [arm.name] } : { retire: [arm.name] };
    const sure = () => arm.retired || window.confirm(`Retire ${arm.name}? It is not played any more until it is brought back.`);
    steer.append(button(arm.retired ? "bring back" : "retire", async () => { if (sure()) await post(path + "/arms", change); }));
  }
  line.append(make("td", arm.segment === null ? arm.name : `${arm.name} in ${arm.segment}`, "name"), fill(make("td"), bar), make("td", arm.retired ? "retired" : percent(arm.probability), "number"));
  line.append(fill(make("td"), range), make("td", number(arm.estimate), "number"), make("td", count(arm.plays), "number wide"), steer);
  return line;
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

function draw(id, traces, shape) {
  const node = by(id);
  node.classList.remove("empty");
  Plotly.react(node, traces, shape, { displayModeBar: false, responsive: true });
}

function empty(id, text) {
  const node = by(id);
  if (window.Plotly) Plotly.purge(node);
  node.classList.add("empty");
  node.textContent = text;
}

// Neighbouring points are joined until each rests on enough decisions to be read: 20, and a fiftieth of all.
function joined(points) {
  const wanted = Math.max(points.reduce((sum, point) => sum + point.count, 0) / 50, 20);
  const parts = [[]];
  for (const point of points) {
    const last = parts[parts.length - 1];
    if (last.reduce((sum, one) => sum + one.count, 0) >= wanted) parts.push([point]);
    else last.push(point);
  }
  return parts.map((part) => {
    const total = part.reduce((sum, point) => sum + point.count, 0);
    const mean = part.reduce((sum, point) => sum + point.count * point.mean, 0) / total;
    const variance = part.reduce((sum, point) => sum + point.count * (point.error ** 2 * Math.max(point.count - 1, 1) + (point.mean - mean) ** 2), 0) / total;
    return { time: (part[0].begin + part[part.length - 1].end) / 2, mean, error: Math.sqrt(variance / Math.max(total - 1, 1)), count: total };
  });
}

function showRewards(summary, history, changes) {
  if (!history.rewards.length) return empty("rewards", "No rewards yet.");
  const points = joined(history.rewards);
  const x = dates(points.map((point) => point.time));
  const [low, high] = summary.reward_range;
  const ends = (sign) => points.map((point) => Math.min(Math.max(point.mean + sign * 1.96 * point.error, low), high));
  const per = count(points.reduce((sum, point) => sum + point.count, 0) / points.length);
  by("reward-note").textContent = `Mean of about ${per} decisions per point, by when they were made, with its 95 % band` + (changes.length ? "; dotted: changes found, shaded from where they began." : ".");
  const hidden = { mode: "lines", line: { width: 0 }, showlegend: false, hoverinfo: "skip" };
  const traces = [
    { x, y: ends(-1), ...hidden },
    { x, y: ends(1), ...hidden, fill: "tonexty", fillcolor: "rgba(47,111,174,.18)" },
    { x, y: points.map((point) => point.mean), mode: "lines+markers", marker: { size: 4 }, line: { color: COLOURS[0], width: 2 }, name: "mean reward", hovertemplate: "%{y:.4g}<extra></extra>" },
  ];
  return draw("rewards", traces, layout(span(summary, history), changes, { showlegend: false, yaxis: { gridcolor: "#eef1f4", tickformat: "~g", automargin: true } }));
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
  const most = narrow ? 20 : 28;
  const short = (name) => (name.length > most ? name.slice(0, most - 1) + "…" : name).replace(/</g, "‹").replace(/>/g, "›");
  const style = { mode: "lines", stackgroup: "one", line: { width: 0.5 } };
  const traces = top.map((arm, k) => ({ x, y: laws.map((row) => row[arm]), name: short(history.arms[arm]), fillcolor: COLOURS[k], ...style, line: { width: 0.5, color: COLOURS[k] }, hovertemplate: "%{y:.0%}" }));
  if (order.length > top.length) {
    const rest = laws.map((row) => Math.max(1 - top.reduce((sum, arm) => sum + row[arm], 0), 0));
    traces.push({ x, y: rest, name: `${order.length - top.length} others`, fillcolor: "#c9d1d9", ...style, line: { width: 0.5, color: "#c9d1d9" }, hovertemplate: "%{y:.0%}" });
  }
  return draw("played", traces, layout(span(summary, history), changes, { yaxis: { range: [0, 1], tickformat: ".0%", gridcolor: "#eef1f4" } }));
}

// --- the rest ------------------------------------------------------------------------------------------------------

const wordy = (value) => (value >= 1e6 ? "more than a million" : count(Number(value.toPrecision(2))));

function sentence(change) {
  if (change.stream === "arms changed") return `Arms were changed, and the policy began anew: it forgot ${change.forgot}.`;
  const names = change.names.length ? change.names : change.arms.map((arm) => `arm ${arm}`);
  const rows = names.map((name, k) => [name, change.before[k], change.after[k]]).sort((a, b) => Math.abs(b[2] - b[1]) - Math.abs(a[2] - a[1]));
  const moves = rows.slice(0, 3).map(([name, before, after]) => `${name} ${after > before ? "rose" : "fell"} from ${number(before)} to ${number(after)}`);
  const more = rows.length > 3 ? ` and ${rows.length - 3} more` : "";
  const what = moves.length ? `: ${moves.join(", ")}${more}` : "";
  const odds = change.odds > 0 ? `, at odds of ${wordy(change.odds)} to one` : "";
  return `What pays has changed since about ${when(change.began)}${what}. It was found ${duration(change.time - change.began)} later${odds}.`;
}

function showChanges(changes, summary) {
  const none = summary.rewards + summary.expired ? "No change was found: what pays is what has paid since the beginning." : "None: no reward has come yet.";
  if (!changes.length) return fill(by("changes"), make("li", none));
  const newest = [...changes].reverse().slice(0, 20);
  const lines = newest.map((change) => {
    const line = fill(make("li"), make("time", when(change.time)), document.createTextNode(" " + sentence(change)));
    line.title = change.sentence;
    return line;
  });
  if (changes.length > 20) lines.push(make("li", `and ${changes.length - 20} before`));
  return fill(by("changes"), ...lines);
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
  const still = begun ? `It has been as it is since about ${when(since)}.` : "It is as it was when it began.";
  const lines = [likeliest.rounds === null ? still : `It drifts: what is older than about ${count(likeliest.rounds)} decisions counts little.`];
  if (suspected >= 0.05) lines.push(`It may have changed again around ${when(doubt)}: ${percent(suspected)} likely, not enough to be called a change.`);
  const table = make("table", null, "memory");
  for (const row of memory.slice().reverse()) {
    const bar = make("div", null, "bar");
    const inner = make("span");
    inner.style.width = 100 * row.weight + "%";
    bar.append(inner);
    const label = row.rounds === null ? "it stands still between changes" : `it drifts, over ${count(row.rounds)} decisions`;
    const line = make("tr");
    line.append(make("td", label), fill(make("td"), bar), make("td", percent(row.weight), "number"));
    table.append(line);
  }
  return fill(by("pace"), ...lines.map((line) => make("p", line)), table);
}

// --- again and again -----------------------------------------------------------------------------------------------

let running = false;

async function refresh() {
  if (running) return;
  running = true;
  try {
    await (root.dataset.page === "one" ? showOne() : showList());
    updated = Date.now();
    document.body.dataset.ready = "yes";
    fresh("");
  } catch (error) {
    fresh(error instanceof TypeError ? "the server is away; trying again" : error.message);
  } finally {
    running = false;
  }
}

function fresh(trouble) {
  const node = by("fresh");
  node.className = trouble ? "fresh away" : "fresh";
  const seconds = Math.round((Date.now() - updated) / 1000);
  node.textContent = trouble || (updated ? (seconds < 2 ? "up to date" : `updated ${seconds} s ago`) : "");
}

if (root) {
  refresh();
  setInterval(() => { if (!document.hidden) refresh(); }, EVERY);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
}
