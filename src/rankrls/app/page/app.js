// The workbench: what is shown, what is chosen, and how one reaches the other.

import { button, count, finite, h, icon, replace, setText, whole } from "./dom.js";
import { openCompare } from "./compare.js";
import { openExport, openHelp, openSnapshot } from "./dialogs.js";
import { DocumentList } from "./documents.js";
import { Headline, LastAction } from "./headline.js";
import { ModelPanel } from "./model.js";
import { along } from "./path.js";
import { QueryList } from "./queries.js";
import { WhyPanel } from "./why.js";

const THEMES = ["system", "light", "dark"];
let known = 0; // workbenches in a document

export class App {
  constructor(root, api) {
    this.root = root;
    this.api = api;
    this.id = ++known;
    this.state = null;
    this.queries = null; // columns of the list of queries
    this.query = 0;
    this.list = null; // the ranked documents of the query
    this.weights = null;
    this.curve = null;
    this.baseline = 1;
    this.alpha = null; // where the slider is, while it moves
    this.chosen = []; // documents to be explained
    this.view = { shuffled: false, hidden: false, unranked: false, only: "all" };
    this.timings = { alpha: [], change: [] }; // milliseconds from input to paint
    this.connected = true;
    this.build();
  }

  // ---------------------------------------------------------------- layout

