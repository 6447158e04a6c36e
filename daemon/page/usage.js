// Totals of a directory: its children as a treemap and as a table, one level at a time, and its history.

import { get, Problem } from './api.js';
import { ago, facts, h, name, notice, scrollable, state } from './dom.js';
import { bytes, count, last_component, percent } from './format.js';
import { growth_of, legend } from './growth.js';
import { show_history } from './history.js';
import { treemap } from './treemap.js';

const limits = [200, 1000, 10000];
const defaults = { path: '', scope: 'node', since: '7d', size: 'bytes', sort: 'size', order: 'down', limit: '200' };
const sizes = { bytes: 'Size', allocated: 'Allocated', files: 'Files' };

// What an older daemon does not know is not asked for again.
const known = { scope: true, since: true };

export function address(choice, changes = {}) {
  const all = { ...choice, ...changes };
  const query = new URLSearchParams(Object.entries(all).filter(([key, value]) => key in defaults && value !== defaults[key]));
  return `#usage${query.size > 0 ? `?${query}` : ''}`;
}

async function read(choice) {
  const sort = { name: 'name', files: 'files', growth: known.since && choice.since !== 'none' ? 'growth' : 'size' }[choice.sort] ?? 'size';
  const query = { path: choice.path, depth: 1, limit: choice.limit, sort };
  if (known.scope && choice.scope === 'cluster') query.scope = 'cluster';
  if (known.since && choice.since !== 'none') query.since = choice.since;
  try {
    return await get('/v1/usage', query);
  } catch (problem) {
    const unknown = problem.status === 400 && Object.keys(known).find((key) => query[key] && problem.message.includes(`query parameter '${key}' is not known`));
    if (!unknown) throw problem;
    known[unknown] = false;
    return read(choice);
  }
}

// All that the table and the treemap show, from the answer.
function rows_of(usage, choice) {
  const has_growth = known.since && choice.since !== 'none';
  const entry_row = (entry) => {
    const growth = growth_of(entry, choice.size, has_growth);
    const is_gone = entry.growth?.change === 'deleted';
    return { ...entry, label: last_component(entry.path), growth, from: entry.growth?.from, href: is_gone ? null : address(choice, { path: entry.path, limit: '200' }) };
  };
  const rows = (usage.children ?? []).map(entry_row);
  const { rest } = usage;
  if (rest) rows.push({ ...rest, label: `${count(rest.count)} other directories`, growth: growth_of(rest, choice.size, has_growth), is_rest: true });
  const own = {};
  for (const key of ['files', 'bytes', 'allocated']) own[key] = rows.reduce((left, row) => left - row[key], usage[key]);
  if (own.files > 0 || own.bytes > 0) {
    rows.push({ ...own, dirs: 0, bytes: Math.max(0, own.bytes), allocated: Math.max(0, own.allocated), complete: usage.complete, label: 'Files in this directory', growth: { kind: 'plain', text: '' }, is_rest: true });
  }
  return rows;
}

function sorted(rows, choice) {
  const value = {
    size: (row) => row[choice.size], bytes: (row) => row.bytes, allocated: (row) => row.allocated, files: (row) => row.files,
    dirs: (row) => row.dirs, growth: (row) => row.growth.amount ?? -Infinity,
  }[choice.sort];
  const direction = choice.order === 'up' ? 1 : -1;
  const compare = value
    ? (a, b) => direction * (value(a) - value(b)) || 0
    : (a, b) => -direction * (a.label < b.label ? -1 : a.label > b.label ? 1 : 0);
  const listed = rows.filter((row) => !row.is_rest);
  return [...listed.sort(compare), ...rows.filter((row) => row.is_rest)];
}

function breadcrumb(choice) {
  const names = choice.path ? choice.path.split('/') : [];
  const item = (label, path) => (path === choice.path
    ? h('li', {}, h('span', { 'aria-current': 'page' }, label))
    : h('li', {}, h('a', { href: address(choice, { path, limit: '200' }) }, label)));
  return h('nav', { class: 'breadcrumb', 'aria-label': 'Directory' }, h('ol', {},
    item('All', ''), names.map((each, i) => item(name(each), names.slice(0, i + 1).join('/')))));
}

function select(label, key, options, choice) {
  const change = (event) => { location.hash = address(choice, { [key]: event.target.value }); };
  return h('label', {}, `${label} `, h('select', { id: `choose-${key}`, onchange: change },
    Object.entries(options).map(([value, text]) => h('option', { value, selected: value === choice[key] }, text))));
}

