// The ranked list in the middle: rows slide to their places, and can be dragged to others.

import { button, count, digitsFor, docName, docNote, finite, fixed, h, icon, named, setText, short, whole } from "./dom.js";
import { Dragging } from "./dragging.js";

const LEVEL = 1.6449; // of an interval of 90 %
const BEYOND = 3; // rows above and below what is in sight that are drawn as well

export class DocumentList {
  constructor(app) {
    this.app = app;
    this.rows = new Map(); // row number -> element
    this.order = []; // indices of the documents, from the first place on
    this.places = new Map(); // row number -> place
    this.focused = 0; // the place of the document that keys act on
    this.marked = undefined; // its row
    this.name = h("bdi", { class: "wb-doc-query" });
    this.info = h("span", { class: "wb-doc-info" });
    this.forgetButton = button("Un-learn this query (x)", { name: "forget", text: "Un-learn", class: "wb-small", onclick: () => this.toggleForgotten() });
    const toggle = (key, label, name) => button(label, { name, class: "wb-ghost", "aria-pressed": "false", "data-view": key, onclick: () => this.toggle(key) });
    this.toggles = [toggle("shuffled", "Shuffle while judging", "shuffle"), toggle("hidden", "Hide scores while judging (h)", "eye"), toggle("unranked", "Hide ranks while judging (r)", "number")];
    this.only = h("select", { "aria-label": "Documents to show", onchange: () => {
      app.view.only = this.only.value;
      this.open();
    } }, [["all", "all"], ["judged", "judged"], ["unjudged", "unjudged"]].map(([value, text]) => h("option", { value }, text)));
    this.scale = h("div", { class: "wb-doc-scale", "aria-hidden": "true" });
    this.box = h("div", { class: "wb-scroll wb-doc-box", role: "grid", "aria-label": "Ranked documents", tabindex: -1 });
    this.space = h("div", { class: "wb-space", role: "rowgroup" });
    this.box.append(this.space);
    this.top = 0; // of what is in sight; with its size kept, because asking for them while drawing costs a layout
    this.size = { narrow: false, height: 0, axis: 0 };
    this.box.addEventListener("scroll", () => {
      this.top = this.box.scrollTop;
      this.place();
    }, { passive: true });
    new ResizeObserver(() => this.resize()).observe(this.box);
    this.empty = h("p", { class: "wb-empty", hidden: true });
    this.hint = h("div", { class: "wb-start", hidden: true }, h("b", {}, "Nothing to learn from yet"),
      h("p", {}, "Press a digit to grade the marked document, or drag one above another. The model is refitted after every judgment."));
    this.ratings = Promise.resolve(); // one after the other, however fast the keys
    this.element = h("section", { class: "wb-panel wb-documents", "aria-label": "Ranked documents" },
      h("div", { class: "wb-panel-head wb-doc-head" },
        h("div", { class: "wb-doc-title" }, h("h2", {}, this.name), this.info),
        h("div", { class: "wb-doc-tools" }, h("label", { class: "wb-only" }, "Show", this.only), ...this.toggles, this.forgetButton)),
      this.hint,
      h("div", { class: "wb-doc-columns", "aria-hidden": "true" }, h("span", { class: "wb-col-rank" }, "rank"), h("span", {}, "grade"), h("span", {}, "document"), h("span", { class: "wb-col-score" }, "score", h("span", {}, ", 90 % interval"))),
      this.box, this.empty);
    this.dragging = new Dragging(this);
  }

  get rowHeight() {
    return this.size.narrow ? 72 : 60;
  }

  get hasFocus() {
    return this.box.contains(this.element.getRootNode().activeElement);
  }

  // Pixels of the whole list.
  get length() {
    return this.order.length * this.rowHeight + 8;
  }

  resize() {
    const axis = this.space.querySelector(".wb-axis")?.clientWidth ?? 0;
    this.size = { narrow: this.app.root.clientWidth <= 520, height: this.box.clientHeight, axis }; // as in style.css
    if (!this.app.list) return;
    const room = this.size.height > 2 * this.rowHeight; // not while a window is folded up
    if (room && this.hasFocus) this.reveal(this.focused);
    this.place(true);
  }

