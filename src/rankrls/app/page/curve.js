// The held-out curve over alpha with its error band, and the slider below it.

import uPlot from "./vendor/uplot.js";
import { finite, h, metricName, setText, short } from "./dom.js";

const STEPS = 1000; // of the slider
const PAD = 10; // pixels right of the curve; as many as half the thumb of the slider
const AXIS = 38; // pixels left of it, for the numbers; style.css knows it too
const HEIGHT = 150;

export class Curve {
  constructor(app) {
    this.app = app;
    this.moving = false;
    this.value = h("output", { class: "wb-alpha-value" });
    this.best = h("button", { type: "button", class: "wb-small", title: "Go to the alpha with the best held-out mean", onclick: () => this.set(app.curve?.best) }, "Best");
    this.plotBox = h("div", { class: "wb-plot", "aria-hidden": "true" });
    this.cursor = h("i", { class: "wb-cursor", "aria-hidden": "true" }); // the present alpha, above the drawn curve
    this.dot = h("i", { class: "wb-cursor-dot", "aria-hidden": "true", hidden: true });
    this.note = h("p", { class: "wb-curve-note", hidden: true });
    this.name = h("p", { class: "wb-curve-name" });
    this.slider = h("input", { type: "range", min: 0, max: STEPS, step: 1, class: "wb-slider", "aria-label": "Regularisation alpha",
      oninput: () => {
        this.moving = true;
        app.follow(this.alphaAt(Number(this.slider.value)));
      },
      onchange: () => {
        this.moving = false;
        this.set(this.alphaAt(Number(this.slider.value)));
      } });
    this.tools = h("span", { class: "wb-section-tools" }, h("span", { class: "wb-soft" }, "alpha"), this.value, this.best);
    this.element = h("div", { class: "wb-curve" }, this.name, h("div", { class: "wb-curve-box" }, this.plotBox, this.cursor, this.dot, this.note), this.slider);
    app.root.addEventListener("theme", () => setTimeout(() => this.restyle()));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.restyle());
    new ResizeObserver(() => this.resize()).observe(this.plotBox);
  }

  // ---------------------------------------------------------------- alpha

  get range() {
    return this.app.state.alpha_range.map(Math.log10);
  }

  alphaAt(step) {
    const [low, high] = this.range;
    return 10 ** (low + ((high - low) * step) / STEPS);
  }

  stepAt(alpha) {
    const [low, high] = this.range;
    return Math.max(0, Math.min(STEPS, Math.round((STEPS * (Math.log10(alpha) - low)) / (high - low))));
  }

  async set(alpha) {
    if (!finite(alpha) || alpha <= 0) return;
    await this.app.do({ do: "set", name: "alpha", value: alpha }, { say: `alpha ${short(alpha)}` });
  }

  // The mean of the curve between its points.
  at(alpha) {
    const { alphas, mean } = this.app.curve ?? {};
    if (!mean) return null;
    const x = Math.log(alpha);
    let i = 1;
    while (i < alphas.length - 1 && Math.log(alphas[i]) < x) i++;
    const [a, b] = [Math.log(alphas[i - 1]), Math.log(alphas[i])];
    const share = Math.max(0, Math.min(1, (x - a) / (b - a)));
    return mean[i - 1] + share * (mean[i] - mean[i - 1]);
  }

  // Show an alpha: while the slider moves, and after every change.
  follow(alpha) {
    setText(this.value, short(alpha));
    this.slider.setAttribute("aria-valuetext", `alpha ${short(alpha)}`);
    this.point();
  }

  draw() {
    const { state } = this.app;
    if (!this.moving) this.slider.value = this.stepAt(state.settings.alpha);
    this.slider.disabled = state.read_only;
    this.follow(this.app.alpha ?? state.settings.alpha);
  }

  // ---------------------------------------------------------------- curve

  drawCurve() {
    const { curve, state } = this.app;
    if (!curve || !state) return;
    this.best.disabled = !finite(curve.best) || state.read_only;
    const x = Array.from(curve.alphas, Math.log10);
    const known = Boolean(curve.mean) && Array.from(curve.mean).some(finite);
    this.drawNote(known, curve);
    setText(this.name, `${metricName(curve.metric)} of held-out queries, by alpha`);
    const mean = known ? Array.from(curve.mean, (v) => (finite(v) ? v : null)) : x.map(() => null);
    const error = known ? Array.from(curve.error, (v) => (finite(v) ? v : 0)) : x.map(() => 0);
    this.data = [x, mean, mean.map((v, i) => (v === null ? null : v + error[i])), mean.map((v, i) => (v === null ? null : v - error[i]))];
    const text = JSON.stringify([this.data, curve.best]);
    if (!this.plot) this.makePlot();
    else if (text !== this.drawn) this.plot.setData(this.data);
    this.drawn = text;
    this.point();
  }

  drawNote(known, { done }) {
    this.note.hidden = known;
    this.cursor.hidden = !known;
    const text = done < 1 ? "Queries are being held out…" : "The curve comes with judgments: two different grades in a query.";
    setText(this.note, text);
  }

  // Line and dot of the present alpha, without drawing the curve again.
  point() {
    const { plot, app } = this;
    if (!plot || !app.curve || this.left === undefined) return;
    const alpha = app.alpha ?? app.state.settings.alpha;
    const value = this.at(alpha);
    const x = this.left + plot.valToPos(Math.log10(alpha), "x");
    this.cursor.style.transform = `translateX(${x}px)`;
    this.dot.hidden = !finite(value);
    if (finite(value)) this.dot.style.transform = `translate(${x}px, ${this.top + plot.valToPos(value, "y")}px)`;
  }

  makePlot() {
    const width = this.plotBox.clientWidth;
    if (!width || !this.data) return;
    const css = getComputedStyle(this.app.root);
    const color = (name) => css.getPropertyValue(name).trim();
    const font = `11px ${css.getPropertyValue("--wb-font").trim()}`;
    const plain = { points: { show: false } };
    this.plot = new uPlot({
      width, height: HEIGHT, padding: [8, PAD, 0, 0], legend: { show: false }, cursor: { show: false }, select: { show: false },
      scales: { x: { time: false }, y: { range: (_, low, high) => (finite(low) && high > low ? [low - 0.08 * (high - low), high + 0.08 * (high - low)] : [0, 1]) } },
      axes: [
        { stroke: color("--wb-soft"), font, size: 26, grid: { show: false }, ticks: { show: false }, space: 55, values: (_, places) => places.map((v) => (Number.isInteger(v) ? `1e${v}`.replace("-", "−") : "")) },
        { stroke: color("--wb-soft"), font, size: AXIS, gap: 4, grid: { stroke: color("--wb-line"), width: 1 }, ticks: { show: false }, splits: (_, __, low, high) => (this.known() ? ticks(low, high) : []),
          values: (_, places) => places.map((v) => v.toFixed(places.length > 1 && places[1] - places[0] < 0.0095 ? 3 : 2).replace("-", "−")) },
      ],
      series: [{}, { stroke: color("--wb-accent"), width: 2, ...plain }, { stroke: "transparent", ...plain }, { stroke: "transparent", ...plain }],
      bands: [{ series: [2, 3], fill: color("--wb-band") }],
      hooks: { draw: [(plot) => this.overlay(plot, color("--wb-line-strong"))] },
    }, this.data, this.plotBox);
  }

  known() {
    return this.data[1].some(finite);
  }

  // The curve has been drawn: the line of the present alpha goes where it is now, the best one is dashed.
  overlay({ ctx, bbox, valToPos }, color) {
    const { best } = this.app.curve;
    const ratio = devicePixelRatio || 1;
    this.left = bbox.left / ratio;
    this.top = bbox.top / ratio;
    Object.assign(this.cursor.style, { top: `${this.top}px`, height: `${bbox.height / ratio}px` });
    this.point();
    if (!finite(best)) return;
    const x = valToPos(Math.log10(best), "x", true);
    ctx.save();
    ctx.strokeStyle = color;
    ctx.lineWidth = 1.5 * ratio;
    ctx.setLineDash([3 * ratio, 3 * ratio]);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.restore();
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
    else if (this.plot.width !== width) this.plot.setSize({ width, height: HEIGHT });
  }
}

// Two or three round numbers within a range.
function ticks(low, high) {
  if (!finite(low) || !(high > low)) return [];
  const power = 10 ** Math.floor(Math.log10((high - low) / 2));
  const step = [5, 2, 1].map((digit) => digit * power).find((size) => (high - low) / size >= 2) ?? power;
  const first = Math.ceil(low / step);
  return Array.from({ length: Math.floor(high / step) - first + 1 }, (_, i) => (first + i) * step);
}
