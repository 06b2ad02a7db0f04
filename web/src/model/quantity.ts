// Kubernetes quantities ("500m", "1Gi", "1e3") as numbers: for sums and bars, not for exact arithmetic.

const SUFFIXES: Readonly<Record<string, number>> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};

export function quantity(value: string | number | undefined): number {
  if (typeof value === 'number') return value;
  if (value === undefined) return 0;
  const match = /^([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)([A-Za-z]*)$/.exec(value.trim());
  const factor = match === null ? undefined : SUFFIXES[match[2] ?? ''];
  const number = match === null ? Number.NaN : Number(match[1]);
  return factor === undefined || Number.isNaN(number) ? 0 : number * factor;
}
