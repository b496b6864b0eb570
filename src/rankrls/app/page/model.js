// The model on the right: alpha over its held-out curve, metrics, switches, features, preferences, snapshots.

import { button, docName, finite, fixed, h, icon, metricName, redraw, replace, setText, signed, verdict } from "./dom.js";
import { openCompare } from "./compare.js";
import { Curve } from "./curve.js";
import { openMetrics, openSnapshot } from "./dialogs.js";
import { FeatureList } from "./features.js";

const CHOICES = [
  ["weighting", "Weighting", [["items", "documents", "Every document counts the same"], ["queries", "queries", "Every query counts the same"], ["pairs", "pairs", "Every pair counts the same"]]],
  ["tied_pairs", "Ties", [[false, "ignored", "Pairs of equal grades say nothing"], [true, "kept together", "Equal grades ask for equal scores"]]],
  ["gain", "Gain", [["linear", "grade", "The grade itself"], ["exp2", "2^grade − 1", "The gain of NDCG"]]],
  ["scale", "Scaling", [["auto", "by spread", "Features are divided by their spread within queries"], ["none", "none", "Features are penalised as they are"]]],
];

export class ModelPanel {
  constructor(app) {
    this.app = app;
    this.drawn = {}; // what was drawn last, part by part
    this.curve = new Curve(app);
    this.features = new FeatureList(app);
    this.metrics = h("div", { class: "wb-metrics" });
    this.switches = h("div", { class: "wb-switches" });
    this.preferences = h("div", { class: "wb-preferences" });
    this.weight = h("select", { "aria-label": "Weight of new preferences" },
      [["enough", "just enough"], ["1", "1"], ["10", "10"], ["100", "100"], ["1000", "1000"]].map(([value, text]) => h("option", { value }, text)));
    this.margin = h("input", { type: "number", class: "wb-number", step: "any", placeholder: "auto", "aria-label": "Margin of new preferences" });
    this.next = h("div", { class: "wb-next" }, h("span", {}, "New"), h("label", {}, "weight", this.weight), h("label", {}, "margin", this.margin));
    this.snapshots = h("div", { class: "wb-snapshots" });
    this.take = h("button", { type: "button", class: "wb-small", onclick: () => openSnapshot(app) }, "Take");
    const section = (title, tools, ...children) => h("section", { class: "wb-section" }, h("div", { class: "wb-section-head" }, h("h3", {}, title), tools), ...children);
    this.featureSection = section("Features", this.features.tools, this.features.element);
    this.element = h("section", { class: "wb-panel wb-model wb-scroll", "aria-label": "Model", tabindex: -1 },
      section("Regularisation", this.curve.tools, this.curve.element, this.metrics, h("button", { type: "button", class: "wb-link wb-choose", onclick: () => openMetrics(app) }, "Choose metrics")),
      section("Loss", null, this.switches),
      this.featureSection,
      section("Preferences", null, this.next, this.preferences),
      section("Snapshots", h("span", { class: "wb-section-tools" }, this.take,
        h("button", { type: "button", class: "wb-small", onclick: () => openCompare(app) }, "Compare")), this.snapshots));
  }

  get moving() {
    return this.curve.moving;
  }

  // Weight and margin of the next preference; what is left out is chosen by the server.
  preferenceWanted() {
    const wanted = {};
    if (this.weight.value !== "enough") wanted.weight = Number(this.weight.value);
    if (this.margin.value !== "") wanted.margin = Number(this.margin.value);
    return wanted;
  }

  // The slider moves: weights from the path that is here.
  follow(alpha) {
    this.curve.follow(alpha);
    const { basis, basisShape, d, z } = this.app.weights ?? {};
    if (!basis) return;
    const [n, r] = basisShape;
    const coef = new Float64Array(n);
    for (let j = 0; j < r; j++) {
      const value = z[j] / (d[j] + alpha);
      for (let i = 0; i < n; i++) coef[i] += basis[i * r + j] * value;
    }
    this.app.weights.coef = coef;
    this.features.follow();
  }

