"use strict";
(() => {
  const step = Number(document.body.dataset.step), tip = document.getElementById("tip");
  const three = x => x >= 99.95 ? x.toFixed(0) : x >= 9.995 ? x.toFixed(1) : x >= 0.9995 ? x.toFixed(2) : x === 0 ? "0" : x.toPrecision(2);
  const big = x => { for (const [n, m] of [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]) if (x >= n) return three(x / n) + m; return three(x); };
  const time = s => s < 1 ? three(s * 1000) + " ms" : s < 120 ? three(s) + " s" : s < 7200 ? three(s / 60) + " min" : three(s / 3600) + " h";
  const show = (x, u) => u === "s" ? time(x) : u === "$" ? "$" + (x < 1 ? x.toPrecision(3) : big(x)) : big(x) + (u === "%" ? "%" : u && u !== "/s" ? " " + u : u);
  const clock = s => { s = Math.round(s); const h = Math.floor(s / 3600), m = Math.floor(s / 60) % 60; return (h ? h + "h" : "") + (h || m ? m + "m" : "") + (s % 60) + "s"; };

  // The height of a path at each column, as chart paths are written.
  const heights = path => {
    const out = [];
    let x = 0, y = 0;
    const put = () => { if (Number.isInteger(x) && x >= 0) out[x] = y; };
    for (const [, op, rest] of path.getAttribute("d").matchAll(/([a-zA-Z])([^a-zA-Z]*)/g)) {
      const n = (rest.match(/-?\d*\.?\d+/g) || []).map(Number);
      if (op === "M") { [x, y] = n; put(); }
      else if (op === "h") out[Math.max(0, Math.round(x + n[0] / 2 - 0.01))] = y;
      else if (op === "V") y = n[0];
      else if (op === "H") { x = n[0]; put(); }
      else if (op === "l") for (let i = 0; i < n.length; i += 2) for (let k = 0; k < n[i]; k++) { x++; if (k === 0) y += n[i + 1]; put(); }
    }
    return out;
  };
  // Name, unit and values of every curve of a chart; piles are taken apart.
  const cache = new WeakMap();
  const curves = chart => {
    if (cache.has(chart)) return cache.get(chart);
    const out = [];
    for (const plot of chart.querySelectorAll(".plot")) {
      const { u, lo, hi, log } = plot.dataset, a = Number(lo), b = Number(hi);
      const value = y => { const f = (1000 - y) / 1000; return log ? a * Math.pow(b / a, f) : a + (b - a) * f; };
      const of = [...plot.querySelectorAll("path[data-n]")].map(p => ({ name: p.dataset.n, unit: u, pile: p.classList.contains("r"), values: heights(p).map(value) }));
      of.forEach((c, i) => { const below = of[i + 1]; if (c.pile && below && below.pile) c.values = c.values.map((v, k) => Math.max(0, v - (below.values[k] || 0))); });
      out.push(...of.reverse());
    }
    cache.set(chart, out);
    return out;
  };

  const line = (plot, x) => {
    let l = plot.querySelector(".cx");
    if (!l) { l = document.createElementNS(plot.namespaceURI, "line"); l.setAttribute("class", "cx"); l.setAttribute("y1", 0); l.setAttribute("y2", 1000); plot.append(l); }
    l.setAttribute("x1", x); l.setAttribute("x2", x);
  };
  let where = -1, last = null;
  const clear = () => { document.querySelectorAll(".cx").forEach(l => l.remove()); tip.hidden = true; where = -1; last = null; };
  const point = (chart, x, at) => {
    const columns = chart.querySelector(".plot").viewBox.baseVal.width;
    x = Math.max(0, Math.min(columns - 1, x));
    if (x !== where) for (const plot of document.querySelectorAll("details[open] .plot")) line(plot, x);
    if (x !== where || chart !== last) {
      tip.replaceChildren(Object.assign(document.createElement("b"), { textContent: clock(x * step) + " to " + clock((x + 1) * step) }));
      for (const c of curves(chart)) {
        const row = document.createElement("div"), v = c.values[x];
        row.append(Object.assign(document.createElement("span"), { textContent: c.name }), Object.assign(document.createElement("span"), { textContent: v === undefined ? "–" : show(v, c.unit) }));
        tip.append(row);
      }
      tip.hidden = false;
    }
    where = x; last = chart;
    const w = tip.offsetWidth, h = tip.offsetHeight, left = at.x + 16 + w > innerWidth ? Math.max(4, at.x - 16 - w) : at.x + 16;
    tip.style.left = left + "px";
    tip.style.top = Math.max(4, Math.min(innerHeight - h - 4, at.y + 16)) + "px";
  };
  for (const chart of document.querySelectorAll(".chart")) {
    const plots = [...chart.querySelectorAll(".plot")];
    const box = plot => { const m = plot.getScreenCTM(), n = plot.viewBox.baseVal; return { left: m.e - 0.5 * m.a, width: n.width * m.a, top: m.f }; };
    chart.addEventListener("pointermove", e => {
      const plot = plots.find(p => { const b = box(p); return e.clientX <= b.left + b.width + 4; }) || plots.at(-1), b = box(plot), n = plot.viewBox.baseVal.width;
      point(chart, Math.floor((e.clientX - b.left) / b.width * n), { x: e.clientX, y: e.clientY });
    });
    chart.addEventListener("pointerleave", clear);
    chart.addEventListener("blur", clear);
    chart.addEventListener("keydown", e => {
      const n = plots[0].viewBox.baseVal.width, by = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -n, End: n }[e.key];
      if (e.key === "Escape") return clear();
      if (!by) return;
      e.preventDefault();
      const r = chart.getBoundingClientRect();
      point(chart, last === chart ? where + by : by < 0 ? n - 1 : 0, { x: r.left + r.width / 2, y: r.top });
    });
    // The figures of a chart as a table, made when it is asked for.
    const words = chart.parentElement.querySelector(".words");
    if (words) {
      const button = Object.assign(document.createElement("button"), { type: "button", textContent: "Show every point" });
      button.addEventListener("click", () => { button.replaceWith(table(chart)); });
      words.append(button);
    }
  }
  const table = chart => {
    const of = curves(chart), t = document.createElement("table"), wrap = document.createElement("div"), row = (cells, kind, to) => {
      const tr = to.insertRow();
      cells.forEach((c, i) => { const cell = document.createElement(kind && i || !kind && i ? kind || "td" : "th"); cell.textContent = c; tr.append(cell); });
    };
    row(["from", ...of.map(c => c.name)], "th", t.createTHead());
    const body = t.createTBody(), n = chart.querySelector(".plot").viewBox.baseVal.width;
    for (let i = 0; i < n; i++) row([clock(i * step), ...of.map(c => c.values[i] === undefined ? "–" : show(c.values[i], c.unit))], "", body);
    wrap.className = "scroll"; wrap.tabIndex = 0; wrap.append(t);
    return wrap;
  };

  // Links to groups open them, and close them again.
  const group = a => document.getElementById(a.getAttribute("href").slice(1));
  const chips = [...document.querySelectorAll(".chip")];
  const mark = () => chips.forEach(a => a.setAttribute("aria-expanded", group(a).open));
  for (const a of chips) {
    a.setAttribute("role", "button");
    a.addEventListener("click", e => {
      const d = group(a);
      d.open = !d.open;
      if (!d.open) e.preventDefault();
    });
    a.addEventListener("keydown", e => { if (e.key === " ") { e.preventDefault(); a.click(); } });
    group(a).addEventListener("toggle", mark);
  }
  for (const a of document.querySelectorAll(".glance a")) a.addEventListener("click", () => { group(a).open = true; });
  mark();
})();
