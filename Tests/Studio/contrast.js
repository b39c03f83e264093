// What on this page is too pale to read: a function that returns sentences with the least contrast of each,
// none where everything can be read.
//
// With ':hover' or ':focus' everything is looked at as it is under the mouse or with the focus: the page's own rules for that
// are made to hold for all elements at once.
//
// Text wants 4.5 : 1 against what is behind it; large text, symbols, the edges of fields and the ring of the focus 3 : 1.
// Colours are the computed ones, mixed down through every background and opacity from the element to the root; of a gradient
// the worse end counts. Left out: what is hidden or switched off, and emoji, which bring colours of their own.
//
// Source: WCAG 2.2, 1.4.3 (text), 1.4.11 (controls), "relative luminance", "contrast ratio".
(state => {
  // Of the weight of a class like the state, and true of every element.
  const always = ':not(._)';
  const changed = [];
  const pretend = rules => {
    for (const rule of rules) {
      const selector = rule.selectorText;
      if (state && selector?.includes(state)) {
        changed.push([rule, selector]);
        rule.selectorText = selector.replaceAll(state + '-visible', always).replaceAll(state + '-within', always).replaceAll(state, always);
      }
      if (rule.cssRules) pretend(rule.cssRules);
    }
  };
  for (const sheet of document.styleSheets) pretend(sheet.cssRules);

  // As it is once nothing moves.
  for (const animation of document.getAnimations()) animation.effect.getComputedTiming().endTime === Infinity ? animation.cancel() : animation.finish();

  const canvas = Object.assign(document.createElement('canvas'), { width: 1, height: 1 });
  const paint = canvas.getContext('2d', { willReadFrequently: true });
  const known = new Map();
  // Any colour of CSS, by the browser itself: three parts of light and an opacity, from 0 to 1.
  const colour = text => {
    if (!known.has(text)) {
      paint.clearRect(0, 0, 1, 1);
      paint.fillStyle = text;
      paint.fillRect(0, 0, 1, 1);
      known.set(text, [...paint.getImageData(0, 0, 1, 1).data].map(part => part / 255));
    }
    return known.get(text);
  };
  const over = (top, below) => {
    const alpha = top[3] + below[3] * (1 - top[3]);
    return alpha ? [0, 1, 2].map(i => (top[i] * top[3] + below[i] * below[3] * (1 - top[3])) / alpha).concat(alpha) : [0, 0, 0, 0];
  };
  const light = part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  const luminance = c => 0.2126 * light(c[0]) + 0.7152 * light(c[1]) + 0.0722 * light(c[2]);
  const ratio = (a, b) => {
    const [dark, bright] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (bright + 0.05) / (dark + 0.05);
  };
  const grounds = style => {
    const stops = style.backgroundImage.match(/(?:rgba?|color|oklab|oklch|hsla?)\([^()]*\)|#[0-9a-f]{3,8}/gi);
    return stops && style.backgroundImage.includes('gradient') ? stops : [style.backgroundColor];
  };
  // The least contrast of a colour in front of an element's background, or of that around it.
  const contrast = (text, element, isAround) => {
    let pairs = [[colour(text), [0, 0, 0, 0]]];
    for (let e = element; e; e = e.parentElement) {
      const style = getComputedStyle(e);
      if (!(isAround && e === element)) {
        pairs = pairs.flatMap(([front, back]) => grounds(style).map(colour).map(c => [over(front, c), over(back, c)]));
      }
      for (const part of pairs.flat()) part[3] *= Number(style.opacity);
    }
    const root = colour(matchMedia('(prefers-color-scheme: dark)').matches ? '#000' : '#fff');
    return Math.min(...pairs.map(([front, back]) => ratio(over(front, root), over(back, root))));
  };
  const isSeen = e => {
    const box = e.getBoundingClientRect();
    return e.checkVisibility({ opacityProperty: true, visibilityProperty: true }) && box.width > 1 && box.height > 1
      && !e.closest('.sr, [inert], :disabled');
  };
  const name = e => {
    const classes = typeof e.className === 'string' ? e.className : e.className.baseVal;
    return e.localName + (e.id ? '#' + e.id : '') + classes.split(' ').filter(Boolean).map(c => '.' + c).join('');
  };
  const place = e => (e.parentElement && e.parentElement !== document.body ? name(e.parentElement) + ' > ' : '') + name(e);
  const found = {};
  const note = (is, least, element, what) => {
    const fault = `${place(element)}: ${what}, at least ${least} : 1`;
    if (is < least) found[fault] = Math.min(found[fault] ?? is, is);
  };
  const want = (least, text, element, what, isAround) => note(contrast(text, element, isAround), least, element, what);
  const wantText = (element, text, pseudo) => {
    if (!/[\p{L}\p{N}\p{P}\p{S}]/u.test(text.replace(/[\p{Extended_Pictographic}\u{1F3FB}-\u{1F3FF}]/gu, ''))) return;
    const style = getComputedStyle(element, pseudo);
    const size = parseFloat(style.fontSize);
    const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    want(isLarge ? 3 : 4.5, style.color, element, pseudo || 'text');
  };

  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode());) {
    const element = node.parentElement;
    if (node.data.trim() && isSeen(element) && !element.closest('script, style, symbol')) wantText(element, node.data);
  }
  for (const element of document.querySelectorAll('body *')) {
    if (!isSeen(element)) continue;
    const style = getComputedStyle(element);
    if (element.matches('input, textarea')) {
      if (element.value) wantText(element, element.value); else if (element.placeholder) wantText(element, element.placeholder, '::placeholder');
      const edges = [contrast(style.backgroundColor, element, true)];
      if (style.borderTopStyle !== 'none') edges.push(contrast(style.borderTopColor, element, true));
      note(Math.max(...edges), 3, element, 'edge');
    }
    if (element.localName === 'svg') want(3, style.color, element, 'symbol');
    if (element.matches('.dot')) want(3, style.backgroundColor, element, 'dot', true);
    if (element.matches('a, button, input, textarea, [tabindex]') && style.outlineStyle !== 'none' && parseFloat(style.outlineWidth)) want(3, style.outlineColor, element, 'ring', true);
  }
  for (const [rule, selector] of changed) rule.selectorText = selector;
  return found;
})
