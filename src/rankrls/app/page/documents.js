// The ranked list in the middle: rows slide to their places, and can be dragged to others.

import { button, finite, fixed, h, icon, setText, short, whole } from "./dom.js";

const LEVEL = 1.6449; // of an interval of 90 %
const BEYOND = 3; // rows above and below what is in sight that are drawn as well
const FAR = 6; // pixels before a press becomes a drag

export class DocumentList {
  constructor(app) {
    this.app = app;
    this.rows = new Map(); // row number -> element
    this.order = [];
    this.focused = 0;
    this.name = h("bdi", { class: "wb-doc-query" });
    this.info = h("span", { class: "wb-doc-info" });
    this.forgetButton = button("Un-learn this query (x)", { name: "forget", text: "Un-learn", class: "wb-small", onclick: () => this.toggleForgotten() });
    const toggle = (key, label, name) => button(label, { name, class: "wb-ghost", "aria-pressed": "false", "data-view": key, onclick: () => this.toggle(key) });
    this.toggles = [toggle("shuffled", "Shuffle while judging", "shuffle"), toggle("hidden", "Hide scores while judging (h)", "eye")];
    this.only = h("select", { "aria-label": "Documents to show", onchange: () => {
      app.view.only = this.only.value;
      this.open();
    } }, [["all", "All documents"], ["judged", "Only judged"], ["unjudged", "Only unjudged"]].map(([value, text]) => h("option", { value }, text)));
    this.scale = h("div", { class: "wb-doc-scale", "aria-hidden": "true" });
    this.box = h("div", { class: "wb-scroll wb-doc-box", role: "grid", "aria-label": "Ranked documents", tabindex: -1 });
    this.space = h("div", { class: "wb-space", role: "rowgroup" });
    this.box.append(this.space);
    this.top = 0; // of what is in sight; with its size kept, because asking for them while drawing costs a layout
    this.size = { width: 0, height: 0, axis: 0 };
    this.box.addEventListener("scroll", () => {
      this.top = this.box.scrollTop;
      this.place();
    }, { passive: true });
    new ResizeObserver(() => this.resize()).observe(this.box);
    this.empty = h("p", { class: "wb-empty", hidden: true });
    this.element = h("section", { class: "wb-panel wb-documents", "aria-label": "Ranked documents" },
      h("div", { class: "wb-panel-head wb-doc-head" },
        h("div", { class: "wb-doc-title" }, h("h2", {}, this.name), this.info),
        h("div", { class: "wb-doc-tools" }, this.only, ...this.toggles, this.forgetButton)),
      h("div", { class: "wb-doc-columns", "aria-hidden": "true" }, h("span", {}, "rank"), h("span", {}, "grade"), h("span", {}, "document"), h("span", { class: "wb-col-score" }, "score, 90 % interval")),
      this.box, this.empty);
    this.box.addEventListener("pointerdown", (event) => this.press(event));
  }

  get rowHeight() {
    return this.size.width < 520 ? 72 : 60;
  }

  resize() {
    const axis = this.space.querySelector(".wb-axis")?.clientWidth ?? 0;
    this.size = { width: this.box.clientWidth, height: this.box.clientHeight, axis };
    if (this.app.list) this.place(true);
  }

  toggle(key) {
    const { view } = this.app;
    view[key] = !view[key];
    if (key === "shuffled") this.seed = Math.floor(Math.random() * 2 ** 31);
    this.draw();
  }

  scroll(top) {
    this.box.scrollTop = top;
    this.top = this.box.scrollTop;
  }

  open() {
    this.focused = 0;
    this.scroll(0);
    for (const element of this.rows.values()) element.remove();
    this.rows.clear();
    this.draw();
  }

  focus() {
    this.rows.get(this.at(this.focused))?.focus();
  }

  at(place) {
    const index = this.order[place];
    return index === undefined ? undefined : this.app.list.documents[index].row;
  }

