// Looks at the page in a frame, makes the frame as high as the page, and says what it saw.
function look(frame) {
  const page = frame.contentDocument;
  const all = (what, within = page) => [...within.querySelectorAll(what)];
  const box = (what) => what.getBoundingClientRect();
  const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1
    && a.top < b.bottom - 4 && b.top < a.bottom - 4;
  const faults = [], sizes = [];
  for (const plot of all('figure > svg')) {
    const texts = all('text', plot).filter((text) => text.textContent.trim());
    texts.forEach((text, at) => {
      const own = box(text), edge = box(plot);
      sizes.push(parseFloat(getComputedStyle(text).fontSize) * edge.width
        / plot.viewBox.baseVal.width);
      if (own.left < edge.left - 1 || own.right > edge.right + 1
        || own.top < edge.top - 4 || own.bottom > edge.bottom + 4) {
        faults.push('cut off: ' + text.textContent);
      }
      const over = texts.slice(at + 1).find((other) => meet(own, box(other)));
      if (over) faults.push(text.textContent + ' over ' + over.textContent);
    });
  }
  for (const part of all('.scroll')) {
    if (part.scrollWidth > part.clientWidth + 1) faults.push('a table that scrolls sideways');
  }
  // Names as scenario files and records have them; commands are code and may have them.
  const raw = /\b\w+_(mbit|percent|ms|s|packets|acks|alone|bare)\b/;
  const read = frame.dataset.reads.split(',').flatMap((what) => all(what));
  for (const part of read) {
    const walk = page.createTreeWalker(part, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
      const text = walk.currentNode;
      if (!text.parentElement.closest('code, style, script') && raw.test(text.data)) {
        faults.push('a raw name: ' + text.data.trim().slice(0, 80));
      }
    }
  }
  const height = page.documentElement.scrollHeight;
  frame.style.height = height + 'px';
  const seen = {
    beyond: page.documentElement.scrollWidth - frame.clientWidth,
    height,
    plots: all('.lead figure > svg').length,
    rings: all('.lead figure > svg .ring').length,
    least: Math.min(99, ...sizes),
    headline: all('.headline').map((part) => part.textContent.trim()).join(' '),
    faults,
  };
  document.getElementById('seen').textContent = JSON.stringify(seen).replace(/[<>&]/g, ' ');
}
