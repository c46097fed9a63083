// What the tests ask the page. Texts are compared as they are seen, without regard to case.
const text = e => (e.innerText ?? '').replace(/\s+/g, ' ').trim().toLowerCase();
const all = (selector, root = document) => [...root.querySelectorAll(selector)].filter(e => e.checkVisibility());
const level = () => all('h1, h2, [role=heading], [role=status]').map(text).map(t => t.match(/\b(ok|degraded|failing)\b/)?.[1]).find(Boolean) ?? '';

// near is the smallest element that has all of these texts, such as a card or a row; null for none.
const near = (words, e = document.body) => {
  if (!e.checkVisibility() || !words.every(word => text(e).includes(word.toLowerCase()))) return null;
  const inside = [...e.children].map(child => near(words, child)).filter(Boolean);
  return inside.sort((a, b) => text(a).length - text(b).length)[0] ?? e;
};

// path names an element, also that which takes its place when the page is refreshed.
const path = e => !e || e === document.body ? '' : path(e.parentElement) + '/' + e.tagName + [...e.parentElement.children].indexOf(e);
const say = e => `<${e.tagName.toLowerCase()}> "${(e.getAttribute('aria-label') ?? text(e)).slice(0, 60)}"`;
const reachable = () => all('summary, a[href], button:enabled, input:enabled, select:enabled, textarea:enabled');

// focused is where the keyboard is.
const focused = () => {
  const e = document.activeElement, style = getComputedStyle(e);
  return {
    path: path(e),
    name: say(e),
    closed: e.tagName === 'SUMMARY' && !e.parentElement.open,
    seen: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0 || style.boxShadow !== 'none',
  };
};

// strip has the last polls of an observer, bar the class of the bar in one of its 60 places; null for none.
const strip = id => all('#observers tbody tr').find(row => text(row.cells[0]).startsWith(id))?.querySelector('svg');
const bar = (id, n) => [...strip(id)?.querySelectorAll('path') ?? []].find(p => p.isPointInFill(new DOMPoint(n + 0.5, 7.9)))?.classList.value ?? null;
const tip = () => all('#tip').map(text)[0] ?? '';
