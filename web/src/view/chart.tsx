// GPU use over the time that the page has been open.

import type { VNode } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';

import type { Sample } from '../api/cluster.ts';

const HEIGHT = 150;
const WINDOW_SECONDS = 60; // at least: the first moments do not look like hours
const TIME_STEPS = [15, 30, 60, 120, 300, 600, 900, 1800, 3600];

export function UseChart({ samples }: { readonly samples: readonly Sample[] }): VNode {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);

  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const make = (): void => {
      plot.current?.destroy();
      plot.current = new uPlot(options(element), dataOf(samples), element);
    };
    make();
    const observer = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height: HEIGHT }));
    observer.observe(element);
    const dark = window.matchMedia('(prefers-color-scheme: dark)');
    dark.addEventListener('change', make);
    return () => {
      observer.disconnect();
      dark.removeEventListener('change', make);
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, []);

  const latest = samples[samples.length - 1]?.time;
  useEffect(() => plot.current?.setData(dataOf(samples)), [latest]);

  return <div class="chart" ref={box} style={{ height: `${HEIGHT}px` }} aria-hidden="true" />;
}

function dataOf(samples: readonly Sample[]): uPlot.AlignedData {
  return [
    samples.map((one) => one.time / 1000),
    samples.map((one) => one.gpus),
    samples.map((one) => one.used),
    samples.map((one) => one.busy ?? null),
  ];
}

function options(element: HTMLElement): uPlot.Options {
  const style = getComputedStyle(element);
  const colour = (name: string): string => style.getPropertyValue(name).trim();
  const axis: uPlot.Axis = {
    stroke: colour('--text-quiet'),
    grid: { stroke: colour('--line-soft'), width: 1 },
    ticks: { show: false },
    font: `11px ${style.fontFamily}`,
  };
  return {
    width: element.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { show: false },
    scales: {
      x: { range: (_, first, last) => [Math.min(first, last - WINDOW_SECONDS), last] },
      y: { range: (_, __, max) => [0, Math.max(1, max)] },
    },
    axes: [
      {
        ...axis,
        grid: { show: false },
        size: 24,
        space: 90,
        incrs: TIME_STEPS,
        values: (_, times, __, ___, step) => times.map((time) => timeLabel(time, step)),
      },
      { ...axis, size: 36, splits: (plot) => levels(plot.scales['y']?.max ?? 1) },
    ],
    series: [
      {},
      { stroke: colour('--line'), width: 1, dash: [4, 4], points: { show: false } },
      { stroke: colour('--accent'), width: 1.5, fill: colour('--accent-faint'), points: { show: false } },
      { stroke: colour('--good'), width: 1.5, points: { show: false } },
    ],
  };
}

// Nothing, all, and the middle if it is a whole number.
function levels(max: number): number[] {
  return max % 2 === 0 ? [0, max / 2, max] : [0, max];
}

function timeLabel(seconds: number, step: number): string {
  const parts: Intl.DateTimeFormatOptions = { hour: '2-digit', minute: '2-digit', hour12: false };
  if (step < 60) parts.second = '2-digit';
  return new Date(seconds * 1000).toLocaleTimeString([], parts);
}
