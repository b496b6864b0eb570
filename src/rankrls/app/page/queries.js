// The queries on the left: found, sorted, and drawn only where they are in sight.

import { VirtualList, button, finite, fixed, h, icon, metricName, named, redraw, setText, signed, whole } from "./dom.js";

const ROW = 54;
const MOVED = 5e-4; // a gain that is shown
const ORDERS = {
  given: { text: "As given", value: () => 0 },
  score: { text: "Lowest score", value: (q, i) => (finite(q.score[i]) ? q.score[i] : Infinity) },
  high: { text: "Highest score", value: (q, i) => (finite(q.score[i]) ? -q.score[i] : Infinity) },
  lost: { text: "Most lost", against: true, value: (q, i) => (finite(q.gain[i]) ? q.gain[i] : Infinity) },
  gained: { text: "Most gained", against: true, value: (q, i) => (finite(q.gain[i]) ? -q.gain[i] : Infinity) },
  gap: { text: "Worst pair", value: (q, i) => -q.gap[i] },
  size: { text: "Most documents", value: (q, i) => -q.size[i] },
  unjudged: { text: "Most unjudged", value: (q, i) => q.judged[i] - q.size[i] },
  name: { text: "By name", value: null },
};

export class QueryList {
  constructor(app) {
    this.app = app;
    this.order = "given";
    this.shown = new Int32Array(0);
    this.picked = new Set();
    this.selecting = false; // a click picks a query
    this.drawn = new Map(); // elements of queries, to be used again
    this.search = h("input", { type: "search", placeholder: "Find a query", "aria-label": "Find a query", spellcheck: false,
      oninput: () => this.draw(),
      onkeydown: (event) => {
        if (event.key === "Escape") {
          this.search.value = "";
          this.draw();
          this.search.blur();
        }
        if (event.key === "Enter" && this.shown.length) {
          app.show(this.shown[0], { focus: true });
          event.preventDefault();
        }
      } });
    this.sort = h("select", { "aria-label": "Sort queries", onchange: () => {
      this.order = this.sort.value;
      this.draw();
      this.rows.scroll(0);
      if (this.shown.length) app.show(this.shown[0]); // who sorts by the worst wants to see it
    } }, Object.entries(ORDERS).map(([key, { text }]) => h("option", { value: key }, text)));
    this.count = h("span", { class: "wb-count" });
    this.select = button("Select queries to un-learn together", { name: "select", class: "wb-ghost wb-tiny wb-changes", "aria-pressed": "false", onclick: () => this.toggleSelecting() });
    this.box = h("div", { class: "wb-scroll wb-query-box", role: "listbox", tabindex: 0, "aria-label": "Queries", onkeydown: (event) => this.key(event) });
    this.none = h("p", { class: "wb-empty", hidden: true }, "No query has these words.");
    this.pickBar = h("div", { class: "wb-pick", hidden: true });
    this.element = h("section", { class: "wb-panel wb-queries", "aria-label": "Queries" },
      h("div", { class: "wb-panel-head" }, h("div", { class: "wb-search" }, icon("search"), this.search),
        h("div", { class: "wb-sort" }, this.sort, this.count, this.select)),
      this.none, this.box, this.pickBar);
    this.rows = new VirtualList(this.box, ROW, (index) => this.row(index));
  }

  // What gains are measured against is said where one sorts by them.
  drawSort() {
    const { base } = this.app;
    for (const option of this.sort.options) {
      const { text, against } = ORDERS[option.value];
      setText(option, against && base ? `${text} vs ${base.name.slice(0, 24)}` : text);
    }
  }

