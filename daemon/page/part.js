// A part of a section, which loads by itself.

import { Problem } from './api.js';
import { h, notice, show } from './dom.js';

export const loading = () => h('p', { class: 'help loading' }, 'Loading…');

export function explain(problem) {
  if (!(problem instanceof Problem)) throw problem;
  return problem.code === 'no_scan' ? notice('info', 'this node has not been scanned yet. Run spoor scan.') : notice('bad', problem.message);
}

// `read` returns the content, or calls its argument with it, also repeatedly. What is shown stays while the daemon
// does not respond. Returns the element and how to read it anew.
export function part(id, title, read) {
  const body = h('div', {}, loading());
  const element = h('section', { 'data-part': id, 'aria-labelledby': title ? id : null, 'aria-busy': 'true' }, title ? h('h2', { id }, title) : null, body);
  let is_reading = false;
  let has_content = false;
  const put = (...content) => {
    show(body, ...content);
    has_content = true;
  };
  const refresh = async () => {
    if (is_reading) return;
    is_reading = true;
    try {
      const content = await read(put);
      if (content) put(content);
    } catch (problem) {
      const content = explain(problem);
      if (problem.status !== 0 || !has_content) show(body, content);
    } finally {
      is_reading = false;
      element.removeAttribute('aria-busy');
    }
  };
  return { element, refresh };
}

// Fills the view, and returns how to read all of its parts anew.
export function show_parts(view, title, parts) {
  view.replaceChildren(h('h1', {}, title), ...parts.map(({ element }) => element));
  const refresh = () => Promise.all(parts.map((each) => each.refresh()));
  refresh();
  return refresh;
}
