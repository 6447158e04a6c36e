// Totals of a directory: its children as a treemap and as a table, who owns its files, and its history.

import { get, minute_ms } from './api.js';
import { save_csv } from './csv.js';
import { ago, facts, h, name, notice, scrollable, state, table as plain_table } from './dom.js';
import { bytes, count, last_component, moment, percent } from './format.js';
import { change_of, changes, doubt_of, growth_of, legend } from './growth.js';
import { show_history } from './history.js';
import { explain as explain_problem, loading, part } from './part.js';
import { treemap } from './treemap.js';

const limits = [200, 1000, 10000];
const defaults = { path: '', scope: 'node', since: '7d', size: 'bytes', change: '', search: '', sort: 'size', order: 'down', limit: '200' };
const inner_max = 30;        // the second level of the treemap
const inner_nodes_max = 32;  // each sends up to 2 MiB for it
const search_depth = 16;     // what the daemon permits
const search_limit = 10000;
const sizes = { bytes: 'Size', allocated: 'Allocated', files: 'Files' };

export function address(choice, changes = {}) {
  const all = { ...choice, ...changes };
  const query = new URLSearchParams(Object.entries(all).filter(([key, value]) => key in defaults && value !== defaults[key]));
  return `#usage${query.size > 0 ? `?${query}` : ''}`;
}

const has_growth = (choice) => choice.since !== 'none';

// Directories that are gone have no size: only the order by growth lists them first.
function read(choice, { depth = 1, limit = choice.limit, ...more } = {}) {
  const by = choice.change ? 'growth' : choice.sort;
  const sort = { name: 'name', files: 'files', growth: has_growth(choice) ? 'growth' : 'size' }[by] ?? 'size';
  return get('/v1/usage', { path: choice.path, depth, limit, sort, scope: choice.scope, since: has_growth(choice) ? choice.since : null, ...more });
}

// All that the table and the treemap show, from an entry of the answer.
function rows_of(entry, choice) {
  const rows = (entry.children ?? []).map((child) => row_of_entry(child, last_component(child.path), choice));
  const { rest } = entry;
  if (rest) rows.push({ ...rest, label: `${count(rest.count)} other directories`, growth: growth_of(rest, choice.size, has_growth(choice)), is_rest: true });
  const own = {};
  for (const key of ['files', 'bytes', 'allocated']) own[key] = rows.reduce((left, row) => left - row[key], entry[key]);
  if (own.files > 0 || own.bytes > 0) {
    rows.push({ ...own, dirs: 0, bytes: Math.max(0, own.bytes), allocated: Math.max(0, own.allocated), complete: entry.complete, label: 'Files in this directory', growth: { kind: 'plain', text: '' }, is_rest: true });
  }
  return rows;
}

function row_of_entry(entry, label, choice) {
  const is_gone = entry.growth?.change === 'deleted';
  return { ...entry, label, growth: growth_of(entry, choice.size, has_growth(choice)), growth_bytes: entry.growth?.bytes, change: change_of(entry), from: entry.growth?.from,
    href: is_gone ? null : address(choice, { path: entry.path, limit: '200', search: '' }) };
}

// The directories below the entry whose name has the text, in any case.
function found_below(entry, choice) {
  const text = choice.search.toLowerCase();
  const start = choice.path ? choice.path.length + 1 : 0;
  return (entry.children ?? []).flatMap((child) => [
    ...(last_component(child.path).toLowerCase().includes(text) ? [row_of_entry(child, child.path.slice(start), choice)] : []),
    ...found_below(child, choice)]);
}

const has_rest = (entry) => entry.rest !== undefined || (entry.children ?? []).some(has_rest);

