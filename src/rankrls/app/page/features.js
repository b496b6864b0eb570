// The features of a linear model: on or off, the sign of the weight, and the weight in units of the feature's spread.

import { VirtualList, digitsFor, h, setText, short, signed, whole } from "./dom.js";

const ROW = 34;
const NEXT = { 0: 1, 1: -1, "-1": 0 }; // the sign that a click asks for
const SIGNS = { 0: ["±", "free", "No constraint on the sign"], 1: ["≥0", "not negative", "Weight at least 0"], "-1": ["≤0", "not positive", "Weight at most 0"] };

export class FeatureList {
  constructor(app) {
    this.app = app;
    this.known = new Map(); // elements of features, to be used again
    this.search = h("input", { type: "search", class: "wb-find", placeholder: "Find a feature", "aria-label": "Find a feature", oninput: () => this.draw() });
    this.count = h("span", { class: "wb-count" });
    this.allOn = h("button", { type: "button", class: "wb-small", onclick: () => app.do({ do: "features", on: app.state.off }) }, "All on");
    this.tools = h("span", { class: "wb-section-tools" }, this.count, this.allOn);
    this.box = h("div", { class: "wb-scroll wb-feature-box", role: "list", "aria-label": "Features" });
    this.list = new VirtualList(this.box, ROW, (index) => this.row(index));
    this.element = h("div", {}, this.search,
      h("div", { class: "wb-feature-head", "aria-hidden": "true" }, h("span", {}, "on"), h("span", {}, "feature"), h("span", {}, "sign"), h("span", {}, "weight × spread")),
      this.box);
  }

  size(j) {
    const { coef, unit } = this.app.weights;
    return Math.abs(coef[j] * unit[j]);
  }

  draw() {
    const { weights, state } = this.app;
    if (!weights?.linear || !state) return;
    const words = this.search.value.toLocaleLowerCase();
    this.off = new Set(state.off);
    const found = weights.names.map((_, j) => j).filter((j) => weights.names[j].toLocaleLowerCase().includes(words));
    if (this.app.alpha === null) found.sort((a, b) => this.off.has(a) - this.off.has(b) || this.size(b) - this.size(a) || a - b);
    const text = JSON.stringify([found, state.off, state.signs, state.read_only]);
    const same = text === this.drawn;
    this.drawn = text;
    this.shown = found;
    this.most = Math.max(1e-300, ...found.slice(0, 2000).map((j) => this.size(j)));
    if (same) return this.follow();
    const total = weights.names.length;
    setText(this.count, this.off.size ? `${whole(total - this.off.size)} of ${whole(total)} on` : whole(total));
    this.allOn.hidden = !this.off.size || state.read_only;
    this.search.hidden = total <= 15;
    this.box.style.height = `${Math.min(found.length, 12) * ROW + 2}px`;
    this.list.update(found.length);
  }

  // The weights have changed, and nothing else.
  follow() {
    for (const [index, element] of this.list.rows) this.fill(element, this.shown[index]);
  }

  row(index) {
    const j = this.shown[index];
    let element = this.known.get(j);
    if (!element) {
      element = this.make(j);
      this.known.set(j, element);
      if (this.known.size > 300) this.known.delete(this.known.keys().next().value);
    }
    this.show(element, j);
    this.fill(element, j);
    return element;
  }

  make(j) {
    const { app } = this;
    const name = app.weights.names[j];
    const sign = () => app.state.signs[j] ?? 0;
    const turn = () => app.do({ do: "features", [this.off.has(j) ? "on" : "off"]: [j] }).then((done) => done || this.redraw());
    const parts = {
      on: h("input", { type: "checkbox", role: "switch", class: "wb-switch", "aria-label": `${name} on`, onchange: turn }),
      sign: h("button", { type: "button", onclick: () => app.do({ do: "sign", feature: j, sign: NEXT[sign()] }) }),
      bar: h("i"), value: h("span", { class: "wb-weight-value" }),
    };
    const element = h("div", { class: "wb-feature", role: "listitem" }, parts.on,
      h("bdi", { class: "wb-feature-name", title: name }, name), parts.sign, h("span", { class: "wb-weight" }, parts.bar), parts.value);
    return Object.assign(element, { parts });
  }

  // What is set.
  show(element, j) {
    const { state, weights } = this.app;
    const on = !this.off.has(j);
    const sign = state.signs[j] ?? 0;
    const [text, said, title] = SIGNS[sign];
    const { parts } = element;
    element.classList.toggle("wb-off", !on);
    parts.on.checked = on;
    parts.on.disabled = state.read_only;
    parts.sign.className = `wb-sign${sign ? " wb-on" : ""}`;
    parts.sign.disabled = state.read_only || !on;
    parts.sign.title = `${title}. Click: ${SIGNS[NEXT[sign]][2].toLowerCase()}`;
    parts.sign.setAttribute("aria-label", `Sign of ${weights.names[j]}: ${said}`);
    setText(parts.sign, text);
  }

  // What is learned.
  fill({ parts }, j) {
    const { coef, unit } = this.app.weights;
    const value = coef[j] * unit[j];
    const share = Math.min(1, Math.abs(value) / this.most);
    parts.bar.style.transform = `scaleX(${value < 0 ? -share : share})`; // a transform needs no layout
    parts.bar.className = value < 0 ? "wb-minus" : "wb-plus";
    setText(parts.value, this.off.has(j) ? "off" : this.most < 1e-3 ? short(value) : signed(value, Math.min(4, digitsFor(3 * this.most))));
    parts.value.title = `weight ${coef[j]}`;
  }

  // A change was refused: switches go back to what holds.
  redraw() {
    this.drawn = null;
    this.draw();
  }

  resize() {
    this.list.later();
  }
}