  reveal(place) {
    const height = this.rowHeight;
    const top = place * height;
    if (top < this.top) this.scroll(top);
    else if (top + height > this.top + this.size.height) this.scroll(top + height - this.size.height);
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
    this.dragging.cancel();
    this.focused = 0;
    this.marked = undefined;
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
    this.places = new Map(this.order.map((index, place) => [list.documents[index].row, place]));
    this.rank = new Int32Array(byScore.length);
    byScore.forEach((index, place) => { this.rank[index] = place + 1; });
    this.mark(this.places.get(this.marked) ?? this.focused); // the mark stays with its document
    setText(this.name, named(list.id, "Query"));
    this.name.title = list.id;
    const judged = list.documents.filter((doc) => doc.grade !== null).length;
    const left = list.total - list.documents.length;
    setText(this.info, `${count(list.total, "document")} · ${whole(judged)} judged${left ? ` · first ${whole(list.documents.length)} shown` : ""}`);
    for (const element of this.toggles) element.setAttribute("aria-pressed", String(view[element.dataset.view]));
    this.element.classList.toggle("wb-hide-scores", view.hidden || !state.learned);
    this.element.classList.toggle("wb-hide-ranks", view.unranked);
    this.hint.hidden = state.learned || state.read_only;
    this.forgetButton.disabled = state.read_only;
    setText(this.forgetButton.lastChild, list.forgotten ? "Learn again" : "Un-learn");
    this.forgetButton.title = list.forgotten ? "Learn this query again (x)" : "Un-learn this query (x)";
    this.element.classList.toggle("wb-is-forgotten", list.forgotten);
    this.limits();
    for (const element of this.rows.values()) element.fresh = false;
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
    const digits = digitsFor(this.range[1] - this.range[0]); // so that neighbours can be told apart
    if (digits !== this.digits) this.box.style.setProperty("--wb-score", `${Math.max(4.2, 2.9 + 0.65 * digits)}em`);
    this.digits = digits;
  }

  place(all = false) {
    const { list } = this.app;
    if (!list) return;
    const height = this.rowHeight;
    this.space.style.height = `${this.length}px`;
    const first = Math.max(0, Math.floor(this.top / height) - BEYOND);
    const last = Math.min(this.order.length, Math.ceil((this.top + this.size.height) / height) + BEYOND);
    const wanted = new Set();
    const places = Array.from({ length: Math.max(0, last - first) }, (_, i) => first + i);
    const away = this.focused < this.order.length && (this.focused < first || this.focused >= last);
    if (away && this.hasFocus) places.push(this.focused); // out of sight, it keeps the focus
    for (const place of places) {
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
      if (!wanted.has(row) && element !== this.dragging.element) {
        element.remove();
        this.rows.delete(row);
      }
    }
    if (this.dragging.held) this.dragging.follow();
  }

