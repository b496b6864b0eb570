// The queries on the left: found, sorted, and drawn only where they are in sight.

import { VirtualList, button, finite, fixed, h, icon, replace, signed, whole } from "./dom.js";

const ROW = 54;
const ORDERS = {
  given: { text: "As given", value: () => 0 },
  score: { text: "Lowest score", value: (q, i) => (finite(q.score[i]) ? q.score[i] : Infinity) },
  high: { text: "Highest score", value: (q, i) => (finite(q.score[i]) ? -q.score[i] : Infinity) },
  lost: { text: "Most lost", value: (q, i) => (finite(q.gain[i]) ? q.gain[i] : Infinity) },
  gained: { text: "Most gained", value: (q, i) => (finite(q.gain[i]) ? -q.gain[i] : Infinity) },
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
    } }, Object.entries(ORDERS).map(([key, { text }]) => h("option", { value: key }, text)));
    this.count = h("span", { class: "wb-count" });
    this.box = h("div", { class: "wb-scroll wb-query-box", role: "listbox", tabindex: 0, "aria-label": "Queries",
      onkeydown: (event) => {
        const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 };
        if (event.altKey || !(event.key in steps)) return;
        this.move(steps[event.key]);
        event.preventDefault();
      } });
    this.pickBar = h("div", { class: "wb-pick", hidden: true });
    this.element = h("section", { class: "wb-panel wb-queries", "aria-label": "Queries" },
      h("div", { class: "wb-panel-head" }, h("div", { class: "wb-search" }, icon("search"), this.search),
        h("div", { class: "wb-sort" }, this.sort, this.count)),
      this.box, this.pickBar);
    this.rows = new VirtualList(this.box, ROW, (index) => this.row(index));
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
    this.count.textContent = found.length === queries.ids.length ? whole(found.length) : `${whole(found.length)} of ${whole(queries.ids.length)}`;
    this.rows.update(found.length);
    this.drawPicked();
  }

  row(index) {
    const { queries } = this.app;
    const i = this.shown[index];
    const score = queries.score[i];
    const gain = queries.gain[i];
    const share = finite(score) ? (score - this.range[0]) / (this.range[1] - this.range[0]) : 0;
    const flags = queries.flags[i];
    const selected = i === this.app.query;
    const moved = finite(gain) && Math.abs(gain) >= 5e-4;
    const bar = h("i");
    bar.style.width = `${Math.round(100 * share)}%`;
    return h("div", {
      class: `wb-query${selected ? " wb-selected" : ""}${flags & 1 ? " wb-forgotten" : ""}${this.picked.has(i) ? " wb-picked" : ""}`,
      role: "option", id: `wb-query-${i}`, "aria-selected": String(selected), "aria-setsize": this.shown.length, "aria-posinset": index + 1,
      "data-query": i,
      onclick: (event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey) this.pick(index, event.shiftKey);
        else {
          this.app.show(i);
          this.app.showTab("documents");
        }
      } },
      h("div", { class: "wb-query-top" }, h("bdi", { class: "wb-query-name", title: queries.ids[i] }, queries.ids[i]),
        flags & 2 ? h("span", { class: "wb-dot", title: "has preferences" }) : null,
        h("span", { class: "wb-query-score" }, fixed(score, 3))),
      h("div", { class: "wb-query-bottom" },
        h("span", { class: "wb-bar" }, bar),
        h("span", { class: "wb-query-size" }, flags & 1 ? "un-learned" : queries.judged[i] < queries.size[i] ? `${whole(queries.judged[i])}/${whole(queries.size[i])}` : whole(queries.size[i])),
        h("span", { class: `wb-query-gain${moved ? (gain > 0 ? " wb-good" : " wb-bad") : ""}` }, moved ? signed(gain, 3) : "")));
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
  }

  drawPicked() {
    const forgotten = this.app.state?.forgotten ?? [];
    const picked = [...this.picked];
    this.pickBar.hidden = !picked.length && !forgotten.length;
    const clear = () => {
      this.picked.clear();
      this.draw();
    };
    if (picked.length) {
      replace(this.pickBar, h("span", {}, `${whole(picked.length)} selected`),
        h("button", { type: "button", class: "wb-small", onclick: () => this.app.do({ do: "forget", queries: picked }).then(clear) }, "Un-learn"),
        h("button", { type: "button", class: "wb-small", onclick: () => this.app.do({ do: "recall", queries: picked }).then(clear) }, "Learn"),
        button("Clear the selection", { name: "close", class: "wb-ghost wb-tiny", onclick: clear }));
    } else if (forgotten.length) {
      replace(this.pickBar, h("span", {}, `${whole(forgotten.length)} un-learned`),
        h("button", { type: "button", class: "wb-small", onclick: () => this.app.do({ do: "recall", queries: forgotten }) }, "Learn all again"));
    }
  }

  resize() {
    this.rows.later();
  }
}
