// Figures, times and names as text.

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];

// By the locale and in the zone of the reader. Making a format takes longer than using it.
const with_digits = [0, 1, 2].map((digits) =>
  new Intl.NumberFormat(undefined, { minimumFractionDigits: digits, maximumFractionDigits: digits }));
const date_and_time = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'long' });
const plain = (text) => text.replace(/\p{Zs}/gu, ' ').replace(/\p{Cf}/gu, '');  // else printable() escapes them

export function count(number) {
  return number === null || number === undefined ? '–' : plain(with_digits[0].format(number));
}

export function moment(at) {
  return plain(date_and_time.format(new Date(at)));
}

export function bytes(number) {
  if (number === null || number === undefined) return '–';
  let value = Math.abs(number);
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    ++unit;
  }
  const digits = unit === 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return `${number < 0 ? '−' : ''}${plain(with_digits[digits].format(value))} ${units[unit]}`;
}

const signed = (format) => (number) => (number > 0 ? '+' : '') + format(number).replace('-', '−');
export const signedBytes = signed(bytes);
export const signedCount = signed(count);

export function percent(share) {
  const value = 100 * share;
  if (value !== 0 && Math.abs(value) < 0.1) return `${value < 0 ? '−' : ''}<0.1 %`;
  return `${plain(with_digits[Math.abs(value) < 10 ? 1 : 0].format(value)).replace('-', '−')} %`;
}

export function duration(seconds) {
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.floor(seconds / 86400)} d ${Math.floor((seconds % 86400) / 3600)} h`;
}

// `now` in ms, by the clock of the node.
export function age(at, now) {
  const seconds = Math.max(0, Math.floor((now - Date.parse(at)) / 1000));
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86400)} d ago`;
}

// Characters that are not seen, or that change the direction or the line of text: control and format characters,
// separators of lines, private ones, halves of pairs.
const invisible = /((?:(?! )[\p{Zs}\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}\u115f\u1160\u3164\uffa0])+)/u;

function escape(text) {
  return [...text].map((char) => `\\u{${char.codePointAt(0).toString(16)}}`).join('');
}

function parts(text, pattern) {
  return text.split(pattern).map((part, i) => ({ text: i % 2 === 1 ? escape(part) : part, escaped: i % 2 === 1 }))
    .filter((part) => part.text !== '');
}

export function printable(text) {
  return parts(text, invisible).map((part) => part.text).join('');
}

// The name as [{text, escaped}]. Spaces at its ends cannot be seen either.
const invisible_in_name = new RegExp(`(^ +| +$|${invisible.source.slice(1, -1)})`, 'u');
export function name_parts(text) {
  return parts(text, invisible_in_name);
}

export function last_component(path) {
  return path.slice(path.lastIndexOf('/') + 1);
}