function controls(choice) {
  return h('form', { class: 'controls', 'aria-label': 'What is shown', onsubmit: (event) => event.preventDefault() },
    select('Totals of', 'scope', { node: 'this node', cluster: 'the cluster' }, choice),
    select('Growth in', 'since', { '24h': '24 hours', '7d': '7 days', '30d': '30 days', none: 'no comparison' }, choice),
    select('Area by', 'size', sizes, choice));
}

function notices(usage, choice) {
  const found = [];
  const missing = (usage.nodes ?? []).filter((node) => !node.ok);
  if (choice.scope === 'cluster' && !known.scope) found.push(notice('warn', 'this daemon does not add up the cluster: these are the figures of this node alone.'));
  if (missing.length > 0) {
    const how = (node) => (node.last_known ? `included as of ${node.as_of}` : 'excluded');
    found.push(notice('bad', `${missing.length} of ${usage.nodes.length} nodes did not report their totals. `,
      h('ul', {}, missing.map((node) => h('li', {}, name(node.name || node.url || 'a node'), `: ${how(node)}: `, name(node.error ?? 'no answer'))))));
  }
  for (const { source, error } of usage.unknown_sources ?? []) {
    found.push(notice('bad', 'the figures may be too small: the nodes of ', name(source), ' are not known: ', name(error)));
  }
  if (missing.length === 0 && !usage.complete) found.push(notice('warn', 'changes are pending: the next scan will update these figures.'));
  if (usage.truncated) found.push(notice('warn', 'there are more directories than the daemon lists at once.'));
  if (choice.since !== 'none' && !known.since) found.push(notice('info', 'this daemon keeps no history: growth is not known.'));
  return found;
}

const amount = (entry, key, format) => (entry.saturated ? '≥ ' : '') + format(entry[key]);

function totals(usage, choice) {
  const silent = (usage.nodes ?? []).filter((node) => !node.ok);
  const at_least = silent.length === 0 ? '' : silent.some((node) => node.last_known) ? 'about ' : 'at least ';
  const growth = growth_of(usage, choice.size, known.since && choice.since !== 'none');
  return facts(['Size', at_least, amount(usage, 'bytes', bytes)], ['Allocated', at_least, amount(usage, 'allocated', bytes)],
    usage.logical_bytes === undefined ? null : ['Each copy once', at_least, bytes(usage.logical_bytes)],
    ['Files', at_least, count(usage.files)], ['Directories', at_least, count(usage.dirs)],
    growth.text ? ['Growth', growth.text, usage.growth ? [' since ', ago(usage.growth.since)] : ''] : null,
    ['As of', usage.as_of ? ago(usage.as_of) : 'unknown']);
}

function sort_heading(title, key, choice, is_number) {
  const current = choice.sort === key || (choice.sort === 'size' && key === choice.size);
  const order = current && choice.order === 'down' ? 'up' : 'down';
  const sort = current ? choice.order : null;
  // A name begins with A when its order is "down".
  const direction = sort && ((sort === 'up') !== (key === 'name') ? 'ascending' : 'descending');
  const go = () => { location.hash = address(choice, { sort: key, order }); };
  return h('th', { scope: 'col', class: is_number ? 'number' : null, 'aria-sort': direction },
    h('button', { type: 'button', class: 'sort', id: `sort-${key}`, onclick: go }, title,
      h('span', { 'aria-hidden': 'true' }, direction ? (direction === 'ascending' ? ' ↑' : ' ↓') : '')));
}

function row_of(row, total, choice, columns) {
  const label = row.is_rest ? row.label : name(row.label);
  const marks = [
    row.complete === false ? state('warn', choice.scope === 'cluster' ? 'incomplete' : 'changes pending') : null,
    row.from ? [' from ', name(row.from)] : null,
  ];
  const cells = {
    name: () => h('th', { scope: 'row' }, row.href ? h('a', { href: row.href }, label) : label, ' ', marks.filter(Boolean)),
    share: () => h('td', { class: 'number' }, total > 0 ? percent(row[choice.size] / total) : '–'),
    growth: () => h('td', { class: 'number' }, h('span', { class: `growth ${row.growth.kind}` }, row.growth.text || '–')),
    bytes: () => h('td', { class: 'number' }, amount(row, 'bytes', bytes)),
    logical_bytes: () => h('td', { class: 'number' }, bytes(row.logical_bytes)),
    allocated: () => h('td', { class: 'number' }, amount(row, 'allocated', bytes)),
    files: () => h('td', { class: 'number' }, count(row.files)),
    dirs: () => h('td', { class: 'number' }, count(row.dirs)),
  };
  return h('tr', { class: row.is_rest ? 'rest' : null }, columns.map((column) => cells[column]()));
}

