// The workbench: what is shown, what is chosen, and how one reaches the other.

import { add, button, finite, fixed, h, icon, metricName, replace, setText, short, signed, whole } from "./dom.js";
import { DocumentList } from "./documents.js";
import { ModelPanel } from "./model.js";
import { QueryList } from "./queries.js";
import { openCompare, openExport, openHelp, openSnapshot } from "./dialogs.js";
import { WhyPanel } from "./why.js";

const THEMES = ["system", "light", "dark"];

export class App {
  constructor(root, api) {
    this.root = root;
    this.api = api;
    this.state = null;
    this.queries = null; // columns of the list of queries
    this.query = 0;
    this.list = null; // the ranked documents of the query
    this.weights = null;
    this.curve = null;
    this.baseline = 1;
    this.alpha = null; // where the slider is, while it moves
    this.chosen = []; // documents to be explained
    this.view = { shuffled: false, hidden: false, only: "all" };
    this.timings = { alpha: [], change: [] }; // milliseconds from input to paint
    this.connected = true;
    this.loading = Promise.resolve();
    this.build();
  }

  // ---------------------------------------------------------------- layout

  build() {
    this.root.classList.add("wb");
    this.applyTheme(readSetting("theme") ?? "system");
    this.live = h("div", { class: "wb-live", role: "status", "aria-live": "polite" });
    this.toastBox = h("div", { class: "wb-toasts" });
    this.headline = h("div", { class: "wb-headline", "aria-label": "Held-out quality" });
    this.title = h("span", { class: "wb-title-name" });
    this.undoButton = button("Undo (u)", { name: "undo", class: "wb-ghost", onclick: () => this.do({ do: "undo" }) });
    this.redoButton = button("Redo (shift + u)", { name: "redo", class: "wb-ghost", onclick: () => this.do({ do: "redo" }) });
    this.themeButton = button("Light or dark", { name: "moon", class: "wb-ghost wb-wide-only", onclick: () => this.nextTheme() });
    this.status = h("span", { class: "wb-status", role: "status" });
    const header = h("header", { class: "wb-header" },
      h("div", { class: "wb-title" }, h("span", { class: "wb-mark", "aria-hidden": "true" }, h("i"), h("i"), h("i")),
        h("div", { class: "wb-title-text" }, h("h1", {}, this.title), this.status)),
      this.headline,
      h("div", { class: "wb-tools" }, this.undoButton, this.redoButton,
        button("Take a snapshot (s)", { name: "camera", class: "wb-ghost", onclick: () => openSnapshot(this) }),
        button("Compare snapshots (c)", { name: "compare", class: "wb-ghost", onclick: () => openCompare(this) }),
        button("Import and export (e)", { name: "download", class: "wb-ghost", onclick: () => openExport(this) }),
        this.themeButton,
        button("Keyboard (?)", { name: "help", class: "wb-ghost wb-wide-only", onclick: () => openHelp(this) })));
    this.queryList = new QueryList(this);
    this.documents = new DocumentList(this);
    this.model = new ModelPanel(this);
    this.why = new WhyPanel(this);
    this.documents.element.append(this.why.element);
    this.panels = h("main", { class: "wb-panels", "data-tab": "documents" },
      this.queryList.element, this.documents.element, this.model.element);
    this.tabs = h("nav", { class: "wb-tabs", "aria-label": "Panels" },
      ...[["queries", "Queries", "list"], ["documents", "Ranking", "rank"], ["model", "Model", "sliders"]].map(([key, text, name]) =>
        h("button", { type: "button", "data-tab": key, onclick: () => this.showTab(key) }, icon(name), text)));
    replace(this.root, header, this.panels, this.tabs, this.toastBox, this.live);
    this.showTab("documents");
    this.root.addEventListener("keydown", (event) => this.key(event));
    if (!this.root.classList.contains("wb-in-notebook")) {
      document.addEventListener("keydown", (event) => {
        if (!this.root.contains(event.target)) this.key(event);
      });
    }
  }

  showTab(key) {
    this.panels.dataset.tab = key;
    for (const tab of this.tabs.children) tab.setAttribute("aria-current", tab.dataset.tab === key ? "page" : "false");
    requestAnimationFrame(() => {
      this.queryList.resize();
      this.documents.resize();
      this.model.resize();
    });
  }

  applyTheme(theme) {
    this.theme = theme;
    for (const target of [this.root, this.root.closest(".wb-page")]) {
      if (target && theme === "system") delete target.dataset.theme;
      else if (target) target.dataset.theme = theme;
    }
    this.root.dispatchEvent(new Event("theme"));
  }

