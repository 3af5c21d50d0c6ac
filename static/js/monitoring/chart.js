/** The chart of a host's GPUs: one line each, gaps where nothing is known. */

import { pollWhileVisible } from "../calendar/polling.js";

const INTERVAL = 10_000;
const HEIGHT = 240;
const HOUR = 3600; // seconds

/**
 * Fetch and draw the chart, and keep it fresh, as wide as its place and in the page's colours.
 *
 * @param {HTMLElement} place with data-chart (where the columns are) and data-zone
 */
export async function drawChart(place) {
  const { default: uPlot } = await import("uplot");
  const chart = new Chart(uPlot, place);
  await chart.refresh();
  pollWhileVisible(() => chart.refresh(), INTERVAL);
}

class Chart {
  #uPlot;
  #place;
  #plot = null;
  #columns = null;
  #etag = "";

  constructor(uPlot, place) {
    this.#uPlot = uPlot;
    this.#place = place;
    new ResizeObserver(() => this.#fit()).observe(place);
    const redraw = () => this.#draw({ anew: true });
    new MutationObserver(redraw).observe(document.documentElement, {
      attributeFilter: ["data-theme"],
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  }

  /** Draw newer columns if there are any; without an answer the old ones stay. */
  async refresh() {
    const response = await fetch(this.#place.dataset.chart, {
      headers: { "If-None-Match": this.#etag },
      cache: "no-store",
      credentials: "same-origin",
    }).catch(() => null);
    if (!response || response.status !== 200) return;
    this.#etag = response.headers.get("ETag") ?? "";
    this.#columns = await response.json();
    this.#draw();
  }

  #draw({ anew = false } = {}) {
    if (!this.#columns) return;
    const { times, series } = this.#columns;
    if (anew || this.#plot?.series.length !== series.length + 1) this.#clear();
    if (times.length === 0) return this.#sayEmpty();
    const data = [times, ...series.map((one) => one.values)];
    if (this.#plot) this.#plot.setData(data);
    else this.#create(data, series);
  }

  #create(data, series) {
    this.#place.replaceChildren();
    this.#plot = new this.#uPlot(this.#options(series), data, this.#place);
  }

  #clear() {
    this.#plot?.destroy();
    this.#plot = null;
  }

  #sayEmpty() {
    const text = document.createElement("p");
    text.className = "muted empty";
    text.textContent = "No samples in the last hour.";
    this.#clear();
    this.#place.replaceChildren(text);
  }

  #width() {
    const style = getComputedStyle(this.#place);
    return this.#place.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
  }

  #fit() {
    this.#plot?.setSize({ width: this.#width(), height: HEIGHT });
  }

  #options(series) {
    const color = (name) => colorOf(this.#place, name);
    const clock = clockIn(this.#place.dataset.zone);
    const axis = {
      stroke: color("--th-muted"),
      grid: { stroke: color("--th-line"), width: 1 },
      ticks: { show: false },
      font: `12px ${getComputedStyle(this.#place).fontFamily}`,
    };
    return {
      width: this.#width(),
      height: HEIGHT,
      // The whole hour, also while there are samples of only some minutes.
      scales: { x: { range: (_plot, _first, last) => [last - HOUR, last] }, y: { range: [0, 100] } },
      axes: [
        {
          ...axis,
          // Steps of less than a minute would otherwise show the same time twice.
          values: (_plot, moments, _axis, _space, step) => moments.map((at) => clock(at, step < 60)),
        },
        { ...axis, size: 48, values: (_plot, values) => values.map((value) => `${value} %`) },
      ],
      series: [
        { label: "Time", value: (_plot, at) => (at == null ? "–" : clock(at, true)) },
        ...series.map((one, number) => ({
          label: one.label,
          stroke: color(`--th-series-${(number % 8) + 1}`),
          width: 1.5,
          dash: number < 8 ? undefined : [6, 4],
          points: { show: false },
          value: (_plot, value) => (value == null ? "–" : `${Math.round(value)} %`),
        })),
      ],
    };
  }
}

/** A colour token as the canvas understands it. */
function colorOf(place, name) {
  const probe = document.createElement("i");
  probe.style.color = `var(${name})`;
  place.append(probe);
  const color = getComputedStyle(probe).color;
  probe.remove();
  return color;
}

/** Writes seconds since the epoch as a clock time of the zone. */
function clockIn(timeZone) {
  const form = { hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZone };
  const short = new Intl.DateTimeFormat("en-GB", form);
  const long = new Intl.DateTimeFormat("en-GB", { ...form, second: "2-digit" });
  return (at, withSeconds = false) => (withSeconds ? long : short).format(at * 1000);
}