function sorted(rows, choice) {
  const value = {
    size: (row) => row[choice.size], bytes: (row) => row.bytes, allocated: (row) => row.allocated, files: (row) => row.files,
    dirs: (row) => row.dirs, growth: (row) => row.growth.amount ?? -Infinity,
  }[choice.sort];
  const direction = choice.order === 'up' ? 1 : -1;
  const compare = value
    ? (a, b) => direction * (value(a) - value(b)) || 0
    : (a, b) => -direction * (a.label < b.label ? -1 : a.label > b.label ? 1 : 0);
  const listed = rows.filter((row) => !row.is_rest && (!choice.change || row.change === choice.change));
  return [...listed.sort(compare), ...(choice.change ? [] : rows.filter((row) => row.is_rest))];
}

function breadcrumb(choice) {
  const names = choice.path ? choice.path.split('/') : [];
  const item = (label, path) => (path === choice.path
    ? h('li', {}, h('span', { 'aria-current': 'page' }, label))
    : h('li', {}, h('a', { href: address(choice, { path, limit: '200', search: '' }) }, label)));
  return h('nav', { class: 'breadcrumb', 'aria-label': 'Directory' }, h('ol', {},
    item('All', ''), names.map((each, i) => item(name(each), names.slice(0, i + 1).join('/')))));
}

function select(label, key, options, choice) {
  const change = (event) => { location.hash = address(choice, { [key]: event.target.value }); };
  return h('label', {}, `${label} `, h('select', { id: `choose-${key}`, onchange: change },
    Object.entries(options).map(([value, text]) => h('option', { value, selected: value === choice[key] }, text))));
}

function controls(choice) {
  const search = h('input', { id: 'search', type: 'search', value: choice.search, maxlength: 255 });
  const submit = (event) => {
    event.preventDefault();
    location.hash = address(choice, { search: search.value.trim() });
  };
  return h('form', { class: 'controls', 'aria-label': 'What is shown', onsubmit: submit },
    select('Totals of', 'scope', { node: 'this node', cluster: 'the cluster' }, choice),
    select('Growth in', 'since', { '24h': '24 hours', '7d': '7 days', '30d': '30 days', none: 'no comparison' }, choice),
    select('Area by', 'size', sizes, choice),
    has_growth(choice) ? select('Changes', 'change', { '': 'all', ...changes }, choice) : null,
    h('span', { class: 'search' }, h('label', {}, 'Names below ', search), ' ', h('button', { type: 'submit' }, 'Search')));
}

function notices(usage, choice) {
  const found = [];
  const missing = (usage.nodes ?? []).filter((node) => !node.ok);
  if (missing.length > 0) {
    const how = (node) => (node.last_known ? `included as of ${moment(node.as_of)}` : 'excluded');
    found.push(notice('bad', `${missing.length} of ${usage.nodes.length} nodes did not report their totals. `,
      h('ul', {}, missing.map((node) => h('li', {}, name(node.name || node.url || 'a node'), `: ${how(node)}: `, name(node.error ?? 'no answer'))))));
  }
  for (const source of usage.unknown_sources ?? []) {
    found.push(notice('bad', 'the figures may be too small, as further nodes may be missing: ', name(source)));
  }
  if (missing.length === 0 && !usage.complete) found.push(notice('warn', 'changes are pending: the next scan will update these figures.'));
  if (usage.truncated && !choice.search) found.push(notice('warn', 'there are more directories than the daemon lists at once.'));
  return found;
}

const amount = (entry, key, format) => (entry.saturated ? '≥ ' : '') + format(entry[key]);