  // The places of the documents: by score, or at random while judging without a bias.
  sorted() {
    const { list, view } = this.app;
    const keep = { all: () => true, judged: (doc) => doc.grade !== null, unjudged: (doc) => doc.grade === null }[view.only];
    const order = list.documents.map((_, index) => index).filter((index) => keep(list.documents[index]));
    if (!view.shuffled) return order.sort((a, b) => list.score[b] - list.score[a] || a - b);
    const key = (index) => {
      let x = (list.documents[index].row ^ this.seed) >>> 0;
      x = Math.imul(x ^ (x >>> 16), 0x45d9f3b);
      return (x ^ (x >>> 16)) >>> 0;
    };
    return order.sort((a, b) => key(a) - key(b));
  }

  draw() {
    const { list, view, state } = this.app;
    if (!list || !state) return;
    this.order = this.sorted();
    const byScore = list.documents.map((_, index) => index).sort((a, b) => list.score[b] - list.score[a] || a - b);
    this.rank = new Int32Array(byScore.length);
    byScore.forEach((index, place) => { this.rank[index] = place + 1; });
    setText(this.name, list.id);
    this.name.title = list.id;
    const judged = list.documents.filter((doc) => doc.grade !== null).length;
    const left = list.total - list.documents.length;
    setText(this.info, `${whole(list.total)} ${list.total === 1 ? "document" : "documents"} · ${whole(judged)} judged${left ? ` · first ${whole(list.documents.length)} shown` : ""}`);
    for (const element of this.toggles) element.setAttribute("aria-pressed", String(view[element.dataset.view]));
    this.element.classList.toggle("wb-hide-scores", view.hidden);
    setText(this.forgetButton.lastChild, list.forgotten ? "Learn again" : "Un-learn");
    this.forgetButton.title = list.forgotten ? "Learn this query again (x)" : "Un-learn this query (x)";
    this.element.classList.toggle("wb-is-forgotten", list.forgotten);
    this.limits();
    for (const [row, element] of this.rows) element.fresh = false;
    this.empty.hidden = this.order.length > 0;
    this.empty.textContent = view.only === "all" ? "This query has no documents." : `No document of this query is ${view.only}.`;
    this.box.classList.toggle("wb-following", this.app.alpha !== null);
    this.place(true);
    if (!this.size.axis) this.resize(); // known once the first row is there
  }

  limits() {
    const { score, spread } = this.app.list;
    let low = Infinity;
    let high = -Infinity;
    for (let i = 0; i < score.length; i++) {
      const half = spread ? LEVEL * spread[i] : 0;
      low = Math.min(low, score[i] - half);
      high = Math.max(high, score[i] + half);
    }
    this.range = high > low ? [low, high] : [low - 1, low + 1];
  }

  place(all = false) {
    const { list } = this.app;
    if (!list) return;
    const height = this.rowHeight;
    this.space.style.height = `${this.order.length * height + 8}px`;
    const first = Math.max(0, Math.floor(this.top / height) - BEYOND);
    const last = Math.min(this.order.length, Math.ceil((this.top + this.size.height) / height) + BEYOND);
    const wanted = new Set();
    for (let place = first; place < last; place++) {
      const index = this.order[place];
      const doc = list.documents[index];
      wanted.add(doc.row);
      let element = this.rows.get(doc.row);
      if (!element) {
        element = this.make(doc.row);
        element.style.transform = `translateY(${place * height}px)`;
        this.rows.set(doc.row, element);
        this.space.append(element);
      }
      if (all || !element.fresh) this.fill(element, index, place);
      element.style.transform = `translateY(${place * height}px)`;
      element.style.height = `${height}px`;
    }
    for (const [row, element] of this.rows) {
      if (!wanted.has(row) && element !== this.dragged?.element) {
        element.remove();
        this.rows.delete(row);
      }
    }
  }

