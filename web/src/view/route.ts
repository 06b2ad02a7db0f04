// Where in the page somebody is: the fragment of the address.

import { useEffect, useState } from 'preact/hooks';

export type Route =
  | { readonly page: 'nodes' }
  | { readonly page: 'node'; readonly name: string }
  | { readonly page: 'queue' }
  | { readonly page: 'jobs' }
  | { readonly page: 'job'; readonly ns: string; readonly kind: string; readonly name: string }
  | { readonly page: 'pod'; readonly ns: string; readonly name: string }
  | { readonly page: 'cost' };

export function parseRoute(hash: string): Route {
  const [page, ...rest] = hash.replace(/^#\/?/, '').split('/').map(decoded);
  const [a, b, c] = rest;
  if (page === 'nodes' && a) return { page: 'node', name: a };
  if (page === 'jobs' && a && b && c) return { page: 'job', ns: a, kind: b, name: c };
  if (page === 'pods' && a && b) return { page: 'pod', ns: a, name: b };
  if (page === 'queue' || page === 'jobs' || page === 'cost') return { page };
  return { page: 'nodes' };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return ''; // somebody typed it
  }
}

export function useRoute(): Route {
  const [hash, setHash] = useState(window.location.hash);
  useEffect(() => {
    const onChange = (): void => setHash(window.location.hash);
    window.addEventListener('hashchange', onChange);
    return () => window.removeEventListener('hashchange', onChange);
  }, []);
  return parseRoute(hash);
}
