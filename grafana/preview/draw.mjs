// Draws the dashboards as pictures: asks a Prometheus what each panel asks, draws the answers as Grafana would, roughly,
// and has Chromium take a picture. Without any package.
//
//   node grafana/preview/draw.mjs http://127.0.0.1:9090 START END     (seconds since 1970)

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const HERE = dirname(fileURLToPath(import.meta.url));
const WIDTH = 1680;
const COLUMN = WIDTH / 24;
const ROW = 36;
const GAP = 8;
const POINTS = 180;
// Grafana's order for series without a colour of their own.
const PALETTE = [
  "#73BF69",
  "#F2CC0C",
  "#8AB8FF",
  "#FF780A",
  "#F2495C",
  "#5794F2",
  "#B877D9",
  "#705DA0",
  "#37872D",
  "#FADE2A",
];

const [base, start, end] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];
const step = Math.max(1, Math.round((end - start) / POINTS));
const chosen = {
  __rate_interval: "15s",
  __range: `${Math.round(end - start)}s`,
  job: ".*",
  instance: ".*",
  event: ".*",
  hook: ".*",
};

const escape = (text) =>
  String(text).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);

async function ask(path, parameters) {
  const response = await fetch(`${base}/api/v1/${path}`, { method: "POST", body: new URLSearchParams(parameters) });
  const answer = await response.json();
  if (answer.status !== "success") throw new Error(`${answer.error}: ${parameters.query}`);
  return answer.data.result;
}

const named = (legend, labels) =>
  legend ? legend.replace(/\{\{(\w+)\}\}/g, (_, label) => labels[label] ?? "") : "";

async function series(target) {
  const query = target.expr.replace(/\$(\w+)/g, (_, name) => chosen[name]);
  const result = target.instant
    ? await ask("query", { query, time: end })
    : await ask("query_range", { query, start, end, step });
  return result.map(({ metric, value, values }) => ({
    name: named(target.legendFormat, metric),
    labels: metric,
    points: (values ?? [value]).map(([time, number]) => [Number(time), Number(number)]),
  }));
}

// ## Numbers as people read them

const trim = (number, digits = 3) => String(Number(number.toPrecision(digits)));

function scaled(number, steps) {
  const [size, unit, by = size || 1] = steps.find(([size]) => Math.abs(number) >= size) ?? steps.at(-1);
  return `${trim(number / by, Math.abs(number / by) < 1000 ? 3 : 4)}${unit}`;
}

const LARGE = [
  [1e9, " Bil"],
  [1e6, " Mil"],
  [1e4, " K", 1e3],
  [1, ""],
  [0, ""],
];
const BYTES = [
  [2 ** 30, " GiB"],
  [2 ** 20, " MiB"],
  [2 ** 10, " KiB"],
  [1, " B"],
];

function readable(number, unit, decimals) {
  if (number === undefined || Number.isNaN(number)) return "–";
  const rounded = (value) => (decimals === undefined ? trim(value) : value.toFixed(decimals));
  switch (unit) {
    case "s":
      if (number === 0) return "0 s";
      return scaled(number, [
        [86400, " d"],
        [3600, " h"],
        [120, " min", 60],
        [1, " s"],
        [1e-3, " ms"],
        [1e-6, " µs"],
      ]);
    case "bytes":
      return number === 0 ? "0 B" : scaled(number, BYTES);
    case "percentunit":
      return `${rounded(number * 100)}%`;
    case "eps":
    case "ops":
    case "reqps":
      return `${number === 0 ? "0" : trim(number)} ${{ eps: "events/s", ops: "ops/s", reqps: "req/s" }[unit]}`;
    default: {
      const text =
        decimals !== undefined && Math.abs(number) < 1e4 ? number.toFixed(decimals) : scaled(number, LARGE);
      return unit.startsWith("suffix:") ? text + unit.slice("suffix:".length) : text;
    }
  }
}

function niceTicks(most, count) {
  const rough = most / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const size = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
  return Array.from({ length: Math.floor(most / size + 1e-9) + 1 }, (_, index) => index * size);
}

// ## Colours

const level = (thresholds, value) =>
  thresholds.steps.filter((step) => step.value === null || value >= step.value).at(-1).color;

function overrides(panel, name) {
  const all = panel.fieldConfig.overrides
    .filter((each) => each.matcher.options === name)
    .flatMap((each) => each.properties);
  return Object.fromEntries(all.map(({ id, value }) => [id, value]));
}

// ## Panels

