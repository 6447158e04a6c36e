// Requests to the daemon that serves this page.

const time_max_ms = 30000;

// An answer that is not a success (RFC 9457). `status` is 0 if there was none.
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail ?? `status ${status}`);
    this.status = status;
    this.code = body.code ?? '';
    this.reasons = body.reasons ?? [];
  }
}

// How far the clock of the node is ahead of this one, from the last answer.
let ahead_ms = 0;
export const node_now = () => Date.now() + ahead_ms;

// The secret of the session, which the daemon needs beside the cookie: a browser sends the cookie, which is not for
// scripts, to every port of this host, and keeps this for one port.
const key = 'spoor.session';
const credentials = () => (may_sign_out() ? { Authorization: `Session ${localStorage.getItem(key)}` } : {});

// Called after each response with null, or with a problem that concerns the whole page: no response, or 401.
let report = () => {};
export function on_response(listener) { report = listener; }

async function exchange(method, target, headers = credentials()) {
  let response;
  try {
    response = await fetch(target, {
      method, headers, cache: 'no-store', credentials: 'same-origin', redirect: 'error',
      signal: AbortSignal.timeout(time_max_ms),
    });
  } catch {
    const problem = new Problem(0, { detail: 'the daemon does not respond' });
    report(problem);
    throw problem;
  }
  const date = Date.parse(response.headers.get('date') ?? '');
  if (!Number.isNaN(date) && Math.abs(date - node_now()) > 2000) ahead_ms = date - Date.now();
  const body = await response.json().catch(() => ({}));
  const problem = response.ok ? null : new Problem(response.status, body);
  report(problem?.status === 401 ? problem : null);
  if (problem) throw problem;
  return body;
}

// Parts of the page that ask for the same at the same time share the response.
const under_way = new Map();

// Members of `query` that are null or empty are left out.
export function get(path, query = {}) {
  const set = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== '');
  const text = set.map(([key, value]) => `${key}=${encodeURIComponent(value)}`).join('&');
  const target = text ? `${path}?${text}` : path;
  if (!under_way.has(target)) under_way.set(target, exchange('GET', target).finally(() => under_way.delete(target)));
  return under_way.get(target);
}

export const minute_ms = 60000;

// What asks all nodes or touches the disks is not asked for every few seconds. A failure is not kept.
export function at_most_each_minute(read) {
  let asked_at = -Infinity;
  let last = null;
  return () => {
    if (!last || Date.now() - asked_at > minute_ms) {
      asked_at = Date.now();
      last = read();
      last.catch(() => { last = null; });
    }
    return last;
  };
}

export async function sign_in(token) {
  const { secret } = await exchange('POST', '/v1/session', { Authorization: `Bearer ${token}` });
  if (secret) localStorage.setItem(key, secret);
}

export async function sign_out() {
  await exchange('DELETE', '/v1/session');
  localStorage.removeItem(key);
}

export const may_sign_out = () => localStorage.getItem(key) !== null;
