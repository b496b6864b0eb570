// What the numbers say: the metrics at the top, and what the last action was worth.

import { capital, finite, fixed, h, metricName, replace, setText, signed, verdict } from "./dom.js";

export class Headline {
  constructor(app) {
    this.app = app;
    this.element = h("div", { class: "wb-headline", role: "group", "aria-label": "Held-out quality" });
  }

  draw() {
    const { app } = this;
    const headline = app.state?.headline;
    if (!headline) return;
    const { base } = app;
    replace(this.element, headline.metrics.map((one, number) => {
      let { mean } = one;
      let about = headline.done < 1;
      if (number === 0 && app.alpha !== null) { // between the points of the curve
        mean = app.model.curve.at(app.alpha);
        about = true;
      }
      const before = base?.means?.[one.name];
      const change = finite(before) && finite(mean) ? mean - before : null;
      const moved = number === 0 && change !== null && Math.abs(change) >= 5e-5;
      return h("div", { class: `wb-metric${number ? "" : " wb-metric-main"}` },
        h("span", { class: "wb-metric-name" }, metricName(one.name)),
        h("span", { class: "wb-metric-value" }, about && finite(mean) ? h("small", {}, "≈") : null, fixed(mean, 4),
          finite(one.error) && number === 0 && app.alpha === null ? h("small", {}, ` ± ${fixed(one.error, 3)}`) : null),
        moved ? h("span", { class: `wb-delta ${verdict(change, one.greater_is_better)}`, title: `against ${base.name}` }, signed(change, 4), h("small", {}, " vs ", h("bdi", {}, base.name.slice(0, 18)))) : null);
    }));
  }
}

// A line below the documents: the last action, the first metric before and after it, and a way back.
export class LastAction {
  constructor(app) {
    this.app = app;
    this.action = h("span", { class: "wb-last-action" });
    this.worth = h("span", { class: "wb-last-worth" });
    this.undo = h("button", { type: "button", class: "wb-link", onclick: () => app.do({ do: "undo" }) }, "Undo");
    this.element = h("div", { class: "wb-last", role: "status", hidden: true }, this.action, this.worth, this.undo);
  }

  draw() {
    const { state } = this.app;
    this.element.hidden = !state?.undo;
    if (!state?.undo) return;
    this.undo.hidden = state.read_only;
    setText(this.action, capital(state.undo));
    const [first] = state.headline.metrics;
    const { before } = state;
    if (!before || !finite(before.mean) || !finite(first?.mean) || state.headline.done < 1) {
      setText(this.worth, state.headline.done < 1 ? "holding out…" : "");
      return;
    }
    const change = first.mean - before.mean;
    replace(this.worth, h("span", { class: "wb-soft" }, `${metricName(first.name)} ${fixed(before.mean, 4)} → ${fixed(first.mean, 4)} `),
      h("span", { class: `wb-delta ${verdict(change, first.greater_is_better)}` }, Math.abs(change) < 5e-5 ? "no change" : signed(change, 4)));
  }
}