function axes(box, ticks, unit, y) {
  const rows = ticks.map(
    (tick) => `<line x1="${box.left}" x2="${box.right}" y1="${y(tick)}" y2="${y(tick)}" class="grid"/>
    <text x="${box.left - 6}" y="${y(tick) + 4}" text-anchor="end">${readable(tick, unit)}</text>`,
  );
  const count = Math.floor((box.right - box.left) / 90);
  const times = Array.from({ length: count }, (_, part) => {
    const share = (part + 0.5) / count;
    const x = box.left + (box.right - box.left) * share;
    const time = new Date((start + (end - start) * share) * 1000).toISOString().slice(11, 19);
    return `<text x="${x}" y="${box.bottom + 16}" text-anchor="middle">${time}</text>`;
  });
  return rows.join("") + times.join("");
}

function drawLines(panel, all, width, height) {
  const { defaults } = panel.fieldConfig;
  const { unit, custom } = defaults;
  const calcs = panel.options.legend.calcs.length > 0;
  const legendRows = Math.min(all.length, height > 200 ? 4 : 3);
  const box = { left: 76, right: width - 10, top: 6, bottom: height - 26 - (legendRows + 1) * 17 };
  const stacked = custom.stacking.mode === "normal";
  const times = Array.from({ length: Math.floor((end - start) / step) + 1 }, (_, index) => start + index * step);
  let palette = 0;
  const floor = times.map(() => 0);
  const drawn = all.map((each) => {
    const at = new Map(each.points.map(([time, value]) => [Math.round((time - start) / step), value]));
    const values = times.map((_, index) => at.get(index));
    const own = overrides(panel, each.name);
    const color = own.color?.fixedColor ?? PALETTE[palette++ % PALETTE.length];
    const lower = [...floor];
    if (stacked) values.forEach((value, index) => (floor[index] += value || 0));
    return {
      name: each.name,
      values,
      lower,
      upper: stacked ? [...floor] : values,
      color,
      dashed: own["custom.lineStyle"],
    };
  });
  const real = drawn.flatMap((each) => each.upper).filter((value) => Number.isFinite(value));
  const limits = (defaults.thresholds?.steps ?? []).filter(
    (step) => step.value !== null && custom.thresholdsStyle.mode === "line",
  );
  const highest = Math.max(...real, 0);
  const close = limits.filter((limit) => limit.value <= highest * 3).map((limit) => limit.value);
  const most = defaults.max ?? (Math.max(highest, ...close) * 1.08 || 1);
  const x = (index) => (box.left + ((box.right - box.left) * index) / (times.length - 1)).toFixed(1);
  const y = (value) => (box.bottom - ((box.bottom - box.top) * Math.min(value, most)) / most).toFixed(1) * 1;
  const path = (values) => {
    let open = false;
    return values
      .map((value, index) => {
        if (!Number.isFinite(value)) return ((open = false), "");
        const command = `${open ? "L" : "M"}${x(index)},${y(value)}`;
        open = true;
        return command;
      })
      .join("");
  };
  const shapes = drawn.map((each) => {
    const moves = each.values.some((value) => value > 0);
    const line = `<path d="${path(each.upper)}" fill="none" stroke="${each.color}" stroke-width="${custom.lineWidth}"
      ${each.dashed ? 'stroke-dasharray="8 6"' : ""} stroke-linejoin="round"/>`;
    if (!stacked || !moves) return stacked ? "" : line;
    const back = each.lower
      .map((value, index) => `L${x(index)},${y(value)}`)
      .reverse()
      .join("");
    return `<path d="${path(each.upper.map((value) => value || 0))}${back}Z" fill="${each.color}" fill-opacity="0.45"/>${line}`;
  });
  const lines = limits
    .filter((limit) => limit.value <= most)
    .map(
      (limit) =>
        `<line x1="${box.left}" x2="${box.right}" y1="${y(limit.value)}" y2="${y(limit.value)}" stroke="${limit.color}" stroke-dasharray="6 4" opacity="0.8"/>`,
    );
  const worth = (each) => Math.max(...each.values.filter(Number.isFinite), 0);
  const listed = [...drawn]
    .sort((a, b) => (drawn.length > legendRows ? worth(b) - worth(a) : 0))
    .slice(0, legendRows);
  const legend = listed.map((each, index) => {
    const top = height - (legendRows - index) * 17 + 8;
    const finite = each.values.filter(Number.isFinite);
    const numbers = calcs
      ? `<text x="${width - 110}" y="${top}" text-anchor="end">${readable(finite.at(-1), unit)}</text>
         <text x="${width - 10}" y="${top}" text-anchor="end">${readable(finite.length ? Math.max(...finite) : NaN, unit)}</text>`
      : "";
    return `<rect x="10" y="${top - 6}" width="14" height="4" rx="2" fill="${each.color}"/>
      <text x="30" y="${top}" class="name">${escape(each.name)}</text>${numbers}`;
  });
  const head = height - (legendRows + 1) * 17 + 8;
  const more =
    drawn.length > listed.length ? `<text x="10" y="${head}">${drawn.length - listed.length} more</text>` : "";
  const headings = `${more}<text x="${width - 110}" y="${head}" text-anchor="end">Last</text><text x="${width - 10}" y="${head}" text-anchor="end">Max</text>`;
  const empty = all.length
    ? ""
    : `<text x="${width / 2}" y="${box.bottom / 2}" text-anchor="middle">No data</text>`;
  const size = unit === "bytes" ? BYTES.find(([size]) => most >= size)[0] : 1;
  const ticks = niceTicks(most / size, Math.max(2, Math.floor((box.bottom - box.top) / 34))).map(
    (tick) => tick * size,
  );
  return svg(
    width,
    height,
    axes(box, ticks, unit, y) + shapes.join("") + lines.join("") + legend.join("") + headings + empty,
  );
}

