// VirtualList: rows of one height, of which only those in sight exist. Arrow keys, Page Up and Down, Home and End move
// between rows, which are links or buttons.

import type { ComponentChildren, VNode } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';

interface Props<T> {
  readonly label: string;
  readonly items: readonly T[];
  readonly rowHeight: number;
  readonly header?: VNode;
  readonly empty: ComponentChildren;
  readonly keyOf: (item: T) => string;
  readonly row: (item: T) => VNode;
  readonly className?: string;
}

const OVERSCAN = 8;

export function VirtualList<T>({
  label,
  items,
  rowHeight,
  header,
  empty,
  keyOf,
  row,
  className = '',
}: Props<T>): VNode {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 800 });
  const look = (): void => {
    const element = box.current;
    if (element !== null) setView({ top: element.scrollTop, height: element.clientHeight });
  };
  useLayoutEffect(() => {
    look();
    const observer = new ResizeObserver(look);
    if (box.current !== null) observer.observe(box.current);
    return () => observer.disconnect();
  }, []);

  const first = Math.max(0, Math.floor(view.top / rowHeight) - OVERSCAN);
  const last = Math.min(items.length, Math.ceil((view.top + view.height) / rowHeight) + OVERSCAN);
  const shown = items.slice(first, last);

  const scrolls = items.length * rowHeight > view.height;

  const onKeyDown = (event: KeyboardEvent): void => {
    const target = event.target as HTMLElement;
    const current = Number(target.closest<HTMLElement>('[data-index]')?.dataset['index'] ?? -1);
    const page = Math.max(1, Math.floor(view.height / rowHeight) - 1);
    const steps: Readonly<Record<string, number>> = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: page,
      PageUp: -page,
      Home: -items.length,
      End: items.length,
    };
    const step = steps[event.key];
    if (step === undefined || items.length === 0) return;
    event.preventDefault();
    focusRow(Math.max(0, Math.min(items.length - 1, current + step)));
  };
  const focusRow = (index: number): void => {
    const element = box.current;
    if (element === null) return;
    const top = index * rowHeight;
    if (top < element.scrollTop) element.scrollTop = top;
    if (top + rowHeight > element.scrollTop + element.clientHeight)
      element.scrollTop = top + rowHeight - element.clientHeight;
    look();
    requestAnimationFrame(() => element.querySelector<HTMLElement>(`[data-index="${index}"] a`)?.focus());
  };

  return (
    <div
      class={`list ${className}${scrolls ? ' scrolls' : ''}`}
      role="table"
      aria-label={label}
      aria-rowcount={items.length}
    >
      {header}
      <div class="list-box" ref={box} onScroll={look} onKeyDown={onKeyDown}>
        {items.length === 0 ? (
          <div class="empty">{empty}</div>
        ) : (
          <div class="list-rows" style={{ height: `${items.length * rowHeight}px` }}>
            {shown.map((item, i) => (
              <div
                key={keyOf(item)}
                class="list-row"
                role="row"
                data-index={first + i}
                style={{ height: `${rowHeight}px`, transform: `translateY(${(first + i) * rowHeight}px)` }}
              >
                {row(item)}
              </div>
            ))}
          </div>
        )}
      </div>
    </div>
  );
}
