// CostLedgers: what pods that are gone held, as muster wrote it down. Batches of seconds become one object for an hour,
// these one for a day; while both are there the longer one counts.

import { type AnyObject, count, list, record, text, timeOf } from './kubernetes.ts';

export interface Past {
  readonly ns: string;
  readonly workload: string; // "pytorchjob/digits"
  readonly from: number;
  readonly to: number;
  readonly pods: number;
  readonly gpuHours: number;
}

export interface LedgerRow {
  readonly uid: string;
  readonly name: string;
  readonly past: readonly Past[];
}

const MILLI_SECONDS_AN_HOUR = 3600 * 1000;

export function projectLedger(object: AnyObject): LedgerRow {
  const past: Past[] = [];
  for (const row of list(record(object.spec)['pods']).map(record)) {
    const milliSeconds = Object.values(record(row['gpuMilliSeconds'])).reduce<number>(
      (all, one) => all + count(one),
      0,
    );
    if (milliSeconds === 0) continue;
    past.push({
      ns: text(row['namespace']),
      workload: text(row['workload']),
      from: timeOf(text(row['from'])),
      to: timeOf(text(row['to'])),
      pods: count(row['pods']),
      gpuHours: milliSeconds / MILLI_SECONDS_AN_HOUR,
    });
  }
  return { uid: object.metadata.uid, name: object.metadata.name, past };
}

// Of names such as b-20261130-14-x, h-20261130-14, d-20261130.
export function pastOf(ledgers: Iterable<LedgerRow>): Past[] {
  const all = [...ledgers];
  const names = new Set(all.map((one) => one.name));
  const covered = (name: string): boolean => {
    const [level, day, hour] = name.split('-');
    if (level === 'd') return false;
    return names.has(`d-${day}`) || (level === 'b' && names.has(`h-${day}-${hour}`));
  };
  return all.filter((one) => !covered(one.name)).flatMap((one) => one.past);
}