  nextTheme() {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const next = { system: dark ? "light" : "dark", light: dark ? "system" : "dark", dark: dark ? "light" : "system" };
    const theme = next[this.theme] ?? THEMES[0];
    writeSetting("theme", theme);
    this.applyTheme(theme);
    this.say(`Theme: ${theme}`);
  }

  // ---------------------------------------------------------------- loading

  async start() {
    await this.refresh({ names: true });
    this.stop = this.api.events((event) => this.hear(event));
    return this;
  }

  // Everything that a change can change; one refresh at a time, the latest wish counts.
  async refresh(options = {}) {
    this.wanted = { ...this.wanted, ...options };
    this.refreshing ??= (async () => {
      while (this.wanted) {
        const { names, columns = true } = this.wanted;
        this.wanted = null;
        try {
          await this.load(names, columns);
        } catch (error) {
          if (error.status) this.toast(error.message, "bad");
          else this.setConnected(false);
        }
      }
      this.refreshing = null;
    })();
    return this.refreshing;
  }

  async load(names, columns) {
    const query = this.query;
    const found = await this.api.get("view", { ...this.shown(query), ...(names || !this.weights ? { names: 1 } : {}) });
    const { state, list } = found;
    if (this.isOld(state)) return; // a change was answered meanwhile
    this.state = state;
    if (query === this.query) this.list = list;
    this.weights = { names: this.weights?.names, ...found.weights };
    if (this.alpha === null || this.model.moving === false) this.alpha = null;
    if (!state.snapshots.some((kept) => kept.id === this.baseline)) this.baseline = 1;
    this.draw();
    if (columns) await this.loadColumns(names || this.queries === null);
    await this.loadCurve();
  }

  // Answers may overtake each other; versions count within one run of the server.
  isOld({ run, version }) {
    return this.state !== null && run === this.state.run && version < this.state.version;
  }

  shown(query = this.query) {
    return { query, baseline: this.baseline };
  }

  fetchList(query, extra = {}) {
    return this.api.get("query", { ...this.shown(query), ...extra });
  }

  async loadColumns(names = false) {
    const columns = await this.api.get("queries", { baseline: this.baseline, ...(names ? { names: 1 } : {}) });
    this.queries = { ...columns, ids: columns.ids ?? this.queries.ids };
    this.queryList.draw();
  }

  async loadCurve() {
    const curve = await this.api.get("curve");
    if (this.isOld(curve)) return;
    this.curve = curve;
    if (this.state) this.state.headline = this.curve.headline;
    this.drawHeadline();
    this.model.drawCurve();
  }

  async show(query, { focus = false } = {}) {
    if (query < 0 || query >= this.state.queries) return;
    this.query = query;
    this.chosen = [];
    this.queryList.mark();
    const list = await this.fetchList(query);
    if (query !== this.query) return;
    this.list = list;
    this.documents.open();
    this.why.draw();
    if (focus) this.documents.focus();
  }

  hear(event) {
    if (event.type === "lost") return this.setConnected(false);
    if (event.type === "refused") {
      this.setConnected(false);
      return this.toast("The token is not valid any more: open the address that the server printed.", "bad");
    }
    if (event.type === "hello") {
      const back = !this.connected;
      this.setConnected(true);
      if (back || event.version > (this.state?.version ?? 0)) this.refresh({ names: back });
      else this.later();
    } else if (event.type === "changed") {
      if (this.changing) this.heard = event.version; // perhaps our own change, whose answer is on its way
      else if (event.version > (this.state?.version ?? 0)) this.refresh();
    } else if (event.type === "progress") {
      this.progress = event.done;
      this.drawStatus();
      this.later();
    } else if (event.type === "quality") {
      this.progress = null;
      this.drawStatus();
      this.refresh();
    } else if (event.type === "problem") {
      this.toast(event.text, "bad");
    }
  }

  // The curve while it gets sharper: at most a few times a second.
  later() {
    this.timer ??= setTimeout(async () => {
      this.timer = null;
      if (this.model.moving) return this.later(); // the hand on the slider goes first
      try {
        await this.loadCurve();
        await this.loadColumns();
      } catch (error) {
        if (!error.status) this.setConnected(false);
      }
    }, 350 + (this.state?.queries ?? 0) / 100);
  }

  setConnected(connected) {
    if (this.connected === connected) return;
    this.connected = connected;
    this.root.classList.toggle("wb-lost", !connected);
    this.say(connected ? "Connected again" : "The server is away; trying again");
    this.drawStatus();
  }

