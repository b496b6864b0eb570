// Windows above the page: a name for a snapshot, files in and out, metrics, keys.

import { button, h, metricName, replace, whole } from "./dom.js";

export function dialog(app, title, wide = false) {
  const body = h("div", { class: "wb-dialog-body", tabindex: -1 });
  const element = h("dialog", { class: `wb-dialog${wide ? " wb-dialog-wide" : ""}`, "aria-label": title },
    h("div", { class: "wb-dialog-head" }, h("h2", {}, title), button("Close", { name: "close", class: "wb-ghost", onclick: () => element.close() })), body);
  element.addEventListener("close", () => element.remove());
  element.addEventListener("click", (event) => {
    if (event.target === element) element.close();
  });
  app.root.append(element);
  element.showModal();
  body.focus();
  return { element, body };
}

// Keep the present state under a name, or give a snapshot another name.
export function openSnapshot(app, kept = null) {
  if (app.state.read_only) return app.toast("This workbench is open for reading only.", "bad");
  const { element, body } = dialog(app, kept ? "Rename the snapshot" : "Take a snapshot");
  const count = app.state.snapshots.length;
  const action = (name) => (kept ? { do: "rename", snapshot: kept.id, name } : { do: "snapshot", name });
  const input = h("input", { type: "text", class: "wb-text", value: kept?.name ?? `Snapshot ${count}`, maxLength: 200, "aria-label": "Name of the snapshot" });
  const form = h("form", { class: "wb-form", onsubmit: async (event) => {
    event.preventDefault();
    if (await app.do(action(input.value), { say: kept ? "Renamed" : "Snapshot taken" })) element.close();
  } }, input, h("button", { type: "submit", class: "wb-primary" }, "Keep"));
  replace(body, kept ? null : h("p", { class: "wb-soft" }, "Settings, judgments and preferences as they are now, under a name. You can compare it and come back to it."), form);
  input.select();
}

const EXPORTS = [
  ["Judgments", [["judgments", "CSV", "query, docid, rating"], ["qrels", "qrels", "TREC judgments"], ["preferences", "Preferences", "CSV"]]],
  ["Model", [["model", "Model file", "for rankrls.load"], ["onnx", "ONNX", "graph"], ["json", "JSON", "weights"], ["opensearch", "OpenSearch", "LTR plugin"], ["elasticsearch", "Elasticsearch", "LTR plugin"], ["solr", "Solr", "LTR"], ["vespa", "Vespa", "rank profile"], ["svmrank", "SVMrank", "weights"]]],
  ["Session", [["script", "Python", "a script"], ["journal", "Journal", "every action"], ["run", "TREC run", "the rankings"], ["report", "Report", "one HTML page"]]],
];

export function openExport(app) {
  const { body } = dialog(app, "Import and export");
  const note = h("p", { class: "wb-soft", "aria-live": "polite" });
  const fetchFile = async (what, text) => {
    note.textContent = `Making ${text}…`;
    try {
      const { name, blob } = await app.api.file(what);
      const address = URL.createObjectURL(blob);
      const link = h("a", { href: address, download: name });
      link.click();
      setTimeout(() => URL.revokeObjectURL(address), 10000);
      note.textContent = `${name}, ${whole(blob.size)} bytes`;
    } catch (error) {
      note.textContent = error.message;
    }
  };
  const file = h("input", { type: "file", class: "wb-file", accept: ".csv,.qrels,.txt,text/plain,text/csv", "aria-label": "File of judgments", onchange: async () => {
    const [chosen] = file.files;
    if (!chosen) return;
    if (chosen.size > 32e6) return (note.textContent = "A file of judgments has at most 32 MB.");
    try {
      const got = await app.api.post("judgments", await chosen.text());
      note.textContent = `${whole(got.judged)} judgments imported${got.unknown ? `, ${whole(got.unknown)} left out: their documents are not here` : ""}.`;
      app.refresh();
    } catch (error) {
      note.textContent = error.message;
    }
    file.value = "";
  } });
  const taken = app.state.read_only ? null : h("section", { class: "wb-export" }, h("h3", {}, "Import judgments"),
    h("p", { class: "wb-soft" }, "CSV with the columns query,docid,rating, or TREC qrels. A new grade replaces the one before."), file);
  replace(body, EXPORTS.map(([title, lines]) => h("section", { class: "wb-export" }, h("h3", {}, title),
    h("div", { class: "wb-export-list" }, lines.map(([what, text, hint]) => h("button", { type: "button", "data-export": what, onclick: () => fetchFile(what, text) }, h("b", {}, text), h("small", {}, hint)))))),
    taken, note);
}

