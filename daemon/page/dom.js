// Elements. Text is always set as text: nothing here parses HTML. What cannot be seen in it becomes an escape.

import { node_now } from './api.js';
import { age, moment, name_parts, printable } from './format.js';

// h('a', {href: '#x', class: 'y', onclick: f, style: {width: '5%'}}, 'text', element, [more], null)
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'style') Object.assign(element.style, value);  // an attribute would violate the CSP
    else element.setAttribute(name, value === true ? '' : name === 'href' ? value : printable(`${value}`));
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined)
    .map((child) => (child instanceof Node ? child : printable(`${child}`))));
  return element;
}

// A name that comes from a disk: isolated, so that marks for the direction of text in it move nothing else, and
// with its invisible characters as escapes.
export function name(text) {
  return h('bdi', { class: 'name' }, name_parts(text).map((part) =>
    part.escaped ? h('span', { class: 'escape' }, part.text) : part.text));
}

export function time(at, text) {
  return h('time', { datetime: at, title: moment(at) }, text);
}

// A node, as a link to its own page where its address is one for browsers.
export function node_link(text, url) {
  return h('a', { href: /^https?:\/\//.test(url ?? '') ? url : null, rel: 'noreferrer' }, name(text));
}

export function ago(at) {
  if (!at) return 'never';
  const element = time(at, age(at, node_now()));
  element.className = 'age';
  return element;
}

// What is shown gets older.
export function refresh_ages(root) {
  for (const element of root.querySelectorAll('time.age')) element.textContent = age(element.dateTime, node_now());
}

// The number is beside it, as text.
export function bar(share, kind = '') {
  const width = `${Math.min(100, Math.max(0, 100 * share))}%`;
  return h('span', { class: `bar ${kind}`, 'aria-hidden': 'true' }, h('span', { style: { width } }));
}

export function state(kind, text) {
  const signs = { good: '●', warn: '▲', bad: '✖', unknown: '○' };
  return h('span', { class: `state ${kind}` }, h('span', { class: 'sign', 'aria-hidden': 'true' }, signs[kind]), text);
}

export function notice(kind, ...content) {
  const words = { bad: 'Error', warn: 'Warning', info: 'Note' };
  return h('p', { class: `notice ${kind}` }, h('strong', {}, `${words[kind]}: `), ...content);
}

// Can be scrolled sideways on a narrow screen, also by keyboard.
export function scrollable(label, content) {
  return h('div', { class: 'scroll', role: 'region', tabindex: '0', 'aria-label': label }, content);
}

// columns: [{title, number}], rows: arrays of cells. The first cell of a row is its heading.
export function table(caption, columns, rows, empty = 'None.') {
  const kind = (column) => (column.number ? 'number' : null);
  const kind_of = (content) => [content].flat()[0]?.classList?.[0];  // a name needs some width, a bar stays with its figure
  const cell = (content, i) => h(i === 0 ? 'th' : 'td',
    { class: kind(columns[i]) ?? { name: 'long', bar: 'nowrap' }[kind_of(content)], scope: i === 0 ? 'row' : null }, content);
  const body = rows.length > 0
    ? rows.map((row) => h('tr', {}, row.map(cell)))
    : h('tr', {}, h('td', { colspan: columns.length, class: 'empty' }, empty));
  return scrollable(caption, h('table', { class: columns.length > 10 ? 'wide' : null },
    h('caption', {}, caption),
    h('thead', {}, h('tr', {}, columns.map((column) => h('th', { scope: 'col', class: kind(column) }, column.title)))),
    h('tbody', {}, body)));
}

export function facts(...pairs) {
  return h('dl', { class: 'facts' }, pairs.filter(Boolean).map(([title, ...value]) =>
    h('div', {}, h('dt', {}, title), h('dd', {}, ...value))));
}

// Makes `old` equal to `fresh`, and keeps what is the same, with its focus and its scroll position. Listeners of
// `fresh` are lost where `old` stays.
function patch(old, fresh) {
  if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName) return old.replaceWith(fresh);
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return undefined;
  }
  for (const { name: each } of [...old.attributes]) {
    if (!fresh.hasAttribute(each) && each !== 'open' && each !== 'style') old.removeAttribute(each);
  }
  for (const { name: each, value } of fresh.attributes) {
    if (each !== 'style' && old.getAttribute(each) !== value) old.setAttribute(each, value);
  }
  if (old.style.cssText !== fresh.style.cssText) old.style.cssText = fresh.style.cssText;
  const [before, after] = [[...old.childNodes], [...fresh.childNodes]];
  after.forEach((child, i) => (i < before.length ? patch(before[i], child) : old.append(child)));
  before.slice(after.length).forEach((child) => child.remove());
  return undefined;
}

export function show(container, ...children) {
  const fresh = container.cloneNode(false);
  fresh.append(...children.flat(Infinity).filter(Boolean));
  patch(container, fresh);
}