  build() {
    this.root.classList.add("wb");
    this.root.dir = "ltr"; // as its own words are; names of any direction are isolated
    this.applyTheme(readSetting("theme") ?? "system");
    this.live = h("div", { class: "wb-live", role: "status", "aria-live": "polite" });
    this.toastBox = h("div", { class: "wb-toasts" });
    this.headline = new Headline(this);
    this.title = h("bdi", { class: "wb-title-name" });
    this.badge = h("span", { class: "wb-tag", hidden: true }, "read-only");
    this.undoButton = button("Undo (u)", { name: "undo", class: "wb-ghost wb-changes", onclick: () => this.do({ do: "undo" }) });
    this.redoButton = button("Redo (shift + u)", { name: "redo", class: "wb-ghost wb-changes", onclick: () => this.do({ do: "redo" }) });
    this.themeButton = button("Light or dark", { name: "moon", class: "wb-ghost wb-wide-only", onclick: () => this.nextTheme() });
    this.status = h("span", { class: "wb-status", role: "status" });
    const header = h("header", { class: "wb-header" },
      h("div", { class: "wb-title" }, h("span", { class: "wb-mark", "aria-hidden": "true" }, h("i"), h("i"), h("i")),
        h("div", { class: "wb-title-text" }, h("h1", {}, this.title, this.badge), this.status)),
      this.headline.element,
      h("div", { class: "wb-tools" }, this.undoButton, this.redoButton,
        button("Take a snapshot (s)", { name: "camera", text: "Snapshot", class: "wb-ghost wb-changes", onclick: () => openSnapshot(this) }),
        button("Compare snapshots (c)", { name: "compare", text: "Compare", class: "wb-ghost", onclick: () => openCompare(this) }),
        button("Import and export (e)", { name: "download", text: "Export", class: "wb-ghost", onclick: () => openExport(this) }),
        this.themeButton,
        button("Keyboard (?)", { name: "help", class: "wb-ghost wb-wide-only", onclick: () => openHelp(this) })));
    this.queryList = new QueryList(this);
    this.documents = new DocumentList(this);
    this.model = new ModelPanel(this);
    this.why = new WhyPanel(this);
    this.last = new LastAction(this);
    this.documents.element.append(this.why.element, this.last.element);
    this.panels = h("main", { class: "wb-panels", "data-tab": "documents" },
      this.queryList.element, this.documents.element, this.model.element);
    this.tabs = h("nav", { class: "wb-tabs", "aria-label": "Panels" },
      ...[["queries", "Queries", "list"], ["documents", "Ranking", "rank"], ["model", "Model", "sliders"]].map(([key, text, name]) =>
        h("button", { type: "button", "data-tab": key, onclick: () => this.showTab(key) }, icon(name), text)));
    const away = h("div", { class: "wb-away", "aria-hidden": "true" }, "The server is away. Trying again…");
    replace(this.root, header, this.panels, this.tabs, away, this.toastBox, this.live);
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
          this.failed(error);
        }
      }
      this.refreshing = null;
    })();
    return this.refreshing;
  }

  // An answer that did not come: refused, or nobody there; the page reconnects by itself.
  failed(error) {
    if (error.status === 401) this.refused();
    else if (error.status) this.toast(error.message, "bad");
    else this.setConnected(false);
  }

  async load(names, columns) {
    const query = this.query;
    const found = await this.api.get("view", { ...this.shown(query), ...(names || !this.weights ? { names: 1 } : {}) });
    const { state, list } = found;
    if (this.isOld(state)) return; // a change was answered meanwhile
    this.state = state;
    if (query === this.query) this.list = list;
    this.weights = { names: this.weights?.names, ...found.weights };
    if (!this.model.moving) this.alpha = null;
    if (!state.snapshots.some((kept) => kept.id === this.baseline)) this.baseline = 1;
    this.draw();
    if (columns) await this.loadColumns(names || this.queries === null);
    await this.loadCurve();
  }

  // Answers may overtake each other; versions count within one run of the server.
  isOld({ run, version }) {
    return this.state !== null && run === this.state.run && version < this.state.version;
  }

  // The snapshot that everything is compared with.
  get base() {
    return this.state?.snapshots.find((kept) => kept.id === this.baseline);
  }

  compareWith(id) {
    this.baseline = id;
    return this.refresh();
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
    const { headline, before, snapshots } = curve; // what has become known since the state was sent
    if (this.state?.version === curve.version) Object.assign(this.state, { headline, before, snapshots });
    this.drawQuality();
    this.model.curve.drawCurve();
  }

  async show(query, { focus = false } = {}) {
    if (query < 0 || query >= this.state.queries) return;
    this.query = query;
    this.chosen = [];
    this.queryList.mark();
    let list;
    try {
      list = await this.fetchList(query);
    } catch (error) {
      return this.failed(error);
    }
    if (query !== this.query) return;
    this.list = list;
    this.documents.open();
    this.why.draw();
    if (focus) this.documents.focus();
  }

  hear(event) {
    if (event.type === "lost") return this.setConnected(false);
    if (event.type === "refused") return this.refused();
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
      this.drawStatus();
      try {
        await this.loadCurve();
        await this.loadColumns();
      } catch (error) {
        if (!error.status) this.setConnected(false);
      }
    }, 350 + (this.state?.queries ?? 0) / 100);
  }

  // The token is missing or not valid any more: nothing here can be shown or changed.
  refused() {
    this.stop?.();
    replace(this.root, h("div", { class: "wb-refused", role: "alert" }, h("h1", {}, "This address does not open the workbench"),
      h("p", {}, "It needs the token that was printed when the server started: open that address, http://127.0.0.1:PORT/?token=…, as a whole.")));
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
    if (this.list.B) Object.assign(this.list, along(this.list, alpha));
    else if (!this.asking) {
      this.asking = true;
      try {
        this.list = await this.fetchList(this.query, { alpha });
      } catch (error) {
        return this.failed(error);
      } finally {
        this.asking = false;
      }
    }
    this.documents.draw();
    this.headline.draw();
    this.model.follow(alpha);
    this.time("alpha", start);
  }

  // ---------------------------------------------------------------- drawing

  draw() {
    setText(this.title, this.state.name);
    this.badge.hidden = !this.state.read_only;
    this.root.classList.toggle("wb-read-only", this.state.read_only);
    const enable = (element, label, text) => {
      element.disabled = label === null || this.state.read_only;
      element.title = label === null ? text : `${text}: ${label}`;
    };
    enable(this.undoButton, this.state.undo, "Undo (u)");
    enable(this.redoButton, this.state.redo, "Redo (shift + u)");
    this.drawStatus();
    this.headline.draw();
    this.last.draw();
    this.documents.draw();
    this.model.draw();
    this.queryList.drawSort();
    this.why.load();
  }

  drawStatus() {
    if (!this.state) return;
    const { rows, queries, features, judged } = this.state;
    const words = [count(queries, "query", "queries"), count(rows, "document"), count(features, "feature")];
    if (judged < rows) words.push(`${whole(judged)} judged`);
    let text = words.join(" · ");
    if (!this.connected) text = "Server away, trying again…";
    else if (finite(this.progress) && this.progress < 1) text += ` · holding out ${Math.round(100 * this.progress)} %`;
    setText(this.status, text);
  }

  // What becomes known in the background.
  drawQuality() {
    if (!this.state) return;
    this.headline.draw();
    this.last.draw();
    this.model.drawQuality();
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
    const typing = target.closest?.("input:not([type=checkbox], [type=range], [type=radio]), textarea, select, [contenteditable]");
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
      r: () => this.documents.toggle("unranked"),
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
