"use strict";
(() => {
  const tip = document.getElementById("tip");
  const table = document.getElementById("rows");

  // Sorting and filtering the table.
  if (table) {
    const body = table.tBodies[0];
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const sample = body.rows[0] && body.rows[0].cells[column];
      if (sample && sample.classList.contains("number")) head.classList.add("number");
      const button = head.querySelector("button");
      if (button) button.addEventListener("click", () => sort(column));
    });
    const key = (row, column) => {
      const cell = row.cells[column];
      return "sort" in cell.dataset ? Number(cell.dataset.sort) : cell.textContent;
    };
    const sort = (column) => {
      const down = heads[column].getAttribute("aria-sort") === "ascending";
      heads.forEach((head) => head.removeAttribute("aria-sort"));
      heads[column].setAttribute("aria-sort", down ? "descending" : "ascending");
      const order = (a, b) => (a < b ? -1 : a > b ? 1 : 0) * (down ? -1 : 1);
      [...body.rows].sort((a, b) => order(key(a, column), key(b, column))).forEach((row) => body.append(row));
    };
    const input = document.getElementById("filter");
    if (input) input.addEventListener("input", () => {
      const words = input.value.toLowerCase().split(/[\s,]+/).filter(Boolean);
      for (const row of body.rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
      }
    });
  }

  const time = (us) => {
    const [value, unit] = us >= 999500 ? [us / 1e6, "s"] : us >= 999.5 ? [us / 1e3, "ms"] : [us, "µs"];
    return Number(value.toPrecision(3)) + " " + unit;
  };

  const show = (event, lines) => {
    tip.replaceChildren(...lines.map(([color, text]) => {
      const line = document.createElement("div");
      if (color) {
        const dot = document.createElement("i");
        dot.style.background = color;
        line.append(dot);
      }
      line.append(text);
      return line;
    }));
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect();
    const left = event.clientX + 16 + width > innerWidth ? event.clientX - 16 - width : event.clientX + 16;
    tip.style.left = Math.max(4, left) + "px";
    tip.style.top = Math.max(4, Math.min(event.clientY + 14, innerHeight - height - 4)) + "px";
  };

  // The value of a line at a fraction: the first point that reaches it.
  const at = (points, fraction) => (points.find((point) => point[1] >= fraction) || points[points.length - 1])[0];

  for (const chart of document.querySelectorAll(".chart")) {
    const svg = chart.querySelector("svg");
    const values = JSON.parse(chart.querySelector("script").textContent);
    const [left, top, right, bottom] = values.plot;
    const cursor = document.createElementNS("http://www.w3.org/2000/svg", "line");
    cursor.setAttribute("class", "cursor");
    svg.append(cursor);
    const hide = () => { tip.hidden = true; cursor.setAttribute("visibility", "hidden"); };
    hide();
    const hidden = new Set();
    chart.hideLine = (color, off) => {
      hidden[off ? "add" : "delete"](color);
      svg.querySelectorAll(`polyline[stroke="${color}"]`).forEach((line) => { line.style.display = off ? "none" : ""; });
    };
    const move = (event) => {
      const box = svg.getBoundingClientRect();
      const scale = svg.viewBox.baseVal.width / box.width;
      const x = (event.clientX - box.left) * scale;
      const y = (event.clientY - box.top) * scale;
      if (x < left - 8 || x > right + 8 || y < top - 4 || y > bottom + 4) return hide();
      const band = values.bands.find((band) => y >= band.top && y < band.bottom);
      if (band) return show(event, [[null, band.text]]);
      if (!values.lines.length) return hide();
      const fraction = Math.min(1, Math.max(0.001, (bottom - y) / (bottom - top)));
      for (const [name, value] of Object.entries({ x1: left, x2: right, y1: y, y2: y })) cursor.setAttribute(name, value);
      cursor.setAttribute("visibility", "visible");
      const seen = values.lines.filter((line) => !hidden.has(line.color));
      show(event, [[null, (fraction * 100).toFixed(1) + " % took at most"],
        ...seen.map((line) => [line.color, time(at(line.points, fraction)) + "  " + line.name])]);
    };
    svg.addEventListener("pointermove", move);
    svg.addEventListener("pointerdown", move);
    svg.addEventListener("pointerleave", hide);
  }

  for (const button of document.querySelectorAll(".legend button")) {
    button.addEventListener("click", () => {
      const off = button.getAttribute("aria-pressed") === "true";
      button.setAttribute("aria-pressed", String(!off));
      button.closest("section").querySelectorAll(".chart").forEach((chart) => chart.hideLine(button.dataset.color, off));
    });
  }
})();