  draw() {
    const { queries } = this.app;
    if (!queries) return;
    const words = this.search.value.toLocaleLowerCase().split(/\s+/).filter(Boolean);
    this.lower ??= queries.ids.map((id) => id.toLocaleLowerCase());
    if (this.lower.length !== queries.ids.length) this.lower = queries.ids.map((id) => id.toLocaleLowerCase());
    const found = [];
    for (let i = 0; i < queries.ids.length; i++) {
      if (words.every((word) => this.lower[i].includes(word))) found.push(i);
    }
    const { value } = ORDERS[this.order];
    if (this.order === "name") found.sort((a, b) => queries.ids[a].localeCompare(queries.ids[b]));
    else if (this.order !== "given") {
      const keys = new Float64Array(queries.ids.length);
      for (const i of found) keys[i] = value(queries, i);
      found.sort((a, b) => keys[a] - keys[b] || a - b);
    }
    this.shown = found;
    let low = Infinity;
    let high = -Infinity;
    for (const v of queries.score) {
      if (finite(v)) {
        low = Math.min(low, v);
        high = Math.max(high, v);
      }
    }
    this.range = [Math.min(0, low), Math.max(1, high)];
    this.element.classList.toggle("wb-with-gains", queries.gain.some((gain) => Math.abs(gain) >= MOVED));
    this.count.textContent = found.length === queries.ids.length ? whole(found.length) : `${whole(found.length)} of ${whole(queries.ids.length)}`;
    this.none.hidden = found.length > 0;
    this.rows.update(found.length);
    this.drawPicked();
  }

  row(index) {
    const { queries } = this.app;
    const i = this.shown[index];
    const columns = [queries.ids[i], queries.score[i], queries.gain[i], queries.size[i], queries.judged[i], queries.flags[i], queries.metric];
    const look = [index, this.shown.length, i === this.app.query, this.picked.has(i), ...this.range, ...columns].join();
    const known = this.drawn.get(i);
    if (known?.look === look) return known;
    const element = this.make(index, i);
    element.look = look;
    this.drawn.set(i, element);
    if (this.drawn.size > 300) this.drawn.delete(this.drawn.keys().next().value);
    return element;
  }

  make(index, i) {
    const { queries } = this.app;
    const score = queries.score[i];
    const gain = queries.gain[i];
    const share = finite(score) ? (score - this.range[0]) / (this.range[1] - this.range[0]) : 0;
    const flags = queries.flags[i];
    const selected = i === this.app.query;
    const moved = finite(gain) && Math.abs(gain) >= MOVED;
    const size = queries.judged[i] < queries.size[i] ? `${whole(queries.judged[i])}/${whole(queries.size[i])}` : whole(queries.size[i]);
    const bar = h("i");
    bar.style.width = `${Math.round(100 * share)}%`;
    return h("div", {
      class: `wb-query${selected ? " wb-selected" : ""}${flags & 1 ? " wb-forgotten" : ""}${this.picked.has(i) ? " wb-picked" : ""}`,
      role: "option", id: `wb-query-${i}`, "aria-selected": String(selected), "aria-setsize": this.shown.length, "aria-posinset": index + 1,
      "data-query": i,
      onclick: (event) => {
        if (this.selecting || event.ctrlKey || event.metaKey || event.shiftKey) this.pick(index, event.shiftKey);
        else {
          this.app.show(i);
          this.app.showTab("documents");
        }
      } },
      h("div", { class: "wb-query-top" }, h("bdi", { class: "wb-query-name", title: queries.ids[i] }, named(queries.ids[i], "Query")),
        flags & 2 ? h("span", { class: "wb-dot", title: "has preferences" }) : null,
        h("span", { class: "wb-query-score", title: finite(score) ? metricName(queries.metric) : `${metricName(queries.metric)} is not defined here: it needs two different grades` }, fixed(score, 3))),
      h("div", { class: "wb-query-bottom" },
        h("span", { class: "wb-bar" }, bar),
        h("span", { class: `wb-query-gain${moved ? (gain > 0 ? " wb-good" : " wb-bad") : ""}` }, moved ? signed(gain, 3) : ""),
        h("span", { class: "wb-query-size", title: flags & 1 ? "" : `${whole(queries.judged[i])} of ${whole(queries.size[i])} documents are judged` }, flags & 1 ? "un-learned" : size)));
  }

