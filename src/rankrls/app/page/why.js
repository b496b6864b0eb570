// Why one document is above another: what each feature adds to the difference.

import { button, digitsFor, docName, fixed, h, replace, short, signed } from "./dom.js";

const BARS = 8;

export class WhyPanel {
  constructor(app) {
    this.app = app;
    this.element = h("aside", { class: "wb-why", hidden: true, "aria-label": "Why" });
    this.all = false;
  }

  async load() {
    const { chosen } = this.app;
    if (chosen.length < 2) {
      this.found = null;
      this.draw();
      return;
    }
    const [a, b] = chosen;
    try {
      const found = await this.app.api.get("why", { a, b });
      if (this.app.chosen[0] === a && this.app.chosen[1] === b) this.found = found;
    } catch (error) {
      this.app.failed(error);
    }
    this.draw();
  }

  draw() {
    const { found } = this;
    const { chosen } = this.app;
    this.element.hidden = !chosen.length;
    const look = JSON.stringify([chosen, chosen.length > 1 && found, this.all, this.app.state?.read_only]);
    if (!chosen.length || look === this.look) return; // a button that is replaced under the pointer hears no click
    this.look = look;
    const clear = button("Close", { name: "close", class: "wb-ghost wb-tiny", onclick: () => this.app.documents.choose(null) });
    if (chosen.length === 1 || !found) {
      replace(this.element, h("div", { class: "wb-why-head" }, h("p", { class: "wb-soft" }, "Choose a second document to see why one is above the other."), clear));
      return;
    }
    const up = found.total >= 0;
    const [first, second] = up ? [found.a, found.b] : [found.b, found.a];
    const turn = up ? 1 : -1;
    const bars = found.bars.slice(0, this.all ? 30 : BARS);
    const rest = turn * (found.total - bars.reduce((sum, bar) => sum + bar.adds, 0));
    const most = Math.max(1e-300, ...bars.map((bar) => Math.abs(bar.adds)), Math.abs(rest));
    const name = (doc, letter) => h("span", { class: `wb-why-doc wb-why-${letter}` }, h("bdi", {}, docName(doc)));
    const digits = digitsFor(most); // of the largest bar, three that count
    const size = (value) => fixed(Math.abs(value), digits);
    const letters = up ? ["a", "b"] : ["b", "a"];
    const line = (text, adds, values) => {
      const bar = h("i", { class: adds < 0 ? "wb-minus" : "wb-plus" });
      const share = (50 * Math.abs(adds)) / most;
      bar.style.width = `${share}%`;
      bar.style.left = adds < 0 ? `${50 - share}%` : "50%";
      return h("li", {}, h("bdi", { class: "wb-why-name", title: text }, text), h("span", { class: "wb-weight" }, bar),
        h("span", { class: "wb-why-adds" }, signed(adds, digits)), h("span", { class: "wb-why-values wb-soft" }, values));
    };
    const others = Math.max(0, found.bars.length + found.left - bars.length);
    replace(this.element,
      h("div", { class: "wb-why-head" },
        h("p", {}, name(first, letters[0]), h("span", { class: "wb-soft" }, found.total === 0 ? "has the same score as" : `is ${size(found.total)} above`), name(second, letters[1])),
        h("span", { class: "wb-why-tools" },
          this.app.state.read_only ? null : h("button", { type: "button", class: "wb-small", title: "Prefer the other way round", onclick: () => this.app.prefer(second.row, first.row) }, "Reverse"),
          clear)),
      h("ul", { class: "wb-why-bars" },
        bars.map((bar) => line(bar.feature, turn * bar.adds, up ? `${short(bar.a)} vs ${short(bar.b)}` : `${short(bar.b)} vs ${short(bar.a)}`)),
        others ? line(others === 1 ? "1 other" : `${others} others`, rest, "") : null),
      h("p", { class: "wb-soft wb-hint" }, found.exact ? "" : "A kernel model: derivatives summed along the line between the two documents. ",
        found.bars.length > BARS ? h("button", { type: "button", class: "wb-link", onclick: () => {
          this.all = !this.all;
          this.draw();
        } }, this.all ? "Show fewer" : "Show more") : null));
  }
}
