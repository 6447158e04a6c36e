// Names that a file system accepts.

export const hostile_names = [
  '<img src=x onerror=window.hacked=1>',
  '<script>window.hacked=1<',
  '"onmouseover="window.hacked=1" x="',
  "'><svg onload=window.hacked=1>",
  'javascript:window.hacked=1',
  'a\u202egnp.exe',
  '\u2067\u2066isolated',
  'new\nline',
  'tab\tand\u007fdelete\u0001',
  'x'.repeat(255),
  Buffer.from([0x66, 0xff, 0xfe, 0x80]),
  '#usage?path=..&since=none',
  '50% off + more & more; a=b',
  '%2e%2e%2f',
  ' ',
  '\u200b\ufeffzero\u00adwidth',
  '\u{1f600} \u05e9\u05dc\u05d5\u05dd e\u0301',
];