  mark() {
    this.rows.update(this.shown.length);
    const index = this.shown.indexOf(this.app.query);
    if (index >= 0) {
      this.rows.reveal(index);
      this.box.setAttribute("aria-activedescendant", `wb-query-${this.app.query}`);
    }
  }

  move(step) {
    if (!this.shown.length) return;
    const index = this.shown.indexOf(this.app.query);
    const next = Math.max(0, Math.min(this.shown.length - 1, index + step));
    if (this.shown[next] !== this.app.query) {
      this.app.show(this.shown[next]);
      this.app.say(`Query ${this.app.queries.ids[this.shown[next]]}`);
    }
  }

  // Arrows walk, with shift they select what they pass; space selects.
  key(event) {
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8, Home: -Infinity, End: Infinity };
    const here = this.shown.indexOf(this.app.query);
    const picks = !this.app.state?.read_only && here >= 0;
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key in steps) {
      if (event.shiftKey && picks && this.lastPicked === undefined) this.pick(here, false);
      this.move(steps[event.key]);
      if (event.shiftKey && picks) this.pick(this.shown.indexOf(this.app.query), true);
    } else if (event.key === " " && picks) this.pick(here, false);
    else return;
    event.preventDefault();
  }

  toggleSelecting() {
    this.selecting = !this.selecting;
    this.picked.clear();
    this.lastPicked = undefined;
    this.select.setAttribute("aria-pressed", String(this.selecting));
    this.draw();
  }

  // Several queries at once, to be un-learned together.
  pick(index, range) {
    const i = this.shown[index];
    if (range && this.lastPicked !== undefined) {
      const [a, b] = [this.lastPicked, index].sort((x, y) => x - y);
      for (let k = a; k <= b; k++) this.picked.add(this.shown[k]);
    } else if (!this.picked.delete(i)) this.picked.add(i);
    this.lastPicked = index;
    this.rows.update(this.shown.length);
    this.drawPicked();
    this.app.say(`${whole(this.picked.size)} selected`);
  }

  drawPicked() {
    const forgotten = this.app.state?.forgotten ?? [];
    const picked = [...this.picked];
    this.pickBar.hidden = (!this.selecting && !picked.length && !forgotten.length) || this.app.state.read_only;
    const look = JSON.stringify([this.selecting, picked, forgotten, this.shown.length]);
    if (look === this.pickLook) return; // a button that is replaced under the pointer hears no click
    this.pickLook = look;
    const clear = () => {
      this.selecting = true;
      this.toggleSelecting();
    };
    const act = (kind) => () => this.app.do({ do: kind, queries: picked }).then(clear);
    const all = () => {
      this.picked = new Set(this.shown);
      this.draw();
    };
    if (this.selecting || picked.length) {
      const gone = new Set(forgotten);
      const some = (learned) => picked.some((i) => gone.has(i) !== learned);
      redraw(this.pickBar, h("span", {}, picked.length ? `${whole(picked.length)} selected` : "Click queries, or"),
        picked.length ? null : h("button", { type: "button", class: "wb-small", "data-key": "all", onclick: all }, `select all ${whole(this.shown.length)}`),
        some(true) ? h("button", { type: "button", class: "wb-small", "data-key": "forget", onclick: act("forget") }, "Un-learn") : null,
        some(false) ? h("button", { type: "button", class: "wb-small", "data-key": "recall", onclick: act("recall") }, "Learn") : null,
        button("Clear the selection", { name: "close", class: "wb-ghost wb-tiny", "data-key": "clear", onclick: clear }));
    } else if (forgotten.length) {
      redraw(this.pickBar, h("span", {}, `${whole(forgotten.length)} un-learned`),
        h("button", { type: "button", class: "wb-small", "data-key": "recall", onclick: () => this.app.do({ do: "recall", queries: forgotten }) }, "Learn again"));
    }
  }

  resize() {
    this.rows.later();
  }
}
