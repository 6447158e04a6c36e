// The form for a token.

import { sign_in } from './api.js';
import { h, notice } from './dom.js';

const valid = /^[A-Za-z0-9\-._~+/=]{16,512}$/;  // docs/security.md#tokens

// Calls `done` once signed in.
export function show_sign_in(main, done) {
  const error = h('div', { role: 'alert' });
  const token = h('input', { id: 'token', name: 'token', type: 'password', required: true,
                             autocomplete: 'current-password', 'aria-describedby': 'token-help' });
  const button = h('button', { type: 'submit' }, 'Sign in');
  const submit = async (event) => {
    event.preventDefault();
    button.disabled = true;
    error.replaceChildren();
    try {
      if (!valid.test(token.value.trim())) throw new Error('a token has 16 to 512 characters of A-Z a-z 0-9 - . _ ~ + / =');
      await sign_in(token.value.trim());
      token.value = '';
      done();
    } catch (problem) {
      error.replaceChildren(notice('bad', problem.message));
      token.focus();
    }
    button.disabled = false;
  };
  // `post`: if scripts fail, the token must not get into an address.
  main.replaceChildren(h('form', { class: 'card sign-in', method: 'post', action: '/v1/session', onsubmit: submit },
    h('h1', {}, 'Sign in'),
    h('label', { for: 'token' }, 'Token'),
    token,
    h('p', { id: 'token-help', class: 'help' }, 'A token of auth.tokens in the configuration of this daemon, with the role read or admin.'),
    error,
    button));
  token.focus();
}
