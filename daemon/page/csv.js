// What a table of directories shows, as comma-separated values (RFC 4180).

import { h } from './dom.js';

const columns = {
  path: (row) => row.path ?? row.label, bytes: (row) => row.bytes, allocated: (row) => row.allocated, files: (row) => row.files, dirs: (row) => row.dirs,
  growth_bytes: (row) => row.growth_bytes, change: (row) => row.change, complete: (row) => row.complete,
};

// A text that begins like a formula would run in a spreadsheet.
function field(value) {
  if (typeof value !== 'string') return value ?? '';
  return `"${/^[=+\-@\t\r]/.test(value) ? "'" : ''}${value.replaceAll('"', '""')}"`;
}

export function save_csv(rows) {
  const lines = [Object.keys(columns), ...rows.map((row) => Object.values(columns).map((read) => field(read(row))))];
  const href = URL.createObjectURL(new Blob([lines.map((line) => `${line.join(',')}\r\n`).join('')], { type: 'text/csv' }));
  h('a', { href, download: 'usage.csv' }).click();
  URL.revokeObjectURL(href);
}