  resize() {
    this.curve.resize();
    this.features.resize();
  }

  // Whether a part was drawn with the same content before.
  once(part, content) {
    const text = JSON.stringify(content);
    const same = this.drawn[part] === text;
    this.drawn[part] = text;
    return same;
  }

  draw() {
    const { state } = this.app;
    this.curve.draw();
    this.drawSwitches();
    this.featureSection.hidden = !state.linear;
    this.features.draw();
    this.drawPreferences();
    this.drawQuality();
  }

  // What becomes known in the background.
  drawQuality() {
    this.drawMetrics();
    this.drawSnapshots();
  }

  drawMetrics() {
    const { state, base } = this.app;
    if (this.once("metrics", [state.headline, base?.means, base?.name])) return;
    const { metrics, done } = state.headline;
    const change = (one) => (base && finite(base.means[one.name]) && finite(one.mean) ? one.mean - base.means[one.name] : null);
    const moved = (one) => Math.abs(change(one) ?? 0) >= 5e-5;
    const any = metrics.some(moved);
    const line = (one) => h("tr", {}, h("th", { scope: "row", title: metricName(one.name) }, metricName(one.name)),
      h("td", {}, done < 1 && finite(one.mean) ? h("span", { class: "wb-soft" }, "≈ ") : null, h("b", {}, fixed(one.mean, 4)), finite(one.error) ? h("small", {}, ` ± ${fixed(one.error, 3)}`) : null),
      any ? h("td", { class: `wb-delta ${verdict(change(one), one.greater_is_better)}` }, moved(one) ? signed(change(one), 4) : "") : null);
    replace(this.metrics, h("table", {},
      h("thead", {}, h("tr", {}, h("th", { scope: "col", colSpan: 2 }, done < 1 ? `Held out, ${Math.round(100 * done)} % of the queries` : "Held out, ± standard error"), any ? h("th", { scope: "col" }, h("bdi", {}, `vs ${base.name}`)) : null)),
      h("tbody", {}, metrics.map(line))));
  }

  drawSwitches() {
    const { state } = this.app;
    if (this.once("switches", [state.settings, state.read_only])) return;
    if (this.switches.firstChild) return this.updateSwitches(state);
    const set = (name, value) => this.app.do({ do: "set", name, value });
    const choice = ([name, label, options]) => h("div", { class: "wb-choice", role: "radiogroup", "aria-label": label },
      h("span", { class: "wb-choice-label", "aria-hidden": "true" }, label),
      h("span", { class: "wb-segments" }, options.map(([value, text, title]) => h("label", { title },
        h("input", { type: "radio", name: `wb-${this.app.id}-${name}`, checked: state.settings[name] === value, disabled: state.read_only, "data-setting": `${name}:${value}`, "aria-label": text,
          onchange: () => set(name, value).then((done) => done || this.updateSwitches(this.app.state)) }),
        h("span", { "aria-hidden": "true" }, text)))));
    const share = h("input", { type: "range", min: 0, max: 20, step: 1, value: Math.round(20 * state.settings.regression), class: "wb-slider", "aria-label": "Share of regression", disabled: state.read_only, "data-setting": "regression",
      oninput: (event) => setText(event.target.nextSibling, fixed(Number(event.target.value) / 20, 2)),
      onchange: (event) => set("regression", Number(event.target.value) / 20) });
    replace(this.switches, CHOICES.map(choice),
      h("div", { class: "wb-choice", title: "0 ranks only, 1 is ridge regression on the grades" }, h("span", { class: "wb-choice-label" }, "Regression"), h("span", { class: "wb-slider-line" }, share, h("output", {}, fixed(state.settings.regression, 2)))));
  }

  updateSwitches(state) {
    for (const element of this.switches.querySelectorAll("[data-setting]")) {
      const [name, value] = element.dataset.setting.split(":");
      if (value !== undefined) element.checked = String(state.settings[name]) === value;
      else {
        element.value = Math.round(20 * state.settings[name]);
        setText(element.nextSibling, fixed(state.settings[name], 2));
      }
    }
  }

