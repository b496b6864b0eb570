// Windows above the page: snapshots side by side, files in and out, metrics, keys.

import { button, finite, fixed, h, metricName, replace, short, signed, whole } from "./dom.js";
import { chipClass } from "./documents.js";

function dialog(app, title, wide = false) {
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

export function openCompare(app) {
  const { body } = dialog(app, "Compare snapshots", true);
  const kept = [{ id: 0, name: "Now" }, ...app.state.snapshots];
  const chosen = new Set([app.baseline, 0]);
  const result = h("div", { class: "wb-compare", "aria-live": "polite" });
  const load = async () => {
    if (chosen.size < 2) return replace(result, h("p", { class: "wb-soft" }, "Choose at least two."));
    replace(result, h("p", { class: "wb-soft" }, "Comparing…"));
    const of = kept.map((one) => one.id).filter((id) => chosen.has(id)).sort((a, b) => (a === app.baseline ? -1 : b === app.baseline ? 1 : a === 0 ? 1 : b === 0 ? -1 : a - b));
    try {
      drawCompare(app, result, await app.api.get("compare", { of: of.join(",") }), body);
    } catch (error) {
      replace(result, h("p", { class: "wb-bad" }, error.message));
    }
  };
  replace(body, h("div", { class: "wb-chips", role: "group", "aria-label": "Snapshots" }, kept.map((one) => h("label", { class: "wb-chip-choice" },
    h("input", { type: "checkbox", checked: chosen.has(one.id), onchange: (event) => {
      if (event.target.checked) chosen.add(one.id);
      else chosen.delete(one.id);
      load();
    } }), h("bdi", {}, one.name)))), result);
  load();
}

function drawCompare(app, box, found, body) {
  const [first, ...others] = found.snapshots;
  const best = (metric) => Math.max(...found.snapshots.map((one) => one.means[metric] ?? -Infinity));
  const table = h("table", { class: "wb-table" },
    h("thead", {}, h("tr", {}, h("th", {}, ""), found.metrics.map((metric) => h("th", {}, metricName(metric))), h("th", { title: "documents without a judgment among the first ten" }, "unjudged in top 10"))),
    h("tbody", {}, found.snapshots.map((one) => h("tr", {}, h("th", {}, h("bdi", {}, one.name)),
      found.metrics.map((metric) => h("td", { class: one.means[metric] === best(metric) ? "wb-strong" : "" }, fixed(one.means[metric], 4), finite(one.errors[metric]) ? h("small", {}, ` ± ${fixed(one.errors[metric], 3)}`) : null,
        one === first ? null : h("small", { class: `wb-delta ${deltaClass(one.means[metric] - first.means[metric])}` }, ` ${signed(one.means[metric] - first.means[metric], 4)}`))),
      h("td", {}, fixed(one.unjudged, 2))))));
  const go = (query) => {
    body.closest("dialog").close();
    app.show(query);
    app.showTab("documents");
  };
  const line = (one) => h("li", {}, h("button", { type: "button", class: "wb-link", title: one.query_id, onclick: () => go(one.query) }, h("bdi", {}, one.query_id)),
    h("span", { class: "wb-soft" }, `${fixed(one.before, 3)} → ${fixed(one.after, 3)}`), h("span", { class: `wb-delta ${deltaClass(one.after - one.before)}` }, signed(one.after - one.before, 3)));
  const mover = (one) => h("li", {}, h("span", { class: `wb-chip ${chipClass(one.grade, app.state.grade_range)}` }, one.grade === null ? "·" : short(one.grade)),
    h("button", { type: "button", class: "wb-link", title: one.title || one.id, onclick: () => go(one.query) }, h("bdi", {}, one.title || one.id)), h("span", { class: "wb-soft" }, h("bdi", {}, one.query_id)),
    h("span", { class: "wb-delta" }, `${one.before} → ${one.after}`));
  const none = h("p", { class: "wb-soft" }, "None.");
  const listed = (title, lines, draw) => h("section", {}, h("h4", {}, title), lines.length ? h("ul", { class: "wb-lines" }, lines.map(draw)) : none.cloneNode(true));
  replace(box, h("div", { class: "wb-table-box" }, table), found.pairs.map((pair, number) => {
    const total = Math.max(1, pair.wins + pair.losses + pair.same);
    const part = (count, name, text) => {
      const element = h("span", { class: name, title: `${text}: ${whole(count)}` }, count / total > 0.06 ? whole(count) : "");
      element.style.flexGrow = String(count);
      return element;
    };
    return h("article", { class: "wb-pair" },
      h("h3", {}, h("bdi", {}, others[number].name), h("span", { class: "wb-soft" }, " against "), h("bdi", {}, first.name)),
      h("div", { class: "wb-wins", role: "img", "aria-label": `${pair.wins} queries better, ${pair.same} the same, ${pair.losses} worse` },
        part(pair.wins, "wb-win", "better"), part(pair.same, "wb-same", "the same"), part(pair.losses, "wb-loss", "worse")),
      h("p", { class: "wb-facts" },
        h("span", {}, h("b", {}, whole(pair.wins)), " queries better, ", h("b", {}, whole(pair.losses)), " worse", finite(pair.p) ? `, p ${pair.p < 0.001 ? "< 0.001" : `= ${fixed(pair.p, 3)}`}` : ""),
        h("span", {}, "Jaccard@10 ", h("b", {}, fixed(pair.jaccard, 3))), h("span", {}, "RBO ", h("b", {}, fixed(pair.rbo, 3))), h("span", {}, "reversals in top 10 ", h("b", {}, fixed(pair.reversals, 2)))),
      h("div", { class: "wb-columns" }, listed("Gained most", pair.gained, line), listed("Lost most", pair.lost, line), listed("Biggest movers", pair.movers, mover)));
  }));
}

const deltaClass = (value) => (!finite(value) || Math.abs(value) < 5e-5 ? "" : value > 0 ? "wb-good" : "wb-bad");

const EXPORTS = [
  ["Judgments", [["judgments", "CSV", "query,docid,rating"], ["qrels", "qrels", "TREC judgments"], ["preferences", "Preferences", "CSV"]]],
  ["Model", [["model", "Model file", "for rankrls.load"], ["onnx", "ONNX", "graph"], ["json", "JSON", "weights"], ["opensearch", "OpenSearch", "LTR plugin"], ["elasticsearch", "Elasticsearch", "LTR plugin"], ["solr", "Solr", "LTR"], ["vespa", "Vespa", "rank profile"], ["svmrank", "SVMrank", "weights"]]],
  ["Session", [["script", "Python", "the session as a script"], ["journal", "Journal", "every action"], ["run", "TREC run", "the rankings"], ["report", "Report", "one HTML page"]]],
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
  const file = h("input", { type: "file", accept: ".csv,.qrels,.txt,text/plain,text/csv", "aria-label": "File of judgments", disabled: app.state.read_only, onchange: async () => {
    const [chosen] = file.files;
    if (!chosen) return;
    if (chosen.size > 32e6) return (note.textContent = "A file of judgments has at most 32 MB.");
    try {
      const got = await app.api.post("judgments", await chosen.text());
      note.textContent = `${whole(got.judged)} judgments taken over${got.unknown ? `, ${whole(got.unknown)} of documents that are not here` : ""}.`;
      app.refresh();
    } catch (error) {
      note.textContent = error.message;
    }
  } });
  replace(body, EXPORTS.map(([title, lines]) => h("section", { class: "wb-export" }, h("h3", {}, title),
    h("div", { class: "wb-export-list" }, lines.map(([what, text, hint]) => h("button", { type: "button", "data-export": what, onclick: () => fetchFile(what, text) }, h("b", {}, text), h("small", {}, hint)))))),
    h("section", { class: "wb-export" }, h("h3", {}, "Take judgments over"), h("p", { class: "wb-soft" }, "CSV with the columns query,docid,rating, or TREC qrels."), file), note);
}

export function openMetrics(app) {
  const { element, body } = dialog(app, "Metrics");
  const chosen = [...app.state.settings.metrics];
  const box = h("div", { class: "wb-metric-list" });
  const draw = () => replace(box, app.state.available_metrics.map((name) => {
    const place = chosen.indexOf(name);
    return h("label", { class: "wb-chip-choice" }, h("input", { type: "checkbox", checked: place >= 0, onchange: () => {
      if (place >= 0) chosen.splice(place, 1);
      else chosen.push(name);
      draw();
    } }), metricName(name), place === 0 ? h("span", { class: "wb-tag" }, "curve") : place > 0 ? h("button", { type: "button", class: "wb-link", onclick: () => {
      chosen.splice(place, 1);
      chosen.unshift(name);
      draw();
    } }, "draw") : null);
  }));
  draw();
  replace(body, h("p", { class: "wb-soft" }, "The first one draws the curve and sorts the queries; up to eight are shown at the top."), box,
    h("div", { class: "wb-form" }, h("button", { type: "button", class: "wb-primary", onclick: async () => {
      if (await app.do({ do: "set", name: "metrics", value: chosen })) element.close();
    } }, "Use these")));
}

export function openHelp(app) {
  const { body } = dialog(app, "Keyboard");
  const keys = [["j  k", "next, previous query"], ["/", "find a query"], ["↑  ↓", "move through documents"], ["0 … 9", "grade the document, go to the next one without a grade"], ["−", "remove the judgment"],
    ["alt + ↑  ↓", "prefer the document to the one above, or below"], ["enter", "choose a document; two explain each other"], ["u  shift + u", "undo, redo"], ["s", "take a snapshot"], ["c", "compare snapshots"],
    ["e", "import and export"], ["x", "un-learn the query, or learn it again"], ["h", "hide scores while judging"], ["ctrl + click", "select several queries"], ["?", "this list"]];
  replace(body, h("dl", { class: "wb-keys" }, keys.map(([key, text]) => [h("dt", {}, key.split("  ").map((one) => h("kbd", {}, one))), h("dd", {}, text)])));
}
