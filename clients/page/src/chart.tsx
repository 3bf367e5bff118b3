// Events a second over the last minutes.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { moment, rate } from "./format";
import type { Live } from "./state";

const HEIGHT = 140;

/// The colours of the style sheet, which differ in the dark.
function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function options(width: number): uPlot.Options {
  const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 }, font: "12px system-ui" };
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    cursor: { show: false },
    scales: { y: { range: (_plot, _least, most) => [0, Math.max(1, most * 1.1)] } },
    axes: [{ ...axis, space: 90, values: (_plot, values) => values.map((at) => moment(at * 1000).slice(11)) }, { ...axis, size: 56, values: (_plot, values) => values.map((value) => (value >= 1000 ? `${value / 1000}k/s` : `${value}/s`)) }],
    series: [
      {},
      { label: "events", stroke: colour("--accent"), width: 2, points: { show: false } },
      { label: "stopped", stroke: colour("--block"), width: 2, dash: [6, 4], points: { show: false } },
    ],
  };
}

export function EventsChart({ history }: { history: Live["history"] }) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  useEffect(() => {
    const parent = place.current;
    if (!parent) return;
    const draw = () => {
      plot.current?.destroy();
      plot.current = new uPlot(options(parent.clientWidth), [[], [], []], parent);
    };
    draw();
    const resized = new ResizeObserver(() => {
      if (plot.current && plot.current.width !== parent.clientWidth) plot.current.setSize({ width: parent.clientWidth, height: HEIGHT });
    });
    resized.observe(parent);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", draw);
    return () => {
      dark.removeEventListener("change", draw);
      resized.disconnect();
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, []);
  useEffect(() => {
    plot.current?.setData([history.map((point) => point.at / 1000), history.map((point) => point.rate), history.map((point) => point.stopped)]);
  }, [history]);
  const most = Math.max(0, ...history.map((point) => point.rate));
  const last = history.at(-1);
  const said = last ? `Events a second over ${history.length} seconds: now ${rate(last.rate)}, at most ${rate(most)}; stopped now ${rate(last.stopped)}.` : "No events a second yet.";
  return (
    <figure class="chart">
      <div ref={place} role="img" aria-label={said} />
      <figcaption>
        <span class="key events">events a second</span> <span class="key stopped">blocked or halted a second</span>
      </figcaption>
    </figure>
  );
}
