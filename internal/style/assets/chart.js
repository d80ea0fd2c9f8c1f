// Draws the charts of reports and of the live page into their figures, and writes their numbers.

const drawn = {}; // the library's object of each chart, by id

const root = document.documentElement;
const colour = name => getComputedStyle(root).getPropertyValue("--" + name).trim();
const tint = (c, share) => `color-mix(in srgb, ${c} ${share}%, transparent)`;
const font = "12px system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', Arial, sans-serif";

const minus = text => text.replace("-", "−");
const figure = (v, digits = 4) => {
  if (v == null || !isFinite(v)) return "–";
  const size = Math.abs(v);
  if (size >= 1e15 || (size > 0 && size < 1e-5)) return minus(v.toExponential(2));
  if (size >= 1000) return minus(Math.round(v).toLocaleString("en-US"));
  return minus(String(Number(v.toPrecision(digits))));
};
const short = v => {
  const size = Math.abs(v);
  for (const [least, letter] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]])
    if (size >= least) return minus(String(Number((v / least).toPrecision(3)))) + letter;
  return minus(String(Number(v.toPrecision(6))));
};
const day = s => new Date(1000 * s).toISOString().slice(0, 10);
const hour = s => new Date(1000 * s).toISOString().slice(11, 16);
const second = s => new Date(1000 * s).toISOString().slice(11, 19);
const moment = (s, fine) => `${day(s)} ${fine ? second(s) : hour(s)} UTC`;
// times writes those along an axis: days, or hours with the day where one begins.
const times = (u, at, axis, space, step) => at.map((s, i) => step >= 86400 ? day(s) : (step < 60 ? second(s) : hour(s)) + (i === 0 || s % 86400 === 0 ? "\n" + day(s) : ""));

// paints returns the colours of series: a name that a chart before had keeps its own, where
// that is not taken here.
const known = {};
const paints = series => {
  const named = series.filter(s => !s.aside), taken = new Set(named.filter(s => s.name in known).map(s => known[s.name])), used = new Set();
  return series.map(s => {
    if (s.aside) return "aside";
    let n = known[s.name];
    if (n === undefined || used.has(n)) for (n = 0; taken.has(n);) n++;
    taken.add(n);
    used.add(n);
    known[s.name] ??= n;
    return "s" + n % 8;
  });
};

// dash is how the line of aside k is drawn: asides share a colour, and differ in this.
const dash = (series, k) => [[6, 5], [2, 3], [14, 5], [9, 4, 2, 4]][series.slice(0, k).filter(s => s.aside).length % 4];
const dashed = lengths => {
  let at = 0;
  return `repeating-linear-gradient(90deg, ${lengths.map((n, i) => `${i % 2 ? "transparent" : "currentcolor"} ${at}px ${at += n}px`)})`;
};

// make returns an element: an HTML one, or with a known tag an SVG one.
const svgTags = new Set(["g", "path", "polygon", "rect", "svg", "text"]);
const make = (tag, props = {}, ...children) => {
  const e = svgTags.has(tag) ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [k, v] of Object.entries(props)) {
    if (k.startsWith("on")) e[k] = v;
    else if (v !== null && v !== undefined) e.setAttribute(k, v);
  }
  e.append(...children);
  return e;
};

// whiskers draws points with error bars, those of a name beside each other.
const whiskers = (series, paint) => u => {
  const {ctx} = u, px = uPlot.pxRatio;
  const step = Math.min(.16, .7 / series.length);
  ctx.save();
  ctx.beginPath();
  const rim = 5 * px; // what lies on the edge is drawn whole
  ctx.rect(u.bbox.left - rim, u.bbox.top - rim, u.bbox.width + 2 * rim, u.bbox.height + 2 * rim);
  ctx.clip();
  series.forEach((s, k) => {
    if (!u.series[k + 1].show) return;
    ctx.strokeStyle = ctx.fillStyle = colour(paint[k]);
    ctx.lineWidth = 1.6 * px;
    s.y.forEach((y, i) => {
      if (y == null) return;
      const x = u.valToPos(i + (k - (series.length - 1) / 2) * step, "x", true), at = v => u.valToPos(v, "y", true);
      if (s.low && s.low[i] != null && s.high[i] != null) {
        ctx.beginPath();
        for (const end of [s.low[i], s.high[i]]) { ctx.moveTo(x - 4 * px, at(end)); ctx.lineTo(x + 4 * px, at(end)); }
        ctx.moveTo(x, at(s.low[i]));
        ctx.lineTo(x, at(s.high[i]));
        ctx.stroke();
      }
      ctx.beginPath();
      ctx.arc(x, at(y), 3.6 * px, 0, 2 * Math.PI);
      ctx.fill();
    });
  });
  ctx.restore();
};