function table(usage, rows, choice) {
  const titles = { name: 'Directory', bytes: 'Size', share: 'Share', growth: 'Growth', files: 'Files', dirs: 'Dirs', allocated: 'Allocated', logical_bytes: 'Each copy once' };
  const has_growth = known.since && choice.since !== 'none';
  const columns = Object.keys(titles).filter((column) =>
    (column !== 'growth' || has_growth) && (column !== 'logical_bytes' || usage.logical_bytes !== undefined));
  const heading = (column) => (column === 'share' || column === 'logical_bytes'
    ? h('th', { scope: 'col', class: 'number' }, titles[column])
    : sort_heading(titles[column], column, choice, column !== 'name'));
  const listed = usage.children?.length ?? 0;
  const all = listed + (usage.rest?.count ?? 0);
  const caption = usage.rest ? `The first ${count(listed)} of ${count(all)} directories` : `All ${count(all)} directories`;
  return scrollable(caption, h('table', { class: 'usage' },
    h('caption', {}, caption),
    h('thead', {}, h('tr', {}, columns.map(heading))),
    h('tbody', {}, rows.length > 0
      ? sorted(rows, choice).map((row) => row_of(row, usage[choice.size], choice, columns))
      : h('tr', {}, h('td', { colspan: columns.length, class: 'empty' }, 'Empty.')))));
}

function more(usage, choice) {
  const next = limits.find((limit) => limit > Number(choice.limit));
  if (!usage.rest || !next) return null;
  return h('p', {}, h('a', { class: 'button', href: address(choice, { limit: `${next}` }) }, `List up to ${count(next)}`));
}

function map_of(rows, choice) {
  const tiles = rows.map((row) => ({
    label: row.label, href: row.href, value: row[choice.size], kind: row.is_rest ? `rest ${row.growth.kind}` : row.growth.kind,
    size: choice.size === 'files' ? `${count(row.files)} files` : bytes(row[choice.size]), growth: row.growth.text,
  })).sort((a, b) => b.value - a.value);
  const has_growth = known.since && choice.since !== 'none';
  return h('figure', { class: 'map' },
    treemap(`Directories as areas by ${sizes[choice.size].toLowerCase()}`, tiles),
    h('figcaption', {}, has_growth
      ? h('ul', { class: 'legend' }, legend.map(([kind, text]) => h('li', {}, h('span', { class: `tile swatch ${kind}`, 'aria-hidden': 'true' }), text)))
      : 'Areas are proportional. Without history there is no colour for growth.'));
}

function explain(problem, path) {
  if (problem.code === 'no_scan') return notice('info', 'this node has not been scanned yet. Run spoor scan.');
  const is_lost = problem.code === 'not_found' && path.includes('\ufffd');
  return notice('bad', problem.message, is_lost ? '. Its name has bytes that are not UTF-8, by which this page cannot ask for it; spoor usage can.' : '');
}

let latest = 0;  // a slow answer must not replace that of a later choice

export async function show_usage(view, query) {
  const choice = { ...defaults, ...Object.fromEntries([...query].filter(([key]) => key in defaults)) };
  const request = ++latest;
  view.setAttribute('aria-busy', 'true');
  const head = [h('h1', { tabindex: '-1' }, 'Usage'), breadcrumb(choice), controls(choice)];
  const focused = view.contains(document.activeElement) ? document.activeElement : null;
  const put = (...content) => {
    view.replaceChildren(...head, ...content.flat().filter(Boolean));
    view.removeAttribute('aria-busy');
    if (focused && !focused.isConnected) (document.getElementById(focused.id) ?? head[0]).focus();
  };
  try {
    const usage = await read(choice);
    if (request !== latest || !view.isConnected) return;
    const rows = rows_of(usage, choice);
    const history = h('div', {});
    put(notices(usage, choice), totals(usage, choice),
      h('div', { class: 'beside' }, map_of(rows, choice), h('div', { class: 'list' }, table(usage, rows, choice), more(usage, choice))),
      h('section', { 'aria-labelledby': 'history' }, h('h2', { id: 'history' }, 'History of ', choice.path ? name(last_component(choice.path)) : 'everything', ' on this node'), history));
    await show_history(history, choice.path, choice.since === 'none' ? null : choice.since);
  } catch (problem) {
    if (request !== latest || !view.isConnected) return;
    if (!(problem instanceof Problem) || problem.status === 401) throw problem;
    put(explain(problem, choice.path));
  }
}
