"use strict";
(() => {
  // The same ranking as latency::recommend.
  const candidates = JSON.parse(document.getElementById("candidates").textContent);
  const ranking = document.getElementById("ranking");
  const value = (name) => document.getElementById("need-" + name).value.trim();
  const time = (us) => us === null ? "–" : us >= 999.5 ? Number((us / 1e3).toPrecision(3)) + " ms" : Number(us.toPrecision(3)) + " µs";
  const words = ["meets it", "seems to meet it, too few samples to be sure", "misses too often"];

  const beyond = ([, processing, ecdf], limit) => {
    let within = 0;
    for (const [us, fraction] of ecdf) if (us <= limit + processing) within = fraction;
    return 1 - within;
  };
  const bound = (share, n) => {
    if (!n) return 1;
    const z = 1.645, z2 = z * z;
    const half = z * Math.sqrt(share * (1 - share) / n + z2 / (4 * n * n));
    return Math.min(1, (share + z2 / (2 * n) + half) / (1 + z2 / n));
  };
  const judge = (one, need) => {
    const slow = one.runs.reduce((sum, run) => sum + run[0] * beyond(run, 2 * need.deadline), 0);
    const share = one.sent ? (one.gone + slow) / one.sent : 1;
    const most = bound(share, one.sent);
    const fit = most <= need.loss ? 0 : share <= need.loss ? 1 : 2;
    const near = one.hz >= need.rate / 2 && one.hz <= need.rate * 2;
    return { ...one, share, most, fit, far: near ? 0 : 1, tail: one.p99 ?? one.p50 ?? Infinity };
  };
  const update = () => {
    const need = { bytes: Number(value("bytes")), rate: Number(value("rate")), deadline: Number(value("deadline")) * 1e3,
      loss: Number(value("loss")), link: value("link") };
    // Of each configuration the smallest size that is large enough.
    const chosen = new Map();
    for (const one of candidates) {
      if (one.bytes < need.bytes || !one.link.startsWith(need.link)) continue;
      const key = one.label + one.path;
      if (!chosen.has(key) || chosen.get(key).bytes > one.bytes) chosen.set(key, one);
    }
    const ranked = [...chosen.values()].map((one) => judge(one, need))
      .sort((a, b) => a.fit - b.fit || a.far - b.far || a.tail - b.tail).slice(0, 12);
    ranking.replaceChildren(...ranked.map((one) => {
      const item = document.createElement("li");
      item.dataset.fit = one.fit;
      item.textContent = `${one.label}: ${words[one.fit]}${one.far ? " (measured at another pace)" : ""}; at ${one.bytes} B: half a round trip p50 ` +
        `${time(one.p50)} p99 ${time(one.p99)}, ${(one.share * 100).toFixed(3)} % missed of ${one.sent} (at most ` +
        `${(one.most * 100).toFixed(3)} %); rows ${one.rows.join(", ")}`;
      return item;
    }));
    if (!ranked.length) {
      const none = document.createElement("li");
      none.textContent = "Nothing was measured at this size or above on that link.";
      ranking.append(none);
    }
  };
  document.querySelectorAll(".needs input").forEach((input) => input.addEventListener("input", update));
  update();
})();
