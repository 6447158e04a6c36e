// The last scans: what they walked, what they missed.

import { get } from './api.js';
import { ago, bar, h, state, table } from './dom.js';
import { bytes, count, duration, percent } from './format.js';
import { part, show_parts } from './part.js';

const shown_max = 50;

// The states of a scan that an operator has to know.
export function remarks(scan) {
  const found = [];
  if (scan.partial) found.push(['warn', 'partial: something was left for next time']);
  if (scan.missed_changes > 0) found.push(['bad', `${count(scan.missed_changes)} missed changes, found by the audit`]);
  if (scan.errors > 0) found.push(['warn', `${count(scan.errors)} errors`]);
  return found;
}

function reason(text) {
  if (text.length <= 90) return text;
  return h('details', {}, h('summary', {}, `${text.slice(0, 80)}…`), text);
}

function row(scan) {
  const all = scan.dirs_walked + scan.dirs_skipped;
  const walked = all > 0 ? scan.dirs_walked / all : 0;
  const found = remarks(scan);
  return [
    `${scan.scan}`,
    ago(scan.finished_at),
    duration(scan.duration_s),
    found.length > 0 ? found.map(([kind, text]) => h('div', {}, state(kind, text))) : state('good', 'complete'),
    [scan.mode, scan.reason ? [': ', reason(scan.reason)] : null],
    [bar(walked), ` ${count(scan.dirs_walked)} (${percent(walked)})`],
    count(scan.dirs_skipped),
    count(scan.dirs_changed),
    count(scan.dirs_new),
    count(scan.dirs_deleted),
    count(scan.missed_changes),
    scan.false_positive_rate === null ? '–' : percent(scan.false_positive_rate),
    count(scan.files),
    bytes(scan.bytes),
  ];
}

const number = true;
const columns = [
  { title: 'Scan' }, { title: 'Finished' }, { title: 'Took', number }, { title: 'Result' }, { title: 'Mode and reason' },
  { title: 'Walked' }, { title: 'Skipped', number }, { title: 'Changed', number }, { title: 'New', number },
  { title: 'Deleted', number }, { title: 'Missed changes', number }, { title: 'False positives', number },
  { title: 'Files', number }, { title: 'Size', number },
];

const brief = [0, 1, 2, 3, 5, 7, 13];
export const brief_columns = brief.map((i) => columns[i]);
export const brief_row = (scan) => brief.map((i) => row(scan)[i]);

const all_scans = () => part('scans', null, async () => {
  const { scans } = await get('/v1/scans', { limit: shown_max });
  return [
    h('p', { class: 'help' }, 'Directories without a mark are skipped; those with one, and those below a gap, are walked. ' +
      'A false positive was walked and had not changed. A missed change had no mark, and the audit found it.'),
    table(`The last ${count(scans.length)} scans of this node, newest first`, columns, scans.map(row)),
  ];
});

export const show_scans = (view) => show_parts(view, 'Scans', [all_scans()]);
