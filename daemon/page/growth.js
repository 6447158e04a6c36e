// How an entry has grown, as a class for its colour and as text, which says the same.

import { percent, signedBytes, signedCount } from './format.js';

// What stands before the totals of a cluster while nodes are missing.
export function doubt_of({ nodes = [] }) {
  const silent = nodes.filter((node) => !node.ok);
  return silent.length === 0 ? '' : silent.some((node) => node.last_known) ? 'about ' : 'at least ';
}

// The types of change that can be chosen.
export const changes = { new: 'new', deleted: 'deleted', renamed: 'renamed', recreated: 'recreated', grown: 'grown', shrunk: 'shrunk' };

export function change_of({ growth }) {
  if (!growth || growth.change !== 'grown') return growth?.change ?? null;
  return growth.bytes > 0 ? 'grown' : growth.bytes < 0 ? 'shrunk' : null;
}

const words = { new: 'new', deleted: 'deleted', recreated: 'recreated', renamed: 'renamed' };

export function growth_of(entry, size, is_known) {
  if (!is_known) return { kind: 'plain', text: '' };
  const growth = entry.growth;
  if (!growth) return { kind: 'unknown', text: 'no history', amount: null };
  const amount = growth[size];
  const before = entry[size] - amount;
  const share = before > 0 ? amount / before : amount > 0 ? Infinity : 0;
  const figure = size === 'files' ? signedCount(amount) : signedBytes(amount);
  const sign = amount > 0 ? '▲' : amount < 0 ? '▼' : '=';
  const change = words[growth.change];
  const relative = Number.isFinite(share) && amount !== 0 ? ` (${share > 0 ? '+' : ''}${percent(share)})` : '';
  const doubt = growth.complete === false && entry.complete ? ', incomplete then' : '';
  return { kind: kind_of(share), amount, text: `${sign} ${figure}${change ? `, ${change}` : relative}${doubt}` };
}

function kind_of(share) {
  if (share === 0) return 'same';
  if (share > 0) return share >= 0.25 ? 'grown-much' : 'grown';
  return share <= -0.25 ? 'shrunk-much' : 'shrunk';
}

export const legend = [
  ['shrunk-much', '▼ shrunk by 25 % or more'], ['shrunk', '▼ shrunk'], ['same', '= same size'], ['grown', '▲ grown'],
  ['grown-much', '▲ grown by 25 % or more, or new'], ['unknown', 'no history'],
];
