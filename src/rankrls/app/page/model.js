// The model on the right: alpha over its held-out curve, switches, features, preferences, snapshots.

import uPlot from "./vendor/uplot.js";
import { VirtualList, button, finite, fixed, h, icon, metricName, replace, setText, short, signed, whole } from "./dom.js";
import { openCompare, openMetrics, openSnapshot } from "./dialogs.js";

const STEPS = 1000; // of the slider
const PAD = 10; // pixels left and right of the curve
const FEATURE = 34;

export class ModelPanel {
  constructor(app) {
    this.app = app;
    this.moving = false;
    this.alphaText = h("output", { class: "wb-alpha-value" });
    this.best = h("button", { type: "button", class: "wb-small", title: "The alpha with the best held-out mean", onclick: () => this.setAlpha(app.curve?.best) }, "Best");
    this.plotBox = h("div", { class: "wb-plot", "aria-hidden": "true" });
    this.cursor = h("i", { class: "wb-cursor", "aria-hidden": "true" }); // the present alpha, above the drawn curve
    this.dot = h("i", { class: "wb-cursor-dot", "aria-hidden": "true" });
    this.featureRows = new Map(); // elements of features, to be used again
    this.drawn = {}; // what was drawn last, part by part
    this.caption = h("button", { type: "button", class: "wb-caption", title: "Choose metrics", onclick: () => openMetrics(app) });
    this.slider = h("input", { type: "range", min: 0, max: STEPS, step: 1, class: "wb-slider", "aria-label": "Regularisation alpha",
      oninput: () => {
        this.moving = true;
        app.follow(this.alphaAt(Number(this.slider.value)));
      },
      onchange: () => {
        this.moving = false;
        this.setAlpha(this.alphaAt(Number(this.slider.value)));
      } });
    this.switches = h("div", { class: "wb-switches" });
    this.featureSearch = h("input", { type: "search", placeholder: "Find a feature", "aria-label": "Find a feature", oninput: () => this.drawFeatures() });
    this.featureCount = h("span", { class: "wb-count" });
    this.allOn = h("button", { type: "button", class: "wb-small", onclick: () => app.do({ do: "features", on: app.state.off }) }, "All on");
    this.featureBox = h("div", { class: "wb-scroll wb-feature-box", role: "list", "aria-label": "Features" });
    this.features = new VirtualList(this.featureBox, FEATURE, (index) => this.featureRow(index));
    this.preferences = h("div", { class: "wb-preferences" });
    this.weight = h("select", { "aria-label": "Weight of new preferences" },
      [["enough", "just enough"], ["1", "1"], ["10", "10"], ["100", "100"], ["1000", "1000"]].map(([value, text]) => h("option", { value }, text)));
    this.margin = h("input", { type: "number", class: "wb-number", step: "any", placeholder: "auto", "aria-label": "Margin of new preferences" });
    this.snapshots = h("div", { class: "wb-snapshots" });
    const section = (title, tools, ...children) => h("section", { class: "wb-section" }, h("div", { class: "wb-section-head" }, h("h3", {}, title), tools), ...children);
    this.featureSection = section("Features", h("span", { class: "wb-section-tools" }, this.featureCount, this.allOn), this.featureSearch, this.featureBox);
    this.element = h("section", { class: "wb-panel wb-model wb-scroll", "aria-label": "Model", tabindex: -1 },
      section("Regularisation", h("span", { class: "wb-section-tools" }, h("span", { class: "wb-soft" }, "alpha"), this.alphaText, this.best),
        h("div", { class: "wb-curve" }, this.plotBox, this.cursor, this.dot, this.slider), this.caption),
      section("Loss", null, this.switches),
      this.featureSection,
      section("Preferences", h("span", { class: "wb-section-tools wb-soft" }, h("label", {}, "weight ", this.weight), h("label", {}, "margin ", this.margin)), this.preferences),
      section("Snapshots", h("span", { class: "wb-section-tools" },
        h("button", { type: "button", class: "wb-small", onclick: () => openSnapshot(app) }, "Take"),
        h("button", { type: "button", class: "wb-small", onclick: () => openCompare(app) }, "Compare")), this.snapshots));
    app.root.addEventListener("theme", () => setTimeout(() => this.restyle()));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.restyle());
    new ResizeObserver(() => this.resize()).observe(this.plotBox);
  }

  // Weight and margin of the next preference; what is left out is chosen by the server.
  preferenceWanted() {
    const wanted = {};
    if (this.weight.value !== "enough") wanted.weight = Number(this.weight.value);
    if (this.margin.value !== "") wanted.margin = Number(this.margin.value);
    return wanted;
  }

  // ---------------------------------------------------------------- alpha

  get range() {
    const [low, high] = this.app.state.alpha_range.map(Math.log10);
    return [low, high];
  }

  alphaAt(step) {
    const [low, high] = this.range;
    return 10 ** (low + ((high - low) * step) / STEPS);
  }

  stepAt(alpha) {
    const [low, high] = this.range;
    return Math.max(0, Math.min(STEPS, Math.round((STEPS * (Math.log10(alpha) - low)) / (high - low))));
  }

  async setAlpha(alpha) {
    if (!finite(alpha) || alpha <= 0) return;
    await this.app.do({ do: "set", name: "alpha", value: alpha }, { say: `alpha ${short(alpha)}` });
  }

  // The mean of the curve between its points.
  curveAt(alpha) {
    const { alphas, mean } = this.app.curve ?? {};
    if (!mean) return null;
    const x = Math.log(alpha);
    let i = 1;
    while (i < alphas.length - 1 && Math.log(alphas[i]) < x) i++;
    const [a, b] = [Math.log(alphas[i - 1]), Math.log(alphas[i])];
    const share = Math.max(0, Math.min(1, (x - a) / (b - a)));
    return mean[i - 1] + share * (mean[i] - mean[i - 1]);
  }

  follow(alpha) {
    setText(this.alphaText, short(alpha));
    this.slider.setAttribute("aria-valuetext", `alpha ${short(alpha)}`);
    this.point();
    const { basis, basisShape, d, z } = this.app.weights ?? {};
    if (!basis) return;
    const [n, r] = basisShape;
    const coef = new Float64Array(n);
    for (let j = 0; j < r; j++) {
      const value = z[j] / (d[j] + alpha);
      for (let i = 0; i < n; i++) coef[i] += basis[i * r + j] * value;
    }
    this.app.weights.coef = coef;
    for (const [index, element] of this.features.rows) this.fillFeature(element, this.shown[index]);
  }

  // ---------------------------------------------------------------- curve

  drawCurve() {
    const { curve, state } = this.app;
    if (!curve || !state) return;
    this.caption.replaceChildren(`Held-out ${metricName(curve.metric)}, band ± 1 standard error`);
    if (curve.done < 1) this.caption.append(h("span", { class: "wb-soft" }, ` · ${Math.round(100 * curve.done)} % of the queries`));
    this.best.disabled = !finite(curve.best) || state.read_only;
    const x = Array.from(curve.alphas, Math.log10);
    const known = curve.mean && Array.from(curve.mean).some(finite);
    const mean = known ? Array.from(curve.mean, (v) => (finite(v) ? v : null)) : x.map(() => null);
    const error = known ? Array.from(curve.error, (v) => (finite(v) ? v : 0)) : x.map(() => 0);
    const data = [x, mean, mean.map((v, i) => (v === null ? null : v + error[i])), mean.map((v, i) => (v === null ? null : v - error[i]))];
    this.data = data;
    const same = this.once("curve", [data, curve.best]);
    if (!this.plot) this.makePlot();
    else if (!same) this.plot.setData(data);
    this.point();
  }

  // Whether a part was drawn with the same content before.
  once(part, content) {
    const text = JSON.stringify(content);
    const same = this.drawn[part] === text;
    this.drawn[part] = text;
    return same;
  }

  // Line and dot of the present alpha, without drawing the curve again.
  point() {
    const { plot, app } = this;
    if (!plot || !app.curve) return;
    const alpha = app.alpha ?? app.state.settings.alpha;
    const value = this.curveAt(alpha);
    const x = plot.over.offsetLeftKept + plot.valToPos(Math.log10(alpha), "x");
    this.cursor.style.transform = `translateX(${x}px)`;
    this.dot.hidden = !finite(value);
    if (finite(value)) this.dot.style.transform = `translate(${x}px, ${plot.over.offsetTopKept + plot.valToPos(value, "y")}px)`;
  }

  makePlot() {
    const width = this.plotBox.clientWidth;
    if (!width || !this.data) return;
    const css = getComputedStyle(this.app.root);
    const color = (name) => css.getPropertyValue(name).trim();
    const font = `11px ${css.getPropertyValue("--wb-font").trim()}`;
    const plain = { points: { show: false } };
    this.plot = new uPlot({
      width, height: 150, padding: [10, PAD, 0, PAD], legend: { show: false }, cursor: { show: false }, select: { show: false },
      scales: { x: { time: false }, y: { range: (_, low, high) => (finite(low) && high > low ? [low - 0.08 * (high - low), high + 0.12 * (high - low)] : [0, 1]) } },
      axes: [
        { stroke: color("--wb-soft"), font, size: 26, grid: { show: false }, ticks: { show: false }, space: 55, values: (_, ticks) => ticks.map((v) => (Number.isInteger(v) ? `1e${v}` : "")) },
        { stroke: color("--wb-soft"), font, size: 0, side: 1, grid: { stroke: color("--wb-line"), width: 1 }, ticks: { show: false }, splits: (_, __, low, high) => ticks(low, high), values: () => [] },
      ],
      series: [{}, { stroke: color("--wb-accent"), width: 2, ...plain }, { stroke: "transparent", ...plain }, { stroke: "transparent", ...plain }],
      bands: [{ series: [2, 3], fill: color("--wb-band") }],
      hooks: { draw: [(plot) => this.overlay(plot, color, font)] },
    }, this.data, this.plotBox);
    this.place();
  }

  place() {
    const { over } = this.plot;
    over.offsetLeftKept = over.offsetLeft;
    over.offsetTopKept = over.offsetTop;
    Object.assign(this.cursor.style, { top: `${over.offsetTop}px`, height: `${over.offsetHeight}px` });
    this.point();
  }

  overlay(plot, color, font) {
    const { ctx, bbox } = plot;
    const ratio = devicePixelRatio || 1;
    const line = (alpha, style, dash) => {
      const x = plot.valToPos(Math.log10(alpha), "x", true);
      ctx.save();
      ctx.strokeStyle = style;
      ctx.lineWidth = 1.5 * ratio;
      ctx.setLineDash(dash.map((v) => v * ratio));
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      ctx.restore();
      return x;
    };
    ctx.save();
    ctx.font = font.replace("11px", `${11 * ratio}px`);
    ctx.fillStyle = color("--wb-soft");
    ctx.textBaseline = "bottom";
    const { min, max } = plot.scales.y;
    if (this.data[1].some(finite)) {
      for (const value of ticks(min, max)) ctx.fillText(value.toFixed(max - min < 0.02 ? 4 : 3), bbox.left + 2 * ratio, plot.valToPos(value, "y", true) - ratio);
    }
    ctx.restore();
    const { best } = this.app.curve;
    if (finite(best)) line(best, color("--wb-line-strong"), [3, 3]);
  }

  restyle() {
    this.plot?.destroy();
    this.plot = null;
    this.makePlot();
  }

  resize() {
    const width = this.plotBox.clientWidth;
    if (!width) return;
    if (!this.plot) this.makePlot();
    else if (this.plot.width !== width) {
      this.plot.setSize({ width, height: 150 });
      this.place();
    }
    this.features.later();
  }

  // ---------------------------------------------------------------- all the rest

  draw() {
    const { state } = this.app;
    const alpha = state.settings.alpha;
    if (!this.moving) {
      this.slider.value = this.stepAt(alpha);
      setText(this.alphaText, short(alpha));
      this.slider.setAttribute("aria-valuetext", `alpha ${short(alpha)}`);
    }
    this.slider.disabled = state.read_only;
    this.drawSwitches();
    this.drawFeatures();
    this.drawPreferences();
    this.drawSnapshots();
    this.point();
  }

  drawSwitches() {
    const { state } = this.app;
    if (this.once("switches", [state.settings, state.read_only])) return;
    if (this.switches.firstChild) return this.updateSwitches(state);
    const set = (name, value) => this.app.do({ do: "set", name, value });
    const choice = (name, label, options) => h("div", { class: "wb-choice", role: "radiogroup", "aria-label": label },
      h("span", { class: "wb-choice-label" }, label),
      h("span", { class: "wb-segments", onkeydown: arrows }, options.map(([value, text, title]) => {
        const on = state.settings[name] === value;
        return h("button", { type: "button", role: "radio", title, "aria-checked": String(on), tabIndex: on ? 0 : -1, disabled: state.read_only, "data-setting": `${name}:${value}`,
          onclick: () => this.app.state.settings[name] === value || set(name, value) }, text);
      })));
    const share = h("input", { type: "range", min: 0, max: 20, step: 1, value: Math.round(20 * state.settings.regression), class: "wb-slider", "aria-label": "Share of regression", disabled: state.read_only, "data-setting": "regression",
      oninput: (event) => { event.target.nextSibling.textContent = fixed(Number(event.target.value) / 20, 2); },
      onchange: (event) => set("regression", Number(event.target.value) / 20) });
    replace(this.switches,
      choice("weighting", "Counts equally", [["items", "documents", "each query by its number of documents"], ["queries", "queries", "every query the same"], ["pairs", "pairs", "every pair the same"]]),
      choice("tied_pairs", "Tied grades", [[false, "left out", "pairs of equal grades say nothing"], [true, "stay together", "equal grades ask for equal scores"]]),
      choice("gain", "Gain", [["linear", "grade", "the grade itself"], ["exp2", "2^grade − 1", "the gain of NDCG"]]),
      choice("scale", "Feature scale", [["auto", "by spread", "the penalty is the same for every feature's spread within queries"], ["none", "as given", "the penalty is on the features as they are"]]),
      h("div", { class: "wb-choice" }, h("span", { class: "wb-choice-label" }, "Regression"), h("span", { class: "wb-slider-line" }, share, h("output", {}, fixed(state.settings.regression, 2)))));
  }

  updateSwitches(state) {
    for (const element of this.switches.querySelectorAll("[data-setting]")) {
      const [name, value] = element.dataset.setting.split(":");
      const on = String(state.settings[name]) === value;
      if (value !== undefined) {
        element.setAttribute("aria-checked", String(on));
        element.tabIndex = on ? 0 : -1;
      } else {
        element.value = Math.round(20 * state.settings[name]);
        setText(element.nextSibling, fixed(state.settings[name], 2));
      }
    }
  }

  drawFeatures() {
    const { weights, state } = this.app;
    if (!weights || !state) return;
    this.featureSection.hidden = !weights.linear;
    if (!weights.linear) return;
    const words = this.featureSearch.value.toLocaleLowerCase();
    const off = new Set(state.off);
    this.off = off;
    const size = (j) => Math.abs(weights.coef[j] * weights.unit[j]);
    const found = weights.names.map((_, j) => j).filter((j) => weights.names[j].toLocaleLowerCase().includes(words));
    if (!this.moving) found.sort((a, b) => off.has(a) - off.has(b) || size(b) - size(a) || a - b);
    const same = this.once("features", [found, state.off, state.signs, state.read_only, words]);
    this.shown = found;
    this.featureMost = Math.max(1e-300, ...found.slice(0, 2000).map(size));
    if (same) {
      for (const [index, element] of this.features.rows) this.fillFeature(element, found[index]);
      return;
    }
    this.featureCount.textContent = off.size ? `${whole(weights.names.length - off.size)} of ${whole(weights.names.length)} on` : whole(weights.names.length);
    this.allOn.hidden = !off.size;
    this.featureSearch.hidden = weights.names.length <= 15;
    this.featureBox.style.height = `${Math.min(found.length, 12) * FEATURE + 2}px`;
    this.features.update(found.length);
  }

  featureRow(index) {
    const j = this.shown[index];
    const { state, weights } = this.app;
    const on = !this.off.has(j);
    const sign = state.signs[j] ?? 0;
    const name = weights.names[j];
    const look = `${on} ${sign} ${name}`;
    const known = this.featureRows.get(j);
    if (known?.look === look) {
      this.fillFeature(known, j);
      return known;
    }
    const element = h("div", { class: `wb-feature${on ? "" : " wb-off"}`, role: "listitem" },
      h("input", { type: "checkbox", role: "switch", class: "wb-switch", checked: on, disabled: state.read_only, "aria-label": `${name} on`,
        onchange: () => this.app.do({ do: "features", [on ? "off" : "on"]: [j] }).then((done) => done || this.drawFeatures()) }),
      h("bdi", { class: "wb-feature-name", title: name }, name),
      h("button", { type: "button", class: `wb-sign${sign ? " wb-on" : ""}`, disabled: state.read_only || !on, title: { 0: "No constraint on the sign", 1: "Weight at least 0", "-1": "Weight at most 0" }[sign],
        "aria-label": `Sign of ${name}: ${{ 0: "free", 1: "not negative", "-1": "not positive" }[sign]}`,
        onclick: () => this.app.do({ do: "sign", feature: j, sign: { 0: 1, 1: -1, "-1": 0 }[sign] }) }, { 0: "±", 1: "≥0", "-1": "≤0" }[sign]),
      h("span", { class: "wb-weight" }, h("i")), h("span", { class: "wb-weight-value" }));
    element.look = look;
    this.featureRows.set(j, element);
    if (this.featureRows.size > 300) this.featureRows.delete(this.featureRows.keys().next().value);
    this.fillFeature(element, j);
    return element;
  }

  fillFeature(element, j) {
    const { weights } = this.app;
    const value = weights.coef[j] * weights.unit[j];
    const bar = element.querySelector(".wb-weight i");
    const share = Math.min(1, Math.abs(value) / this.featureMost);
    bar.style.transform = `scaleX(${value < 0 ? -share : share})`; // a transform needs no layout
    bar.className = value < 0 ? "wb-minus" : "wb-plus";
    setText(element.lastChild, this.off.has(j) ? "off" : signed(value, Math.abs(value) < 0.0995 ? 3 : 2));
    element.lastChild.title = `weight ${weights.coef[j]}`;
  }

  drawPreferences() {
    const { state } = this.app;
    if (this.once("preferences", [state.preferences, state.read_only])) return;
    if (!state.preferences.length) {
      replace(this.preferences, h("p", { class: "wb-soft wb-hint" }, "Drag a document above another one, or press alt + ↑: the model is refitted with that preference, exactly."));
      return;
    }
    const number = (p, name) => h("input", { type: "number", class: "wb-number", step: "any", min: name === "weight" ? 0 : undefined, value: Number(p[name].toPrecision(4)), "aria-label": `${name} of the preference`, disabled: state.read_only,
      onchange: (event) => this.app.do({ do: "weigh", id: p.id, [name]: Number(event.target.value) }) });
    const name = (doc) => h("bdi", { title: `${doc.id} ${doc.title}` }, doc.title || doc.id);
    replace(this.preferences, [...state.preferences].reverse().slice(0, 200).map((p) => h("div", { class: `wb-preference${p.difference > 0 ? " wb-met" : ""}` },
      h("div", { class: "wb-preference-text", onclick: () => this.app.show(p.query) }, name(p.above), h("span", { class: "wb-soft" }, "above"), name(p.below)),
      h("div", { class: "wb-preference-tools" },
        h("span", { class: "wb-state", title: "difference of the scores now" }, icon(p.difference > 0 ? "check" : "close"), signed(p.difference, 2)),
        h("label", {}, "weight", number(p, "weight")), h("label", {}, "margin", number(p, "margin")),
        button("Remove the preference", { name: "close", class: "wb-ghost wb-tiny", disabled: state.read_only, onclick: () => this.app.do({ do: "drop", id: p.id }) })))));
  }

  drawSnapshots() {
    const { state, baseline } = this.app;
    if (this.once("snapshots", [state.snapshots, baseline, state.read_only])) return;
    replace(this.snapshots, state.snapshots.map((kept) => h("div", { class: `wb-snapshot${kept.id === baseline ? " wb-on" : ""}` },
      h("label", { class: "wb-snapshot-name", title: "Compare places and gains with this one" },
        h("input", { type: "radio", name: "wb-baseline", checked: kept.id === baseline, onchange: () => {
          this.app.baseline = kept.id;
          this.app.refresh();
        } }), h("bdi", {}, kept.name), kept.current ? h("span", { class: "wb-tag" }, "now") : null),
      h("span", { class: "wb-snapshot-mean" }, fixed(kept.mean, 4)),
      kept.outside || state.read_only ? null : button(`Rename ${kept.name}`, { name: "pencil", class: "wb-ghost wb-tiny", onclick: () => openSnapshot(this.app, kept) }),
      kept.outside || state.read_only ? null : h("button", { type: "button", class: "wb-small", disabled: kept.current, onclick: () => this.app.do({ do: "restore", snapshot: kept.id }, { say: `Restored ${kept.name}` }) }, "Restore"),
      kept.id > 2 && !kept.outside && !state.read_only ? button(`Delete ${kept.name}`, { name: "close", class: "wb-ghost wb-tiny", onclick: () => this.app.do({ do: "discard", snapshot: kept.id }) }) : null)));
  }
}

// Arrows go through the choices of a group, as radio buttons do.
function arrows(event) {
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (!step || event.altKey) return;
  const options = [...event.currentTarget.children];
  const next = options[(options.indexOf(event.target) + step + options.length) % options.length];
  next.focus();
  next.click();
  event.preventDefault();
  event.stopPropagation();
}

// Two or three round numbers within a range.
function ticks(low, high) {
  if (!finite(low) || !(high > low)) return [];
  const power = 10 ** Math.floor(Math.log10((high - low) / 2));
  const step = [5, 2, 1].map((digit) => digit * power).find((size) => (high - low) / size >= 2) ?? power;
  const first = Math.ceil(low / step);
  return Array.from({ length: Math.floor(high / step) - first + 1 }, (_, i) => (first + i) * step);
}