  drawPreferences() {
    const { state } = this.app;
    this.next.hidden = state.read_only;
    if (this.once("preferences", [state.preferences, state.read_only])) return;
    if (!state.preferences.length) {
      replace(this.preferences, h("p", { class: "wb-soft wb-hint" }, state.read_only ? "None." : "Drag a document above another, or press alt + ↑: that is a preference, and the model is refitted with it, exactly."));
      return;
    }
    const number = (p, name) => h("input", { type: "number", class: "wb-number", step: "any", min: name === "weight" ? 0 : undefined, value: Number(p[name].toPrecision(4)), "data-key": `${p.id} ${name}`, "aria-label": `${name} of the preference`, disabled: state.read_only,
      onchange: (event) => this.app.do({ do: "weigh", id: p.id, [name]: Number(event.target.value) }) });
    const name = (doc) => h("bdi", { title: `${doc.id} ${doc.title}` }, docName(doc));
    redraw(this.preferences, [...state.preferences].reverse().slice(0, 200).map((p) => h("div", { class: `wb-preference${!p.learned ? " wb-idle" : p.difference > 0 ? " wb-met" : ""}` },
      h("button", { type: "button", class: "wb-preference-text", "data-key": `${p.id}`, title: "Show the query", onclick: () => this.app.show(p.query) }, name(p.above), h("span", { class: "wb-soft" }, "above"), name(p.below)),
      h("div", { class: "wb-preference-tools" },
        p.learned ? h("span", { class: "wb-state", title: "The difference of the two scores now" }, icon(p.difference > 0 ? "check" : "close"), signed(p.difference, 2))
          : h("span", { class: "wb-state", title: "Its query is un-learned, and the preference with it" }, "un-learned"),
        h("label", {}, "weight", number(p, "weight")), h("label", {}, "margin", number(p, "margin")),
        button("Remove the preference", { name: "close", class: "wb-ghost wb-tiny", disabled: state.read_only, onclick: () => this.app.do({ do: "drop", id: p.id }) })))));
  }

  drawSnapshots() {
    const { state, baseline } = this.app;
    this.take.hidden = state.read_only;
    if (this.once("snapshots", [state.snapshots, baseline, state.read_only, state.settings.metrics[0]])) return;
    const first = state.settings.metrics[0];
    redraw(this.snapshots, state.snapshots.map((kept) => h("div", { class: `wb-snapshot${kept.id === baseline ? " wb-on" : ""}` },
      h("label", { class: "wb-snapshot-name", title: kept.outside ? "Compare with the scores of this model, as they are: it may have been trained on these queries" : "Compare places and metrics with this one" },
        h("input", { type: "radio", name: `wb-${this.app.id}-baseline`, checked: kept.id === baseline, "data-key": kept.id, onchange: () => this.app.compareWith(kept.id) }),
        h("bdi", {}, kept.name), kept.current ? h("span", { class: "wb-tag" }, "now") : null),
      h("span", { class: "wb-snapshot-mean" }, fixed(kept.means[first], 4)),
      kept.outside || state.read_only ? null : button(`Rename ${kept.name}`, { name: "pencil", "data-key": `${kept.id} rename`, class: "wb-ghost wb-tiny", onclick: () => openSnapshot(this.app, kept) }),
      kept.outside || state.read_only ? null : h("button", { type: "button", class: "wb-small", disabled: kept.current, "data-key": `${kept.id} restore`, onclick: () => this.app.do({ do: "restore", snapshot: kept.id }, { say: `Restored ${kept.name}` }) }, "Restore"),
      kept.id > 1 && !kept.outside && !state.read_only ? button(`Delete ${kept.name}`, { name: "close", class: "wb-ghost wb-tiny", onclick: () => this.app.do({ do: "discard", snapshot: kept.id }) }) : null)));
  }
}