function drawHeatmap(panel, all, width, height) {
  const buckets = all
    .map((each) => ({
      bound: each.labels.le === "+Inf" ? Infinity : Number(each.labels.le),
      points: new Map(each.points),
    }))
    .sort((a, b) => a.bound - b.bound);
  const times = [...new Set(all.flatMap((each) => each.points.map(([time]) => time)))].sort((a, b) => a - b);
  const box = { left: 76, right: width - 10, top: 6, bottom: height - 28 };
  const [wide, high] = [(box.right - box.left) / times.length, (box.bottom - box.top) / buckets.length];
  const cells = buckets.map((bucket, row) =>
    times.map((time) =>
      Math.max(0, (bucket.points.get(time) ?? 0) - (row ? (buckets[row - 1].points.get(time) ?? 0) : 0)),
    ),
  );
  const most = Math.max(...cells.flat(), 1e-9);
  const shapes = cells.flatMap((row, index) =>
    row.map((count, column) => {
      if (count < 1e-9) return "";
      const share = Math.sqrt(count / most);
      return `<rect x="${(box.left + column * wide).toFixed(1)}" y="${(box.bottom - (index + 1) * high).toFixed(1)}"
      width="${Math.max(wide - 0.5, 1).toFixed(1)}" height="${(high - 1).toFixed(1)}" fill="hsl(${38 - share * 20} 95% ${16 + share * 52}%)"/>`;
    }),
  );
  const labels = buckets.map((bucket, row) =>
    row % 2
      ? ""
      : `<text x="${box.left - 6}" y="${box.bottom - (row + 0.5) * high + 4}" text-anchor="end">${Number.isFinite(bucket.bound) ? readable(bucket.bound, "s") : "more"}</text>`,
  );
  return svg(width, height, axes(box, [], "s", () => 0) + shapes.join("") + labels.join(""));
}

function drawStat(panel, all, width, height) {
  const { unit, thresholds, decimals, mappings } = panel.fieldConfig.defaults;
  const value = all[0]?.points.at(-1)?.[1];
  const known = value !== undefined && !Number.isNaN(value);
  const word = mappings.find((mapping) => mapping.type === "value")?.options[String(value)]?.text;
  const empty = mappings.find((mapping) => mapping.type === "special")?.options.result;
  const text = known ? (word ?? readable(value, unit, decimals)) : (empty?.text ?? "No data");
  const color = known ? level(thresholds, value) : (empty?.color ?? "#8E8E99");
  return svg(
    width,
    height,
    `<text x="${width / 2}" y="${height / 2 + 12}" text-anchor="middle" style="font-size:38px;font-weight:600;fill:${color}">${escape(text)}</text>`,
  );
}

function drawRanking(panel, all, width, height) {
  const { unit, color, decimals, noValue } = panel.fieldConfig.defaults;
  const most = Math.max(...all.map((each) => each.points[0][1]), 1e-9);
  const left = 150;
  const bars = all.slice(0, Math.floor(height / 25)).map((each, index) => {
    const value = each.points[0][1];
    const long = ((width - left - 100) * value) / most;
    const y = 6 + index * 25;
    return `<text x="${left - 8}" y="${y + 14}" text-anchor="end" class="name">${escape(each.name)}</text>
      <rect x="${left}" y="${y}" width="${width - left - 100}" height="18" fill="#22252b"/>
      <rect x="${left}" y="${y}" width="${Math.max(long, 2).toFixed(1)}" height="18" fill="${color.fixedColor}" opacity="0.8"/>
      <text x="${width - 10}" y="${y + 14}" text-anchor="end" style="fill:${color.fixedColor};font-weight:600">${readable(value, unit, decimals)}</text>`;
  });
  return svg(
    width,
    height,
    bars.join("") ||
      `<text x="${width / 2}" y="${height / 2}" text-anchor="middle" style="font-size:15px">${noValue}</text>`,
  );
}