// seriesOf lays out what the library draws: each series, then the two ends of its band.
const seriesOf = (c, series, paint) => {
  const out = [{}], bands = [], data = [c.names ? c.names.map((_, i) => i) : c.at];
  series.forEach((s, k) => {
    const stroke = () => colour(paint[k]);
    const one = {label: s.name, stroke, show: !s.off, width: s.aside ? 1.5 : 2, points: {show: c.kind === "lines" && c.at.length <= 24}};
    if (s.aside) one.dash = dash(series, k);
    if (c.kind === "bars") Object.assign(one, {fill: () => tint(colour(paint[k]), 70), width: 0, points: {show: false},
      paths: uPlot.paths.bars({size: [.8 / series.length, 46], align: series.length === 1 ? 0 : k === 0 ? -1 : 1})});
    if (c.kind === "points") Object.assign(one, {paths: () => null, points: {show: false}});
    out.push(one);
    data.push(s.y);
  });
  const ends = {}; // of the band of series k
  series.forEach((s, k) => {
    if (!s.low) return;
    ends[k] = [out.length + 1, out.length];
    for (const y of [s.low, s.high]) {
      out.push({label: s.name, show: !s.off, width: 0, points: {show: false}, paths: c.kind === "points" ? () => null : undefined});
      data.push(y);
    }
    if (c.kind === "lines") bands.push({series: ends[k], fill: () => tint(colour(paint[k]), 16)});
  });
  return {out, bands, data, ends};
};

// A logarithm has no 0: on an axis that begins with it 0 stands at ½.
const nought = (c, v) => c.x.scale === "log" && c.x.zero && v < 1 ? 0 : v;
// marks are the places along a logarithmic axis that are named: 1, 2, 5, 10, … or powers.
const marks = (c, low, high) => {
  const out = c.x.zero ? [.5] : [], steps = high / low < 2e3 ? [1, 2, 5] : [1];
  for (let k = Math.floor(Math.log10(low)); k <= Math.log10(high); k++)
    for (const m of steps) {
      const v = Number((m * 10 ** k).toPrecision(1));
      if (v >= low && v <= high && !(c.x.zero && v < 1)) out.push(v);
    }
  return out;
};

// crowded reports whether names would meet if they were not slanted.
const longest = c => Math.max(...c.names.map(n => n.length));
const crowded = (c, width) => c.names && (width - 70) / c.names.length < 7.2 * longest(c);

const axesOf = c => {
  const common = {stroke: () => colour("soft"), grid: {stroke: () => colour("grid"), width: 1}, ticks: {stroke: () => colour("line"), width: 1}, font, labelFont: font, labelGap: 0};
  const x = {...common, label: c.x.label, labelSize: 22, size: 34};
  if (c.names) Object.assign(x, {
    grid: {show: false},
    splits: u => u.data[0],
    values: (u, at) => at.map(i => c.names[i]),
    rotate: u => crowded(c, u.width) ? -40 : 0,
    size: u => crowded(c, u.width) ? 24 + 4.6 * longest(c) : 34,
  });
  else if (c.x.scale === "time") Object.assign(x, {values: times, size: 48, space: 96});
  else x.values = (u, at) => at.map(v => v == null ? "" : short(nought(c, v)));
  if (c.x.scale === "log") Object.assign(x, {filter: (u, at) => at, splits: (u, axis, low, high) => marks(c, low, high)});
  const y = {...common, label: c.y.label, labelSize: 20, size: (u, values) => 26 + 7.2 * Math.max(3, ...(values || []).map(v => String(v).length)),
    values: (u, at) => at.map(v => v == null ? "" : short(v))};
  return [x, y];
};

const scalesOf = c => {
  const x = {time: c.x.scale === "time"};
  if (c.x.scale === "time") x.range = (u, low, high) => c.at.length > 1 ? [low, high] : [low - 30, low + 30];
  if (c.x.scale === "log") Object.assign(x, {distr: 3, range: (u, low, high) => [low / 1.3, high * 1.3]});
  if (c.names) x.range = (u, low, high) => [-.6, c.names.length - .4];
  const y = {};
  if (c.y.scale === "log") y.distr = 3;
  else if (c.y.zero) y.range = (u, low, high) => [0, high > 0 ? 1.06 * high : 1];
  else y.range = (u, low, high) => low == null ? [0, 1] : low === high ? [low - .5 * (Math.abs(low) || 1), high + .5 * (Math.abs(high) || 1)] : uPlot.rangeNum(low, high, .08, true);
  return {x, y};
};

const heightOf = (c, width) => Math.round(Math.min(360, Math.max(230, width * .36))) + (c.names && c.kind === "points" ? 40 : 0);

