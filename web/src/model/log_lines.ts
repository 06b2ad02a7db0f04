// Lines of several logs in the order of their times, the latest ones only.

export interface LogLine {
  readonly number: number;
  readonly time: string; // as the node wrote it
  readonly label: string;
  readonly colour: number;
  readonly text: string;
}

const MAX_LINES = 10_000;
const MAX_LINE = 4000; // of characters; longer ones are cut
// Colours and cursor movements of terminals.
// Nodes write UTC, with as many digits as there are: without the Z they sort as text.
const STAMP = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*)(?:Z|[+-]\d\d:\d\d) ?/;
const ESCAPES = /\u001b\[[0-9;?]*[A-Za-z]|\u001b\][^\u0007]*\u0007/g;

export class LineBuffer {
  lines: LogLine[] = [];
  private readonly rests = new Map<string, { label: string; colour: number; text: string }>();
  private readonly latest = new Map<string, string>(); // source -> time of its last line
  private readonly known = new Map<string, string>(); // source -> up to when its lines are here already
  private next = 0;
  private sorted = true;

  // Text of the log `source`; what follows its last line feed waits for more.
  add(source: string, label: string, colour: number, text: string): void {
    const parts = ((this.rests.get(source)?.text ?? '') + text).split('\n');
    const rest = parts.pop() ?? '';
    this.rests.set(source, { label, colour, text: rest });
    for (const part of parts) this.push(source, label, colour, part);
  }

  // The log is read again from about here on: returns the time of its last line, '' if there is none. Lines up to then are
  // not taken again.
  resume(source: string): string {
    this.rests.delete(source);
    const time = this.latest.get(source) ?? '';
    this.known.set(source, time);
    return time;
  }

  // The log has ended: what waited is its last line.
  finish(source: string): void {
    const rest = this.rests.get(source);
    this.rests.delete(source);
    if (rest !== undefined && rest.text !== '') this.push(source, rest.label, rest.colour, rest.text);
  }

  // What was read from several logs at once is put in order; the last of equal times came last.
  settle(): void {
    if (!this.sorted)
      this.lines = [...this.lines].sort((a, b) => (a.time < b.time ? -1 : a.time > b.time ? 1 : a.number - b.number));
    this.sorted = true;
  }

  private push(source: string, label: string, colour: number, stamped: string): void {
    const stamp = STAMP.exec(stamped);
    if (stamp?.[1] !== undefined) {
      if (stamp[1] <= (this.known.get(source) ?? '')) return;
      this.latest.set(source, stamp[1]);
    }
    const last = this.lines[this.lines.length - 1];
    const time = stamp?.[1] ?? last?.time ?? '';
    const raw = stamp === null ? stamped : stamped.slice(stamp[0].length);
    if (last !== undefined && time < last.time) this.sorted = false;
    // Of a line that a progress bar wrote over and over, the last state.
    const clean = raw.replace(/\r$/, '').replace(ESCAPES, '');
    const text = clean.slice(clean.lastIndexOf('\r') + 1);
    this.lines.push({
      number: this.next++,
      time,
      label,
      colour,
      text: text.length > MAX_LINE ? `${text.slice(0, MAX_LINE)} …` : text,
    });
    if (this.lines.length <= MAX_LINES + MAX_LINES / 10) return;
    this.settle();
    this.lines = this.lines.slice(-MAX_LINES);
  }
}