  make(row) {
    const cell = (name, ...children) => h("div", { class: name, role: "gridcell" }, ...children);
    const parts = {
      rank: h("span", { class: "wb-rank" }), move: h("span", { class: "wb-move" }),
      chip: h("button", { type: "button", class: "wb-chip", tabindex: -1, onclick: (event) => {
        event.stopPropagation();
        this.menu(row, event.pointerType === "touch");
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
    setText(parts.title, docName(doc));
    parts.title.title = docName(doc);
    setText(parts.id, docNote(doc));
    const preferred = state.preferences.filter((p) => p.above.row === doc.row || p.below.row === doc.row).length;
    setText(parts.mark, [doc.changed ? (doc.given === null ? "judged here" : `was ${short(doc.given)}`) : "", preferred ? count(preferred, "preference") : ""].filter(Boolean).join(" · "));
    const score = list.score[index];
    const spread = list.spread?.[index];
    const [low, high] = this.range;
    const at = (value) => (this.size.axis * (value - low)) / (high - low); // pixels; moved by transforms, which need no layout
    setText(parts.value, view.hidden ? "" : fixed(score, this.digits));
    setText(parts.half, finite(spread) && !view.hidden ? `± ${fixed(LEVEL * spread, this.digits)}` : "");
    parts.dot.style.transform = `translateX(${at(score)}px)`;
    parts.whisker.style.visibility = finite(spread) ? "" : "hidden";
    if (finite(spread)) {
      const left = at(score - LEVEL * spread);
      parts.whisker.style.transform = `translateX(${left}px) scaleX(${Math.max(0, at(score + LEVEL * spread) - left) / 100})`;
      parts.whisker.parentElement.title = `${fixed(score - LEVEL * spread, this.digits + 1)} to ${fixed(score + LEVEL * spread, this.digits + 1)} with 90 %`;
    }
    const letter = { [chosen[0]]: "a", [chosen[1]]: "b" }[doc.row];
    element.className = `wb-doc${letter ? ` wb-chosen wb-chosen-${letter}` : ""}${element === this.dragging.element ? " wb-dragging" : ""}`;
    element.tabIndex = place === this.focused ? 0 : -1;
    element.setAttribute("aria-selected", letter ? "true" : "false");
    element.setAttribute("aria-rowindex", place + 1);
    element.setAttribute("aria-label", `${rank}. ${docName(doc)}, ${doc.grade === null ? "not judged" : `grade ${doc.grade}`}`);
    element.fresh = true;
  }

  placeOf(row) {
    return this.places.get(row) ?? -1;
  }

  focusOn(row) {
    const place = this.placeOf(row);
    if (place < 0 || place === this.focused) return;
    const old = this.rows.get(this.at(this.focused));
    if (old) old.tabIndex = -1;
    this.mark(place);
    this.rows.get(row).tabIndex = 0;
  }

  mark(place) {
    this.focused = Math.max(0, Math.min(this.order.length - 1, place));
    this.marked = this.at(this.focused);
  }

  show(place) {
    this.mark(place);
    this.reveal(this.focused);
    this.place(true);
  }

  go(place) {
    this.show(place);
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

  // Digits that come faster than answers wait for their turn: each grades the document that is marked by then.
  rate(grade) {
    this.ratings = this.ratings.then(() => this.rateNow(grade));
    return this.ratings;
  }

  async rateNow(grade) {
    const row = this.at(this.focused);
    if (row === undefined) return;
    const place = this.placeOf(row);
    const fresh = this.app.list.documents.find((doc) => doc.row === row)?.grade === null;
    const { activeElement } = this.element.getRootNode(); // also inside of a shadow tree, as in marimo
    const inList = !activeElement || activeElement === document.body || this.box.contains(activeElement);
    if (!(await this.app.grade(row, grade)) || this.closeMenu) return;
    const next = fresh ? this.nextUnjudged(place) : Math.min(place + 1, this.order.length - 1);
    if (inList) this.go(next);
    else this.show(next); // the focus stays where it is, as on the button that closed the reasons
  }

  // The list has moved under the judge: the next document without a grade from a place on, then from the top.
  nextUnjudged(place) {
    const open = this.order.flatMap((index, at) => (this.app.list.documents[index].grade === null ? [at] : []));
    return open.find((at) => at >= place) ?? open[0] ?? Math.min(place + 1, this.order.length - 1);
  }

  menu(row, touch) {
    this.closeMenu?.();
    if (this.app.state.read_only) return;
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
      this.closeMenu = null;
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
    menu.querySelector(touch ? "button" : "input").focus({ preventScroll: true }); // a phone's keyboard would cover the list
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
}

export function chipClass(grade, [low, high]) {
  if (grade === null || !finite(grade)) return "wb-grade-none";
  const top = Math.max(high, low + 1, 4);
  const share = Math.max(0, Math.min(1, (grade - Math.min(0, low)) / (top - Math.min(0, low))));
  return `wb-grade-${Math.round(share * 4)}`;
}