  // ---------------------------------------------------------------- changing

  async do(action, { say } = {}) {
    if (this.state.read_only) {
      this.toast("This workbench is open for reading only.", "bad");
      return false;
    }
    const start = inputTime();
    const { query } = this;
    let found;
    this.changing = (this.changing ?? 0) + 1;
    try {
      found = await this.api.post("do", action, this.shown());
    } catch (error) {
      this.toast(error.status ? error.message : "The server is away: nothing was changed.", "bad");
      if (!error.status) this.setConnected(false);
      return false;
    } finally {
      this.changing -= 1;
    }
    if (say) this.say(say);
    const { state, list } = found;
    const latest = !this.isOld(state);
    if (latest) Object.assign(this, { state, weights: { names: this.weights?.names, ...found.weights }, alpha: null });
    if (latest && query === this.query) this.list = list;
    if (!this.changing && this.heard > this.state.version) this.refresh();
    if (!state.snapshots.some((kept) => kept.id === this.baseline)) this.baseline = 1;
    this.draw();
    this.time("change", start);
    this.later();
    return true;
  }

  grade(row, grade) {
    return this.do({ do: "grade", row, grade }, { say: grade === null ? "Judgment removed" : `Graded ${grade}` });
  }

  prefer(above, below) {
    const action = { do: "prefer", above, below, ...this.model.preferenceWanted() };
    return this.do(action, { say: "Preference added; the model is refitted" });
  }

  time(kind, start) {
    requestAnimationFrame(() => { // before the next frame; a message after it is handled when the frame is there
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => {
        this.timings[kind] = [...this.timings[kind].slice(-499), performance.now() - start];
        port1.close();
      };
      port2.postMessage(null);
    });
  }

  // The slider moves: scores from the path that is here, or from the server where it is too long.
  async follow(alpha) {
    const start = inputTime();
    this.alpha = alpha;
    if (this.list.B) {
      const { B, d, z, offset, path } = this.list;
      const found = along(B, d, z, alpha, path, offset);
      this.list.score = found.score;
      this.list.spread = found.spread;
    } else if (!this.asking) {
      this.asking = true;
      try {
        this.list = await this.fetchList(this.query, { alpha });
      } finally {
        this.asking = false;
      }
    }
    this.documents.draw();
    this.drawHeadline();
    this.model.follow(alpha);
    this.time("alpha", start);
  }

  // ---------------------------------------------------------------- drawing

  draw() {
    setText(this.title, this.state.name);
    this.root.classList.toggle("wb-read-only", this.state.read_only);
    const enable = (element, label, text) => {
      element.disabled = label === null || this.state.read_only;
      element.title = label === null ? text : `${text}: ${label}`;
    };
    enable(this.undoButton, this.state.undo, "Undo (u)");
    enable(this.redoButton, this.state.redo, "Redo (shift + u)");
    this.drawStatus();
    this.drawHeadline();
    this.documents.draw();
    this.model.draw();
    this.why.load();
  }

  drawStatus() {
    if (!this.state) return;
    const { rows, queries, features, judged } = this.state;
    const words = [`${whole(queries)} ${queries === 1 ? "query" : "queries"}`, `${whole(rows)} documents`, `${whole(features)} features`];
    if (judged < rows) words.push(`${whole(judged)} judged`);
    let text = words.join(" · ");
    if (!this.connected) text = "Server away, trying again…";
    else if (finite(this.progress) && this.progress < 1) text += ` · holding out ${Math.round(100 * this.progress)} %`;
    setText(this.status, text);
  }

  drawHeadline() {
    const headline = this.state?.headline;
    if (!headline) return;
    const base = this.state.snapshots.find((kept) => kept.id === this.baseline);
    const items = headline.metrics.map((one, number) => {
      let mean = one.mean;
      let about = headline.done < 1;
      if (number === 0 && this.alpha !== null) {
        mean = this.model.curveAt(this.alpha);
        about = true;
      }
      const change = number === 0 && base && finite(base.mean) && finite(mean) ? mean - base.mean : null;
      const good = change === null || Math.abs(change) < 5e-5 ? "" : change > 0 === one.greater_is_better ? " wb-good" : " wb-bad";
      return h("div", { class: `wb-metric${number ? "" : " wb-metric-main"}` },
        h("span", { class: "wb-metric-name" }, metricName(one.name)),
        h("span", { class: "wb-metric-value" }, about && finite(mean) ? h("small", {}, "≈") : null, fixed(mean, 4),
          finite(one.error) && number === 0 && this.alpha === null ? h("small", {}, ` ± ${fixed(one.error, 3)}`) : null),
        number === 0 ? h("span", { class: `wb-delta${good}`, title: "against the snapshot that is marked on the right" },
          change === null || Math.abs(change) < 5e-5 ? "" : [signed(change, 4), h("small", {}, ` vs ${base.name.slice(0, 18)}`)]) : null);
    });
    replace(this.headline, this.lastChange(headline), items); // a few elements in a box of their own
  }

