// What GPUs do, from Prometheus' text format with the names of dcgm-exporter.

export interface Figures {
  readonly util: number | undefined; // percent
  readonly memoryUsed: number | undefined; // MiB
  readonly temperature: number | undefined; // degrees
  readonly power: number | undefined; // watts
}

const METRICS: Readonly<Record<string, keyof Figures>> = {
  DCGM_FI_DEV_GPU_UTIL: 'util',
  DCGM_FI_DEV_FB_USED: 'memoryUsed',
  DCGM_FI_DEV_GPU_TEMP: 'temperature',
  DCGM_FI_DEV_POWER_USAGE: 'power',
};

const UUID = /[{,]UUID="([^"]*)"/;

// By UUID.
export function parseFigures(exposition: string): Map<string, Figures> {
  const out = new Map<string, { -readonly [K in keyof Figures]: Figures[K] }>();
  for (let at = exposition.indexOf('DCGM_FI_DEV_'); at >= 0; at = exposition.indexOf('\nDCGM_FI_DEV_', at)) {
    if (exposition[at] === '\n') ++at;
    const end = exposition.indexOf('\n', at);
    const line = exposition.slice(at, end < 0 ? undefined : end);
    at += line.length;
    const field = METRICS[line.slice(0, line.search(/[{ ]/))];
    const uuid = UUID.exec(line)?.[1];
    const value = Number(line.slice(line.lastIndexOf('} ') + 2).split(' ')[0]);
    if (field === undefined || uuid === undefined || Number.isNaN(value)) continue;
    let figures = out.get(uuid);
    if (figures === undefined)
      out.set(uuid, (figures = { util: undefined, memoryUsed: undefined, temperature: undefined, power: undefined }));
    figures[field] = value;
  }
  return out;
}