function totals(usage, choice) {
  const at_least = doubt_of(usage);
  const growth = growth_of(usage, choice.size, has_growth(choice));
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

function table(usage, rows, choice, caption) {
  const titles = { name: 'Directory', bytes: 'Size', share: 'Share', growth: 'Growth', files: 'Files', dirs: 'Dirs', allocated: 'Allocated', logical_bytes: 'Each copy once' };
  const columns = Object.keys(titles).filter((column) =>
    (column !== 'growth' || has_growth(choice)) && (column !== 'logical_bytes' || usage.logical_bytes !== undefined));
  const heading = (column) => (column === 'share' || column === 'logical_bytes'
    ? h('th', { scope: 'col', class: 'number' }, titles[column])
    : sort_heading(titles[column], column, choice, column !== 'name'));
  return [scrollable(caption, h('table', { class: 'usage' },
    h('caption', {}, caption),
    h('thead', {}, h('tr', {}, columns.map(heading))),
    h('tbody', {}, rows.length > 0
      ? rows.map((row) => row_of(row, usage[choice.size], choice, columns))
      : h('tr', {}, h('td', { colspan: columns.length, class: 'empty' }, choice.search || choice.change ? 'None.' : 'Empty.'))))),
    h('p', {}, rows.length > 0 ? h('button', { type: 'button', id: 'export', onclick: () => save_csv(rows) }, 'Export CSV') : '', ' ', choice.search ? '' : more(usage, choice) ?? '')];
}

function caption_of(usage, choice) {
  const listed = usage.children?.length ?? 0;
  const all = listed + (usage.rest?.count ?? 0);
  return `${usage.rest ? `The first ${count(listed)} of ${count(all)} directories` : `All ${count(all)} directories`}${choice.change ? `: ${changes[choice.change]}` : ''}`;
}

function more(usage, choice) {
  const next = limits.find((limit) => limit > Number(choice.limit));
  if (!usage.rest || !next) return null;
  return h('a', { class: 'button', href: address(choice, { limit: `${next}` }) }, `List up to ${count(next)}`);
}

function tiles_of(rows, choice, inner = new Map()) {
  return rows.map((row) => ({
    label: row.label, href: row.href, value: row[choice.size], kind: row.is_rest ? `rest ${row.growth.kind}` : row.growth.kind,
    size: choice.size === 'files' ? `${count(row.files)} files` : bytes(row[choice.size]), growth: row.growth.text,
    inner: row.is_rest ? null : inner.get(row.path),
  })).sort((a, b) => b.value - a.value);
}

// At once with one level; the second one follows.
function map_of(usage, rows, choice) {
  const map = treemap(`Directories as areas by ${sizes[choice.size].toLowerCase()}`);
  map.set(tiles_of(rows, choice));
  const has_second = (usage.nodes ?? []).length <= inner_nodes_max;
  if (has_second) read(choice, { depth: 2, limit: inner_max }).then(({ children }) => {
    const inner = new Map((children ?? []).filter((child) => child.children?.length > 0)
      .map((child) => [child.path, tiles_of(rows_of(child, choice), choice)]));
    map.set(tiles_of(rows, choice, inner));
  }, explain_problem);  // one level is shown
  return h('figure', { class: 'map' },
    map.box,
    h('figcaption', {}, has_growth(choice)
      ? h('ul', { class: 'legend' }, legend.map(([kind, text]) => h('li', {}, h('span', { class: `tile swatch ${kind}`, 'aria-hidden': 'true' }), text)))
      : 'Areas are proportional. Without history there is no colour for growth.'));
}

function owners_of(choice) {
  return part('owners', 'Owners', async () => {
    const { owners } = await read(choice, { depth: 0, owners: 1 });
    if (!owners) return notice('info', 'no totals by owner are kept of this directory. usage.owners of the configuration keeps them.');
    const all = owners.list.reduce((sum, owner) => sum + owner[choice.size], owners.rest?.[choice.size] ?? 0);
    const id = (number) => (number === null ? 'others' : `${number}`);
    const row = (title, group, each) => [title, group, bytes(each.bytes), all > 0 ? percent(each[choice.size] / all) : '–', count(each.files), bytes(each.allocated)];
    const rows = owners.list.map((owner) => row(id(owner.uid), id(owner.gid), owner));
    if (owners.rest) rows.push(row(`${count(owners.rest.count)} other owners`, '', owners.rest));
    return plain_table(owners.complete ? 'By user and group' : 'By user and group; incomplete',
      [{ title: 'User' }, { title: 'Group' }, ...['Size', 'Share', 'Files', 'Allocated'].map((title) => ({ title, number: true }))], rows);
  });
}

function explain(problem, path) {
  const is_lost = problem.code === 'not_found' && path.includes('\ufffd');
  return is_lost ? notice('bad', problem.message, '. Its name has bytes that are not UTF-8, by which this page cannot ask for it; spoor usage can.')
    : explain_problem(problem);
}

function result_of_search(usage, choice) {
  const rows = sorted(found_below(usage, choice), choice);
  const shown = rows.slice(0, limits[0]);
  return [
    usage.truncated || has_rest(usage) ? notice('warn', `only the ${count(search_limit)} directories that the daemon lists at once, the upper ones first, were searched.`) : null,
    table(usage, shown, choice, `${count(rows.length)} directories below with “${choice.search}” in the name${rows.length > shown.length ? `; the first ${count(shown.length)} are shown` : ''}`),
  ];
}

// Differs after a scan.
const version_of = ({ as_of, bytes: size, files, nodes = [] }) =>
  JSON.stringify([as_of, size, files, nodes.map((node) => [node.name, node.as_of, node.ok])]);

let latest = 0;  // a slow answer must not replace that of a later choice

// Returns what reads all anew if there was a scan: without one, what the user reads must not move.
export function show_usage(view, query) {
  const choice = { ...defaults, ...Object.fromEntries([...query].filter(([key]) => key in defaults)) };
  const request = ++latest;
  const is_latest = () => request === latest && view.isConnected;
  let version = null;
  let asked_at = null;
  const title = h('h1', { tabindex: '-1' }, 'Usage');
  const head = [title, breadcrumb(choice), controls(choice)];
  const main = view.querySelector('.totals') ?? h('div', { class: 'totals' }, loading());
  const put = (...content) => main.replaceChildren(...content.flat(2).filter(Boolean));

  async function load() {
    asked_at = Date.now();
    view.setAttribute('aria-busy', 'true');
    const focused = view.contains(document.activeElement) ? document.activeElement : null;
    const owners = owners_of(choice);
    const history = h('div', {}, loading());
    const parts = [owners.element, h('section', { 'aria-labelledby': 'history' },
      h('h2', { id: 'history' }, 'History of ', choice.path ? name(last_component(choice.path)) : 'everything', choice.scope === 'cluster' ? ' in the cluster' : ' on this node'), history)];
    const show_all = (...below) => {
      if (!title.isConnected) view.replaceChildren(...head, main);  // else what is typed there would be lost
      while (main.nextSibling) main.nextSibling.remove();
      main.after(...below);
      view.removeAttribute('aria-busy');
      if (focused && !focused.isConnected) (document.getElementById(focused.id) ?? title).focus();
    };
    if (!main.parentNode) view.replaceChildren(...head, main);
    try {
      const usage = await read(choice, choice.search ? { depth: search_depth, limit: search_limit } : {});
      if (!is_latest()) return;
      version = version_of(usage);
      if (choice.search) {
        put(notices(usage, choice), result_of_search(usage, choice));
        return show_all();
      }
      const rows = rows_of(usage, choice);
      put(notices(usage, choice), totals(usage, choice),
        h('div', { class: 'beside' }, map_of(usage, rows, choice), h('div', { class: 'list' }, table(usage, sorted(rows, choice), choice, caption_of(usage, choice)))));
      show_all(...parts);
      owners.refresh();
      show_history(history, choice, is_latest);
    } catch (problem) {
      const text = explain(problem, choice.path);
      if (!is_latest() || (problem.status === 0 && version)) return;
      put(text);
      show_all();
    }
    return undefined;
  }

  load();
  return async () => {
    if (!version) return load();
    if (choice.scope === 'cluster' && Date.now() - asked_at < minute_ms) return undefined;
    asked_at = Date.now();
    try {
      const usage = await read(choice, { depth: 0 });
      if (is_latest() && version_of(usage) !== version) load();
    } catch (problem) {
      explain(problem, choice.path);
    }
    return undefined;
  };
}