  make(row) {
    const cell = (name, ...children) => h("div", { class: name, role: "gridcell" }, ...children);
    const parts = {
      rank: h("span", { class: "wb-rank" }), move: h("span", { class: "wb-move" }),
      chip: h("button", { type: "button", class: "wb-chip", tabindex: -1, onclick: (event) => {
        event.stopPropagation();
        this.rate(null, row);
      } }),
      id: h("bdi", { class: "wb-doc-id" }), title: h("bdi", { class: "wb-doc-name" }), mark: h("span", { class: "wb-doc-mark" }),
      value: h("span"), half: h("small"), whisker: h("i", { class: "wb-whisker" }), dot: h("i", { class: "wb-point" }),
    };
    const element = h("div", { class: "wb-doc", role: "row", tabindex: -1, "data-row": row, onfocus: () => this.focusOn(row) },
      cell("wb-cell-rank", h("span", { class: "wb-grip", "aria-hidden": "true" }, icon("grip")), parts.rank, parts.move),
      cell("wb-cell-chip", parts.chip),
      cell("wb-cell-text", parts.title, h("span", { class: "wb-doc-sub" }, parts.id, parts.mark)),
      cell("wb-cell-score", h("span", { class: "wb-axis" }, parts.whisker, parts.dot), h("span", { class: "wb-score" }, parts.value, parts.half)));
    element.parts = parts;
    return element;
  }

  fill(element, index, place) {
    const { list, chosen, state, view } = this.app;
    const doc = list.documents[index];
    const { parts } = element;
    const rank = this.rank[index];
    const before = list.rank_before[index];
    const moved = before ? before - rank : 0;
    setText(parts.rank, String(rank));
    setText(parts.move, moved ? `${moved > 0 ? "▲" : "▼"}${Math.abs(moved)}` : "");
    parts.move.className = `wb-move ${moved > 0 ? "wb-up" : moved < 0 ? "wb-down" : ""}`;
    setText(parts.chip, doc.grade === null ? "·" : short(doc.grade));
    parts.chip.className = `wb-chip ${chipClass(doc.grade, state.grade_range)}`;
    parts.chip.setAttribute("aria-label", doc.grade === null ? "not judged" : `grade ${doc.grade}`);
    setText(parts.title, doc.title || doc.id);
    parts.title.title = doc.title || doc.id;
    setText(parts.id, doc.title ? doc.id : "");
    const preferred = state.preferences.filter((p) => p.above.row === doc.row || p.below.row === doc.row).length;
    setText(parts.mark, [doc.changed ? (doc.given === null ? "judged here" : `was ${short(doc.given)}`) : "", preferred ? `${preferred} preference${preferred > 1 ? "s" : ""}` : ""].filter(Boolean).join(" · "));
    const score = list.score[index];
    const spread = list.spread?.[index];
    const [low, high] = this.range;
    const at = (value) => (this.size.axis * (value - low)) / (high - low); // pixels; moved by transforms, which need no layout
    setText(parts.value, view.hidden ? "" : fixed(score, 2));
    setText(parts.half, finite(spread) && !view.hidden ? `± ${fixed(LEVEL * spread, 2)}` : "");
    parts.dot.style.transform = `translateX(${at(score)}px)`;
    parts.whisker.style.visibility = finite(spread) ? "" : "hidden";
    if (finite(spread)) {
      const left = at(score - LEVEL * spread);
      parts.whisker.style.transform = `translateX(${left}px) scaleX(${Math.max(0, at(score + LEVEL * spread) - left) / 100})`;
      parts.whisker.parentElement.title = `${fixed(score - LEVEL * spread, 3)} to ${fixed(score + LEVEL * spread, 3)} with 90 %`;
    }
    const letter = { [chosen[0]]: "a", [chosen[1]]: "b" }[doc.row];
    element.className = `wb-doc${letter ? ` wb-chosen wb-chosen-${letter}` : ""}${element === this.dragged?.element ? " wb-dragging" : ""}`;
    element.tabIndex = place === this.focused ? 0 : -1;
    element.setAttribute("aria-selected", letter ? "true" : "false");
    element.setAttribute("aria-rowindex", place + 1);
    element.setAttribute("aria-label", `${rank}. ${doc.title || doc.id}, ${doc.grade === null ? "not judged" : `grade ${doc.grade}`}`);
    element.fresh = true;
  }

  placeOf(row) {
    return this.order.findIndex((index) => this.app.list.documents[index].row === row);
  }

  focusOn(row) {
    const place = this.placeOf(row);
    if (place < 0 || place === this.focused) return;
    const old = this.rows.get(this.at(this.focused));
    if (old) old.tabIndex = -1;
    this.focused = place;
    this.rows.get(row).tabIndex = 0;
  }