function drawTable(panel, all) {
  const columns = panel.transformations[0].options.renameByName;
  const head = Object.values(columns)
    .map((name) => `<th>${escape(name)}</th>`)
    .join("");
  const rows = all.map(
    (each) =>
      `<tr>${Object.keys(columns)
        .map((label) => `<td>${escape(each.labels[label] ?? "")}</td>`)
        .join("")}</tr>`,
  );
  return `<table><tr>${head}</tr>${rows.join("")}</table>`;
}

const svg = (width, height, inside) => `<svg width="${width}" height="${height}">${inside}</svg>`;
const KINDS = {
  timeseries: drawLines,
  heatmap: drawHeatmap,
  stat: drawStat,
  bargauge: drawRanking,
  table: drawTable,
};

// ## Pages

const STYLE = `
  * { box-sizing: border-box; margin: 0 }
  body { background: #111217; color: #ccccdc; font: 12px "Inter", "DejaVu Sans", sans-serif; width: ${WIDTH + 2 * GAP}px }
  h1 { font-size: 20px; font-weight: 500; padding: 14px 16px 4px } h1 small { color: #8e8e99; font-size: 13px; margin-left: 12px }
  .page { position: relative; margin: 0 ${GAP}px }
  .panel, .row { position: absolute } .row { font-size: 15px; font-weight: 500; padding: 10px 8px; color: #ccccdc }
  .panel { background: #181b1f; border: 1px solid #2c2f36; border-radius: 3px; overflow: hidden }
  .panel h2 { font-size: 13px; font-weight: 500; padding: 7px 10px; height: 30px; white-space: nowrap }
  text { font-size: 11px; fill: #9a9aa8 } .name { fill: #ccccdc } .grid { stroke: #26292f }
  table { width: 100%; border-collapse: collapse; font-size: 13px } th, td { text-align: left; padding: 7px 12px; border-bottom: 1px solid #2c2f36 } th { color: #8ab8ff; font-weight: 500 }
`;

async function page(dashboard) {
  const parts = [];
  let bottom = 0;
  for (const panel of dashboard.panels) {
    const { x, y, w, h } = panel.gridPos;
    const place = `left:${x * COLUMN}px;top:${y * ROW}px;width:${w * COLUMN - GAP}px;height:${h * ROW - GAP}px`;
    bottom = Math.max(bottom, (y + h) * ROW);
    if (panel.type === "row") {
      parts.push(`<div class="row" style="${place}">⌄&ensp;${escape(panel.title)}</div>`);
      continue;
    }
    const all = (await Promise.all(panel.targets.map(series))).flat();
    const inside = KINDS[panel.type](panel, all, w * COLUMN - GAP - 2, h * ROW - GAP - 32);
    parts.push(`<div class="panel" style="${place}"><h2>${escape(panel.title)}</h2>${inside}</div>`);
  }
  const title = `<h1>${escape(dashboard.title)}<small>${escape(dashboard.description)}</small></h1>`;
  const html = `<!doctype html><meta charset="utf-8"><style>${STYLE}</style>${title}<div class="page" style="height:${bottom}px">${parts.join("")}</div>`;
  return { html, height: bottom + 54 };
}

const scratch = mkdtempSync(join(tmpdir(), "hookyard-preview-"));
try {
  for (const name of ["overview", "hook-detail", "internals"]) {
    const dashboard = JSON.parse(readFileSync(join(HERE, `../dashboards/${name}.json`), "utf8"));
    const { html, height } = await page(dashboard);
    const file = join(scratch, `${name}.html`);
    writeFileSync(file, html);
    const flags = [
      "--headless",
      "--no-sandbox",
      "--disable-gpu",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      "--hide-scrollbars",
      `--user-data-dir=${join(scratch, "profile")}`,
    ];
    const picture = join(HERE, `${name}.png`);
    execFileSync(
      "chromium",
      [...flags, `--window-size=${WIDTH + 2 * GAP},${height}`, `--screenshot=${picture}`, `file://${file}`],
      { stdio: "ignore" },
    );
  }
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