  // What the last action was worth: the first metric now less what it was before.
  lastChange(headline) {
    const { before } = this.state;
    const [first] = headline.metrics;
    if (!before || headline.done < 1 || !finite(first?.mean) || this.alpha !== null) return null;
    const change = first.mean - before.mean;
    const good = Math.abs(change) < 5e-5 ? "" : change > 0 === first.greater_is_better ? " wb-good" : " wb-bad";
    return h("div", { class: "wb-metric wb-last", title: `${metricName(first.name)} before: ${fixed(before.mean, 4)}` },
      h("span", { class: "wb-metric-name" }, before.action),
      h("span", { class: `wb-delta${good}` }, Math.abs(change) < 5e-5 ? "no change" : signed(change, 4)));
  }

  // ---------------------------------------------------------------- telling

  say(text) {
    this.live.textContent = text;
  }

  toast(text, kind = "") {
    const element = h("div", { class: `wb-toast ${kind}`, role: kind === "bad" ? "alert" : "status" }, text);
    this.toastBox.append(element);
    setTimeout(() => element.remove(), kind === "bad" ? 8000 : 3500);
  }

  // ---------------------------------------------------------------- keyboard

  key(event) {
    if (event.defaultPrevented || !this.state) return;
    const target = event.target;
    const typing = target.closest?.("input:not([type=checkbox]):not([type=range]), textarea, select, [contenteditable]");
    if (typing || target.closest?.("dialog") || event.ctrlKey || event.metaKey) return;
    const keys = {
      j: () => this.queryList.move(1),
      k: () => this.queryList.move(-1),
      u: () => this.do({ do: "undo" }),
      U: () => this.do({ do: "redo" }),
      s: () => openSnapshot(this),
      c: () => openCompare(this),
      e: () => openExport(this),
      x: () => this.documents.toggleForgotten(),
      h: () => this.documents.toggle("hidden"),
      "/": () => this.queryList.search.focus(),
      "?": () => openHelp(this),
    };
    if (event.altKey && !["ArrowUp", "ArrowDown"].includes(event.key)) return;
    if (/^[0-9]$/.test(event.key)) this.documents.rate(Number(event.key));
    else if (event.key in keys && !event.altKey) keys[event.key]();
    else if (!this.documents.key(event)) return;
    event.preventDefault();
  }
}

// When the user acted: the time of the event that is being handled.
const inputTime = () => globalThis.event?.timeStamp ?? performance.now();

// Scores and their standard deviations along the path: B (z / (d + alpha)).
export function along(B, d, z, alpha, path, offset = 0) {
  const r = d.length;
  const count = B.length / Math.max(1, r);
  const weight = new Float64Array(r);
  const shrink = new Float64Array(r);
  let rss = path.square;
  let free = path.free;
  for (let j = 0; j < r; j++) {
    shrink[j] = 1 / (d[j] + alpha);
    weight[j] = z[j] * shrink[j];
    rss -= z[j] * weight[j] * (2 - d[j] * shrink[j]);
    free -= d[j] * shrink[j];
  }
  const noise = free > 0 ? Math.sqrt(Math.max(0, rss) / free) : 0;
  const score = new Float64Array(count);
  const spread = new Float64Array(count);
  for (let i = 0; i < count; i++) {
    let total = 0;
    let square = 0;
    for (let j = 0, k = i * r; j < r; j++, k++) {
      total += B[k] * weight[j];
      square += B[k] * B[k] * shrink[j];
    }
    score[i] = total + offset;
    spread[i] = noise * Math.sqrt(square);
  }
  return { score, spread };
}

export function readSetting(name) {
  try {
    return localStorage.getItem(`rankrls-workbench-${name}`);
  } catch {
    return null; // no storage in this place
  }
}

export function writeSetting(name, value) {
  try {
    localStorage.setItem(`rankrls-workbench-${name}`, value);
  } catch {
    // kept for this page only
  }
}

export async function mount(root, api) {
  const app = new App(root, api);
  root.workbench = app;
  await app.start();
  return () => app.stop?.();
}

export { add, short };