  go(place) {
    this.focused = Math.max(0, Math.min(this.order.length - 1, place));
    const height = this.rowHeight;
    const top = this.focused * height;
    if (top < this.top) this.scroll(top);
    else if (top + height > this.top + this.size.height) this.scroll(top + height - this.size.height);
    this.place(true);
    this.focus();
  }

  // ---------------------------------------------------------------- keyboard

  key(event) {
    const last = this.order.length - 1;
    const doc = this.at(this.focused);
    if (event.altKey && (event.key === "ArrowUp" || event.key === "ArrowDown")) {
      const other = this.at(this.focused + (event.key === "ArrowUp" ? -1 : 1));
      if (doc === undefined || other === undefined) return true;
      this.app.prefer(...(event.key === "ArrowUp" ? [doc, other] : [other, doc])).then(() => this.go(this.placeOf(doc)));
      return true;
    }
    const moves = { ArrowDown: this.focused + 1, ArrowUp: this.focused - 1, Home: 0, End: last, PageDown: this.focused + 8, PageUp: this.focused - 8 };
    if (event.target.closest?.("input, .wb-query-box, button:not(.wb-chip)")) return false;
    if (event.key in moves) this.go(moves[event.key]);
    else if ((event.key === "Enter" || event.key === " ") && doc !== undefined) this.choose(doc);
    else if (["-", "Backspace", "Delete"].includes(event.key) && doc !== undefined) this.app.grade(doc, null);
    else if (event.key === "Escape") this.choose(null);
    else return false;
    return true;
  }

  async rate(grade, row = this.at(this.focused)) {
    if (row === undefined) return;
    if (grade === null) return this.menu(row);
    const place = this.placeOf(row);
    const fresh = this.app.list.documents.find((doc) => doc.row === row)?.grade === null;
    const { activeElement } = this.element.getRootNode(); // also inside of a shadow tree, as in marimo
    const inList = !activeElement || activeElement === document.body || this.box.contains(activeElement);
    if (await this.app.grade(row, grade)) {
      if (inList) this.go(fresh ? this.nextUnjudged(place) : Math.min(place + 1, this.order.length - 1));
    }
  }

  // The list has moved under the judge: the next document without a grade from a place on, then from the top.
  nextUnjudged(place) {
    const open = this.order.flatMap((index, at) => (this.app.list.documents[index].grade === null ? [at] : []));
    return open.find((at) => at >= place) ?? open[0] ?? Math.min(place + 1, this.order.length - 1);
  }

