// Numbers and times as people read them.

const SECOND = 1000,
  MINUTE = 60 * SECOND,
  HOUR = 60 * MINUTE,
  DAY = 24 * HOUR;

// "45s", "3m 20s", "5h 12m", "3d 4h": two units at most, the second only where it tells something.
export function duration(milliseconds: number): string {
  const span = Math.max(0, milliseconds);
  if (span < MINUTE) return `${Math.floor(span / SECOND)}s`;
  if (span < HOUR) return pair(span, MINUTE, 'm', SECOND, 's', 10);
  if (span < DAY) return pair(span, HOUR, 'h', MINUTE, 'm', 24);
  return pair(span, DAY, 'd', HOUR, 'h', 10);
}

// The smaller unit is left out from `plain` larger ones on.
function pair(span: number, large: number, largeName: string, small: number, smallName: string, plain: number): string {
  const whole = Math.floor(span / large);
  const rest = Math.floor((span % large) / small);
  return whole >= plain || rest === 0 ? `${whole}${largeName}` : `${whole}${largeName} ${rest}${smallName}`;
}

export function bytes(value: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let amount = value,
    unit = 0;
  while (amount >= 1024 && unit < units.length - 1) {
    amount /= 1024;
    ++unit;
  }
  return `${short(amount)} ${units[unit]}`;
}

// "0.25", "4", "12.5": three digits that count.
export function short(value: number): string {
  if (value === 0) return '0';
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString('en-US');
  return String(Number(value.toPrecision(3)));
}

// GPU-hours: what is short of a hundredth is something all the same.
export function hours(value: number): string {
  if (value === 0) return '0';
  if (value < 0.01) return '< 0.01';
  return value < 10 ? value.toFixed(2) : short(value);
}

export function percent(part: number): string {
  return `${Math.round(part * 100)} %`;
}

// Shares count as parts.
export function gpuCount(count: number): string {
  return `${short(count)} ${count === 1 ? 'GPU' : 'GPUs'}`;
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString('en-US')} ${count === 1 ? one : many}`;
}

export function clock(time: number): string {
  return new Date(time).toLocaleTimeString([], {
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hour12: false,
  });
}
