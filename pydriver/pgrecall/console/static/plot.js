// Draws what an element's data-plot holds, by uPlot: lines of sums, or bars that can be chosen.
"use strict";

(() => {
  const hues = ["#0a7f99", "#d55e00", "#cc79a7", "#009e73", "#e69f00", "#56b4e9", "#882255", "#999933"];
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const charts = new Map();

  const draw = (place) => {
    const data = JSON.parse(place.dataset.plot);
    charts.get(place)?.destroy();
    if (!data.times.length) {
      place.textContent = "Nothing to draw yet.";
      return;
    }
    // Bars stand on one another; what is drawn last is the lowest.
    let values = data.series.map((one) => one.values);
    if (!data.is_sum) {
      const sum = data.times.map(() => 0);
      values = values.map((own) => own.map((n, i) => (sum[i] += n)));
    }
    const axis = { stroke: colour("--faint"), grid: { stroke: colour("--line"), width: 1 },
      ticks: { stroke: colour("--line"), width: 1 }, font: "12px system-ui, sans-serif" };
    const order = data.series.map((_, n) => n).reverse();
    const chart = new uPlot({
      width: place.clientWidth, height: 230, tzDate: (ts) => uPlot.tzDate(new Date(ts * 1000), "UTC"),
      cursor: { points: { show: false }, drag: { x: false, y: false } },
      scales: { x: { range: (_, low, high) => {
        const step = data.times.length > 1 ? data.times[1] - data.times[0] : 86400 * 15;
        return data.is_sum && low < high ? [low, high] : [data.times[0] - step, data.times.at(-1) + step];
      } }, y: { range: (_, __, high) => [0, Math.max(high * 1.08, 1)] } },
      axes: [axis, { ...axis, size: 46 }],
      series: [{ value: (_, ts) => ts == null ? "" : new Date(ts * 1000).toISOString().slice(0, 10) },
        ...order.map((n) => ({
          label: data.series[n].name,
          stroke: hues[n % hues.length],
          width: data.is_sum ? 2 : 0,
          fill: data.is_sum ? undefined : hues[n % hues.length],
          paths: data.is_sum ? undefined : uPlot.paths.bars({ size: [0.7, 40] }),
          points: { show: data.is_sum && data.times.length < 40 },
          value: (_, __, ___, i) => i == null ? "" : data.series[n].values[i].toLocaleString(),
        }))],
    }, [data.times, ...order.map((n) => values[n])], place);
    charts.set(place, chart);
    if (place.dataset.href) {
      chart.over.classList.add("choose");
      chart.over.addEventListener("click", () => {
        const n = chart.cursor.idx;
        if (n == null) return;
        const day = (ts) => new Date(ts * 1000).toISOString().slice(0, 10);
        const next = data.times[n + 1];
        const until = next ? `&until=${day(next - 86400)}` : "";
        location.assign(`${place.dataset.href}&since=${day(data.times[n])}${until}`);
      });
    }
  };

  const all = () => document.querySelectorAll("[data-plot]").forEach(draw);
  all();
  addEventListener("resize", all);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", all);
})();