  menu(row) {
    this.closeMenu?.();
    const element = this.rows.get(row);
    const [low, high] = this.app.state.grade_range;
    const top = Math.max(4, Math.min(9, Math.ceil(high)));
    const grades = Array.from({ length: top - Math.min(0, Math.floor(low)) + 1 }, (_, i) => i + Math.min(0, Math.floor(low))).slice(0, 12);
    const pick = (grade) => () => {
      close();
      this.app.grade(row, grade);
    };
    const menu = h("div", { class: "wb-grades", role: "toolbar", "aria-label": "Grade" },
      h("input", { type: "number", class: "wb-number", step: "any", placeholder: "grade", "aria-label": "Type a grade",
        onchange: (event) => event.target.value !== "" && pick(Number(event.target.value))() }),
      grades.map((grade) => h("button", { type: "button", class: `wb-chip ${chipClass(grade, this.app.state.grade_range)}`, onclick: pick(grade) }, String(grade))),
      button("Remove the judgment", { name: "close", class: "wb-ghost wb-tiny", onclick: pick(null) }));
    const close = () => {
      menu.remove();
      document.removeEventListener("pointerdown", outside, true);
    };
    const outside = (event) => {
      if (!event.composedPath().includes(menu)) close();
    };
    menu.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      close();
      element.focus();
      event.stopPropagation();
    });
    menu.addEventListener("pointerdown", (event) => event.stopPropagation());
    document.addEventListener("pointerdown", outside, true);
    this.closeMenu = close;
    element.append(menu);
    menu.querySelector("button").focus({ preventScroll: true });
  }

  choose(row) {
    const { app } = this;
    if (row === null) app.chosen = [];
    else if (app.chosen.includes(row)) app.chosen = app.chosen.filter((other) => other !== row);
    else app.chosen = app.chosen.length === 2 ? [app.chosen[1], row] : [...app.chosen, row];
    this.place(true);
    app.why.load();
  }

  toggleForgotten() {
    const { list, query } = this.app;
    this.app.do({ do: list.forgotten ? "recall" : "forget", queries: [query] }, { say: list.forgotten ? "Learned again" : "Un-learned" });
  }

  // ---------------------------------------------------------------- dragging

  press(event) {
    const element = event.target.closest(".wb-doc");
    if (!element || event.button > 0 || event.target.closest("button, .wb-grades")) return;
    const touch = event.pointerType === "touch";
    const row = Number(element.dataset.row);
    const start = { x: event.clientX, y: event.clientY, scroll: this.box.scrollTop };
    const canDrag = !this.app.view.shuffled && !this.app.state.read_only && (!touch || event.target.closest(".wb-grip"));
    const move = (now) => {
      if (now.pointerId !== event.pointerId) return;
      if (!this.dragged && canDrag && Math.hypot(now.clientX - start.x, now.clientY - start.y) > FAR) this.lift(element, row, start);
      if (this.dragged) {
        now.preventDefault();
        this.drag(now.clientY);
      }
    };
    const end = (now) => {
      if (now.pointerId !== event.pointerId) return;
      release();
      if (this.dragged) this.drop(now.type === "pointerup");
      else if (now.type === "pointerup" && Math.hypot(now.clientX - start.x, now.clientY - start.y) <= FAR) {
        this.focusOn(row);
        element.focus({ preventScroll: true });
        this.choose(row);
      }
    };
    const escape = (key) => {
      if (key.key !== "Escape" || !this.dragged) return;
      key.stopPropagation();
      release();
      this.drop(false);
    };
    const release = () => {
      document.removeEventListener("pointermove", move);
      document.removeEventListener("pointerup", end);
      document.removeEventListener("pointercancel", end);
      document.removeEventListener("keydown", escape, true);
    };
    document.addEventListener("pointermove", move, { passive: false });
    document.addEventListener("pointerup", end);
    document.addEventListener("pointercancel", end);
    document.addEventListener("keydown", escape, true);
  }

  lift(element, row, start) {
    const from = this.placeOf(row);
    this.dragged = { element, row, from, to: from, start };
    element.classList.add("wb-dragging");
    this.box.classList.add("wb-drag-on");
  }

  drag(y) {
    const { element, from, start } = this.dragged;
    const height = this.rowHeight;
    const box = this.box.getBoundingClientRect();
    if (y < box.top + 36) this.box.scrollTop -= 12;
    if (y > box.bottom - 36) this.box.scrollTop += 12;
    const shift = y - start.y + this.box.scrollTop - start.scroll;
    const to = Math.max(0, Math.min(this.order.length - 1, Math.round(from + shift / height)));
    this.dragged.to = to;
    element.style.transform = `translateY(${from * height + shift}px)`;
    this.order.forEach((index, place) => {
      const other = this.rows.get(this.app.list.documents[index].row);
      if (!other || other === element) return;
      const moved = place > from && place <= to ? -1 : place < from && place >= to ? 1 : 0;
      other.style.transform = `translateY(${(place + moved) * height}px)`;
    });
  }

  // A document put higher is preferred to the one it was put above; put lower, the one above it is preferred.
  async drop(done) {
    const { element, row, from, to } = this.dragged;
    this.dragged = null;
    element.classList.remove("wb-dragging");
    this.box.classList.remove("wb-drag-on");
    if (!done || to === from) return this.place(true);
    const other = this.at(to);
    const changed = await (to < from ? this.app.prefer(row, other) : this.app.prefer(other, row));
    if (!changed) this.place(true);
    else this.focusOn(row);
  }
}

export function chipClass(grade, [low, high]) {
  if (grade === null || !finite(grade)) return "wb-grade-none";
  const top = Math.max(high, low + 1, 4);
  const share = Math.max(0, Math.min(1, (grade - Math.min(0, low)) / (top - Math.min(0, low))));
  return `wb-grade-${Math.round(share * 4)}`;
}
