// Elements, numbers and lists. Text from data only ever becomes a text node.

export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "class") element.className = value;
    else if (key === "style") Object.assign(element.style, value);
    else if (key in element && !key.startsWith("aria") && key !== "list" && key !== "role") element[key] = value;
    else element.setAttribute(key, value === true ? "" : value);
  }
  add(element, children);
  return element;
}

export function add(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

export function replace(element, ...children) {
  element.replaceChildren();
  return add(element, children);
}

// The same for what can have the focus: it stays with the element of the same data-key.
export function redraw(element, ...children) {
  const active = element.getRootNode().activeElement;
  const key = element.contains(active) ? active.dataset.key : undefined;
  replace(element, ...children);
  if (key !== undefined) element.querySelector(`[data-key="${key}"]`)?.focus({ preventScroll: true });
}

// Text is set only where it differs, in the node that is there: a new node costs a layout even if it reads the same.
export function setText(element, text) {
  const node = element.firstChild;
  if (node === null) {
    if (text !== "") element.append(text);
  } else if (node.nodeType === Node.TEXT_NODE && node === element.lastChild) {
    if (node.data !== text) node.data = text;
  } else element.textContent = text;
}

const SHAPES = {
  undo: "M7 8H15a5 5 0 0 1 0 10H10M7 8l4-4M7 8l4 4",
  redo: "M17 8H9a5 5 0 0 0 0 10H14M17 8l-4-4M17 8l-4 4",
  camera: "M4 8h4l1.5-2h5L16 8h4v11H4zM12 16.5a3 3 0 1 0 0-6 3 3 0 0 0 0 6z",
  compare: "M8 4v16M16 4v16M3 8l5-4M21 16l-5 4",
  download: "M12 4v11M7.5 11l4.5 4.5L16.5 11M5 20h14",
  sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 3v2M12 19v2M3 12h2M19 12h2M5.6 5.6 7 7M17 17l1.4 1.4M5.6 18.4 7 17M17 7l1.4-1.4",
  moon: "M19 14.5A7.5 7.5 0 0 1 9.5 5 7.5 7.5 0 1 0 19 14.5z",
  help: "M9.2 9.2a2.8 2.8 0 1 1 3.9 2.6c-.8.4-1.1.9-1.1 1.9M12 17.2v.1",
  search: "M11 5a6 6 0 1 0 0 12 6 6 0 0 0 0-12zM15.5 15.5 20 20",
  grip: "M9 6v.1M15 6v.1M9 12v.1M15 12v.1M9 18v.1M15 18v.1",
  close: "M6 6l12 12M18 6 6 18",
  shuffle: "M4 7h3l9 10h4M4 17h3l2.5-2.8M13.5 9.8 16 7h4M17 4l3 3-3 3M17 14l3 3-3 3",
  eye: "M3 12s3.5-6 9-6 9 6 9 6-3.5 6-9 6-9-6-9-6zM12 14.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5z",
  forget: "M5 5l14 14M9 5h6l1 3M6 8h12l-1 12H7z",
  pin: "M12 21s6-5.3 6-10a6 6 0 1 0-12 0c0 4.7 6 10 6 10z",
  upload: "M12 15V4M7.5 8.5 12 4l4.5 4.5M5 20h14",
  list: "M8 6h12M8 12h12M8 18h12M4 6v.1M4 12v.1M4 18v.1",
  rank: "M5 6h14M5 12h10M5 18h6",
  number: "M9 4 7 20M17 4l-2 16M4 9h16M3.5 15h16",
  sliders: "M4 7h9M17 7h3M15 5v4M4 17h3M11 17h9M9 15v4",
  pencil: "M5 19l1-4L16 5l3 3L9 18zM14 7l3 3",
  check: "M5 12.5 10 17l9-10",
  select: "M4 5h16v14H4zM8 12l3 3 5-6",
};

export function icon(name) {
  const ns = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(ns, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("class", "wb-icon");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(ns, "path");
  path.setAttribute("d", SHAPES[name] ?? "");
  svg.append(path);
  return svg;
}

export function button(label, { name, text, ...props } = {}) {
  const shown = text === undefined ? null : h("span", { class: "wb-button-text" }, text);
  return h("button", { type: "button", title: label, "aria-label": label, ...props }, name ? icon(name) : null, shown);
}

// ------------------------------------------------------------------ numbers

export const finite = (value) => typeof value === "number" && Number.isFinite(value);
const minus = (text) => (Number(text) === 0 ? text.replace("-", "") : text.replace("-", "−"));

// Decimals that show a number of this size to about three digits.
export const digitsFor = (size, least = 2) => (size > 0 && Number.isFinite(size) ? Math.max(least, Math.min(9, 2 - Math.floor(Math.log10(size)))) : least);
export const fixed = (value, digits = 3) => (finite(value) ? minus(value.toFixed(digits)) : "–");
const thousands = new Intl.NumberFormat("en");
export const count = (number, one, many = `${one}s`) => `${whole(number)} ${number === 1 ? one : many}`;
export const whole = (value) => (finite(value) ? thousands.format(value) : "–");

const NAMES = { ndcg: "NDCG", dcg: "DCG", mrr: "MRR", rbo: "RBO", err: "ERR", auc: "AUC", kendall_tau_b: "Kendall tau-b" };

export function metricName(name) {
  const [base, cutoff] = name.split("@");
  const text = NAMES[base] ?? capital(base.replaceAll("_", " "));
  return cutoff ? `${text}@${cutoff}` : text;
}

export function short(value) {
  if (!finite(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e5 || size < 1e-3) return value.toExponential(1).replace("e+", "e").replaceAll("-", "−");
  return minus(String(Number(value.toPrecision(3))));
}

// Ids that are nothing but a number say what they are the number of.
export const named = (text, noun) => (/^\d+$/.test(text) ? `${noun} ${text}` : text);

// What a document is called: its title, or its id where there is none, or only a note as LETOR has it ("inc = 1 prob = 0.2").
const NOTE = /^[^\s=]+ ?= ?[^\s=]+(\s+[^\s=]+ ?= ?[^\s=]+)*$/;
const hasTitle = ({ title }) => Boolean(title) && !NOTE.test(title);
export const docName = (doc) => (hasTitle(doc) ? doc.title : named(doc.id, "Document"));
export const docNote = (doc) => (hasTitle(doc) ? doc.id : doc.title); // what else there is to say
export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

// Whether a change of a metric is good, as a class; what would be rounded away is neither.
export function verdict(change, greaterIsBetter = true) {
  if (!finite(change) || Math.abs(change) < 5e-5) return "";
  return change > 0 === greaterIsBetter ? "wb-good" : "wb-bad";
}

export function signed(value, digits = 3) {
  if (!finite(value)) return "–";
  const text = Math.abs(value).toFixed(digits);
  if (Number(text) === 0) return text;
  return (value > 0 ? "+" : "−") + text;
}

// ------------------------------------------------------------------ lists of any length

const BEYOND = 4; // rows above and below what is in sight that are drawn as well

export class VirtualList {
  // Draws the rows in sight only; `draw(index)` makes an element for a row.
  constructor(box, rowHeight, draw) {
    this.box = box;
    this.rowHeight = rowHeight;
    this.draw = draw;
    this.count = 0;
    this.space = h("div", { class: "wb-space", role: "presentation" });
    box.append(this.space);
    this.rows = new Map();
    this.pending = false;
    this.top = 0; // of what is in sight, and its height: kept, because asking for them while drawing costs a layout
    this.height = 0;
    box.addEventListener("scroll", () => {
      this.top = box.scrollTop;
      this.later();
    }, { passive: true });
    new ResizeObserver(() => {
      this.height = box.clientHeight;
      this.later();
    }).observe(box);
  }

  later() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      this.paint();
    });
  }

  // Every row may have changed. `draw` may give an element that is here already: then it only moves.
  update(count) {
    this.count = count;
    this.space.style.height = `${count * this.rowHeight}px`;
    const old = this.rows;
    this.rows = new Map();
    this.paint();
    const kept = new Set(this.rows.values());
    for (const element of old.values()) if (!kept.has(element)) element.remove();
  }

  paint() {
    const first = Math.max(0, Math.floor(this.top / this.rowHeight) - BEYOND);
    const last = Math.min(this.count, Math.ceil((this.top + this.height) / this.rowHeight) + BEYOND);
    for (const [index, element] of this.rows) {
      if (index < first || index >= last) {
        element.remove();
        this.rows.delete(index);
      }
    }
    for (let index = first; index < last; index++) {
      if (this.rows.has(index)) continue;
      const element = this.draw(index);
      element.style.transform = `translateY(${index * this.rowHeight}px)`;
      this.rows.set(index, element);
      if (element.parentNode !== this.space) this.space.append(element);
    }
  }

  reveal(index) {
    const top = index * this.rowHeight;
    if (top < this.top) this.scroll(top);
    else if (top + this.rowHeight > this.top + this.height) this.scroll(top + this.rowHeight - this.height);
    this.paint();
  }

  scroll(top) {
    this.box.scrollTop = top;
    this.top = this.box.scrollTop;
  }
}