// chart draws one chart and says how it is redrawn, and how it is given other data.
const chart = c => {
  const box = document.getElementById("chart-" + c.id);
  const plot = box.querySelector(".plot"), legend = box.querySelector(".legend"), views = box.querySelector(".views");
  const hidden = c.views.map(v => new Set(v.series.filter(s => s.off).map(s => s.name)));
  let u, now = 0, series, data, values, where;

  // point writes the values under the pointer into the legend, of lines else the last ones.
  const point = over => {
    const at = over ?? (c.kind === "lines" ? data[0].length - 1 : null), none = at == null;
    const x = none ? null : data[0][at];
    where.textContent = over == null ? (none ? "hover to read values" : "at the end") : c.names ? c.names[at] : c.x.scale === "time" ? moment(x, c.at[1] - c.at[0] < 60) : `${c.x.label.split(" (")[0]} ${figure(nought(c, x), 7)}`;
    series.forEach((s, k) => {
      const y = none ? null : s.y[at];
      values[k].textContent = y == null ? "" : figure(y) + (s.low && s.low[at] != null ? ` (${figure(s.low[at], 3)} to ${figure(s.high[at], 3)})` : "");
    });
  };

  const layout = () => {
    const off = hidden[now];
    series = c.views[now].series.map(s => ({...s, off: off.has(s.name)}));
    const paint = paints(series), laid = seriesOf(c, series, paint);
    data = laid.data;
    return {off, paint, ...laid};
  };

  const draw = () => {
    const {off, paint, out, bands, ends} = layout();
    const width = plot.clientWidth || 600;
    where = make("span", {class: "where"});
    values = series.map(() => make("b"));
    const rows = series.map((s, k) => {
      const mark = make("i", {class: s.aside ? "aside" : c.kind === "lines" ? "" : "block"});
      mark.style.color = mark.style.borderColor = `var(--${paint[k]})`;
      if (s.aside) mark.style.backgroundImage = dashed(dash(series, k));
      else if (c.kind !== "lines") mark.style.background = `var(--${paint[k]})`;
      const row = make("button", {type: "button", "aria-pressed": String(!s.off), "data-series": s.name, onclick: () => {
        const show = off.delete(s.name);
        if (!show) off.add(s.name);
        row.setAttribute("aria-pressed", String(show));
        for (const i of [k + 1, ...(ends[k] || [])]) u.setSeries(i, {show});
      }}, mark, make("span", {}, s.name), values[k]);
      return row;
    });
    const hooks = {setCursor: [v => point(v.cursor.left < 0 ? null : v.cursor.idx)]};
    if (c.kind === "points") hooks.draw = [whiskers(series, paint)];
    legend.replaceChildren(where, ...rows);
    point(null);
    if (u) u.destroy();
    u = new uPlot({width, height: heightOf(c, width), series: out, bands, axes: axesOf(c), scales: scalesOf(c), hooks,
      legend: {show: false}, cursor: {y: false, drag: {x: false, y: false}, points: {show: c.kind === "lines", size: 7}}, tzDate: s => uPlot.tzDate(new Date(1000 * s), "Etc/UTC"), padding: [10, v => crowded(c, v.width) ? 5 * longest(c) : c.x.scale === "time" ? 28 : 14, 0, 0]}, data, plot);
    drawn[c.id] = u;
  };

  if (c.views.length > 1) c.views.forEach((v, i) => {
    views.append(make("button", {type: "button", "aria-pressed": String(i === 0), onclick: () => {
      now = i;
      views.querySelectorAll("button").forEach((other, j) => other.setAttribute("aria-pressed", String(i === j)));
      draw();
    }}, v.name));
  });
  draw();
  const all = {
    resize: width => { const w = width || plot.clientWidth; if (w) u.setSize({width: w, height: heightOf(c, w)}); },
    repaint: () => u.redraw(false, true),
    // set changes the data of a chart whose series stay; the pointer and the focus stay, too.
    set: next => {
      Object.assign(c, next);
      layout();
      u.setData(data);
      point(u.cursor.left < 0 ? null : u.cursor.idx);
    },
  };
  charted.push(all);
  return all;
};

const charted = [];
let frame;
addEventListener("resize", () => { cancelAnimationFrame(frame); frame = requestAnimationFrame(() => charted.forEach(c => c.resize())); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => charted.forEach(c => c.repaint()));

// Paper is white and narrow, whatever the screen is.
const paper = on => {
  if (on) root.dataset.print = ""; else delete root.dataset.print;
  charted.forEach(c => { c.resize(on ? 640 : 0); c.repaint(); });
};
addEventListener("beforeprint", () => paper(true));
addEventListener("afterprint", () => paper(false));
matchMedia("print").addEventListener("change", e => paper(e.matches));
