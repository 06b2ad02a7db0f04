import { createContext } from 'preact';
import { useContext, useEffect, useReducer, useState } from 'preact/hooks';

import type { Cluster } from '../api/cluster.ts';

export const ClusterContext = createContext<Cluster | undefined>(undefined);

// The cluster; the component is drawn again whenever it has changed.
export function useCluster(): Cluster {
  const cluster = useContext(ClusterContext);
  if (cluster === undefined) throw new Error('a view outside of the cluster');
  // Not the cluster's version: another cluster's may be the same.
  const [, redraw] = useReducer((times: number) => times + 1, 0);
  useEffect(() => cluster.subscribe(() => redraw(undefined)), [cluster]);
  return cluster;
}

// The present, again each second.
export function useNow(): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  return now;
}