const MOST_METRICS = 8;

// Families with their cutoffs, and the metrics that have none.
function families(names) {
  const found = new Map();
  for (const name of names) {
    const [base, cutoff] = name.split("@");
    found.set(base, [...(found.get(base) ?? []), [name, cutoff ? `@${cutoff}` : null]]);
  }
  const single = [...found].filter(([, members]) => members.length === 1).map(([base, [[name]]]) => [name, metricName(base)]);
  const rows = [...found].filter(([, members]) => members.length > 1).map(([base, members]) => [metricName(base), members.map(([name, cutoff]) => [name, cutoff ?? "whole list"])]);
  return [...rows, ["Others", single]];
}

export function openMetrics(app) {
  const { element, body } = dialog(app, "Metrics");
  const chosen = [...app.state.settings.metrics];
  const box = h("div", { class: "wb-metric-list" });
  const order = h("ol", { class: "wb-metric-order", "aria-label": "Metrics that are shown" });
  const use = h("button", { type: "button", class: "wb-primary", onclick: async () => {
    if (await app.do({ do: "set", name: "metrics", value: chosen })) element.close();
  } }, "Use these");
  const chip = ([name, text]) => {
    const place = chosen.indexOf(name);
    return h("label", { class: "wb-chip-choice" }, h("input", { type: "checkbox", checked: place >= 0, disabled: place < 0 && chosen.length >= MOST_METRICS, "aria-label": metricName(name), "data-metric": name, onchange: () => {
      if (place >= 0) chosen.splice(place, 1);
      else chosen.push(name);
      draw(name);
    } }), text);
  };
  const draw = (focus) => {
    replace(box, families(app.state.available_metrics).map(([title, members]) => [h("h3", {}, title), h("div", { class: "wb-chips" }, members.map(chip))]));
    replace(order, chosen.map((name, place) => h("li", {}, h("b", {}, metricName(name)), place === 0 ? h("span", { class: "wb-soft" }, "draws the curve, sorts the queries") : h("button", { type: "button", class: "wb-link", onclick: () => {
      chosen.splice(place, 1);
      chosen.unshift(name);
      draw();
    } }, "make first"))));
    use.disabled = !chosen.length || app.state.read_only;
    if (focus) box.querySelector(`[data-metric="${focus}"]`).focus();
  };
  draw();
  replace(body, h("p", { class: "wb-soft" }, `Up to ${MOST_METRICS}, all held out: every query is judged by the model that never saw it.`), box, order, h("div", { class: "wb-form" }, use));
}

export function openHelp(app) {
  const { body } = dialog(app, "Keyboard");
  const keys = [["j  k", "next, previous query"], ["/", "find a query"], ["↑  ↓", "move through documents"], ["0 … 9", "grade the document, go to the next one without a grade"], ["−", "remove the judgment"],
    ["alt + ↑  ↓", "prefer the document to the one above, or below"], ["enter", "choose a document; two explain each other"], ["u  shift + u", "undo, redo"], ["s", "take a snapshot"], ["c", "compare snapshots"],
    ["e", "import and export"], ["x", "un-learn the query, or learn it again"], ["h  r", "hide scores, hide ranks while judging"], ["space  shift + ↓", "in the list of queries: select them, to un-learn together"], ["?", "this list"]];
  replace(body, h("dl", { class: "wb-keys" }, keys.map(([key, text]) => [h("dt", {}, key.split("  ").map((one) => h("kbd", {}, one))), h("dd", {}, text)])));
}
