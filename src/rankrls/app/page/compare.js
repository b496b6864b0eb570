// Snapshots side by side: wins and losses by query, movers, reversals, unjudged documents at the top, overlap.

import { dialog } from "./dialogs.js";
import { docName, finite, fixed, h, metricName, named, replace, short, signed, verdict, whole } from "./dom.js";
import { chipClass } from "./documents.js";

export function openCompare(app) {
  const { body } = dialog(app, "Compare snapshots", true);
  const kept = [...app.state.snapshots, { id: 0, name: "Now" }];
  const chosen = new Set([app.baseline, 0]);
  const result = h("div", { class: "wb-compare", "aria-live": "polite" });
  let asked = 0; // answers may overtake each other: the last question counts
  const load = async () => {
    const mine = ++asked;
    if (chosen.size < 2) return replace(result, h("p", { class: "wb-soft" }, kept.length < 3 && !app.state.read_only ? "There is one state to compare so far: take a snapshot (s), change something, and come back." : "Choose at least two."));
    replace(result, h("p", { class: "wb-soft" }, "Comparing…"));
    const of = kept.map((one) => one.id).filter((id) => chosen.has(id)).sort((a, b) => (a === app.baseline ? -1 : b === app.baseline ? 1 : a === 0 ? 1 : b === 0 ? -1 : a - b));
    try {
      const found = await app.api.get("compare", { of: of.join(",") });
      if (mine === asked) drawCompare(app, result, found, body);
    } catch (error) {
      if (mine === asked) replace(result, h("p", { class: "wb-bad" }, error.message));
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
  const turn = (metric) => (found.greater_is_better[metric] ? 1 : -1);
  const best = (metric) => turn(metric) * Math.max(...found.snapshots.map((one) => (finite(one.means[metric]) ? turn(metric) * one.means[metric] : -Infinity)));
  const change = (one, metric) => (finite(one.means[metric]) && finite(first.means[metric]) ? one.means[metric] - first.means[metric] : null);
  const table = h("table", { class: "wb-table" },
    h("thead", {}, h("tr", {}, h("th", {}), found.metrics.map((metric) => h("th", { scope: "col" }, metricName(metric))), h("th", { scope: "col", title: "Documents without a judgment among the first ten, on average" }, "unjudged in top 10"))),
    h("tbody", {}, found.snapshots.map((one) => h("tr", {}, h("th", { scope: "row" }, h("bdi", {}, one.name), one.outside ? h("small", {}, " scores as given") : null),
      found.metrics.map((metric) => h("td", { class: one.means[metric] === best(metric) ? "wb-strong" : "" }, fixed(one.means[metric], 4), finite(one.errors[metric]) ? h("small", {}, ` ± ${fixed(one.errors[metric], 3)}`) : null,
        one === first ? null : h("small", { class: `wb-delta ${verdict(change(one, metric), found.greater_is_better[metric])}` }, Math.abs(change(one, metric) ?? 0) < 5e-5 ? "" : ` ${signed(change(one, metric), 4)}`))),
      h("td", {}, fixed(one.unjudged, 2))))));
  const go = (query) => {
    body.closest("dialog").close();
    app.show(query);
    app.showTab("documents");
  };
  const line = (one) => h("li", {}, h("button", { type: "button", class: "wb-link", title: one.query_id, onclick: () => go(one.query) }, h("bdi", {}, named(one.query_id, "Query"))),
    h("span", { class: "wb-soft" }, `${fixed(one.before, 3)} → ${fixed(one.after, 3)}`), h("span", { class: `wb-delta ${verdict(one.after - one.before, found.greater_is_better[found.metrics[0]])}` }, signed(one.after - one.before, 3)));
  const mover = (one) => h("li", {}, h("span", { class: `wb-chip ${chipClass(one.grade, app.state.grade_range)}` }, one.grade === null ? "·" : short(one.grade)),
    h("button", { type: "button", class: "wb-link", title: docName(one), onclick: () => go(one.query) }, h("bdi", {}, docName(one))), h("span", { class: "wb-soft" }, h("bdi", {}, named(one.query_id, "Query"))),
    h("span", { class: "wb-delta" }, `${one.before} → ${one.after}`));
  const none = h("p", { class: "wb-soft" }, "None.");
  const listed = (title, lines, draw) => h("section", {}, h("h4", {}, title), lines.length ? h("ul", { class: "wb-lines" }, lines.map(draw)) : none.cloneNode(true));
  const outside = found.snapshots.some((one) => one.outside);
  replace(box, h("div", { class: "wb-table-box" }, table),
    outside ? h("p", { class: "wb-soft wb-hint" }, "A model that was given is judged by its scores as they are; if it was trained on these queries, that flatters it. All others are held out.") : null,
    found.pairs.map((pair, number) => {
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
