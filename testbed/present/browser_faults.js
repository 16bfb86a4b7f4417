// SPDX-License-Identifier: GPL-2.0
// What is wrong with the page as it stands: a list of texts. CONTRAST is filled in.
(() => {
  const out = [];
  const page = document.documentElement;
  if (page.scrollWidth > page.clientWidth) {
    const beyond = (one) => one.getBoundingClientRect().right > page.clientWidth + 1 && !one.closest(".scroll");
    const wide = [...document.body.querySelectorAll("*")].filter(beyond);
    const first = wide.length ? `, from <${wide[0].tagName.toLowerCase()}>` : "";
    out.push(`scrolls sideways: ${page.scrollWidth} of ${page.clientWidth} px${first}`);
  }
  for (const one of document.images)
    if (!one.complete || !one.naturalWidth) out.push(`picture missing: ${one.src.slice(0, 80)}`);
  for (const one of document.querySelectorAll("svg[role=img]")) {
    const box = one.getBoundingClientRect();
    if (!one.querySelector("title")) out.push("picture without a title");
    if (!one.closest("details:not([open])") && (box.width < 1 || box.height < 1)) out.push("picture without size");
  }
  for (const one of document.querySelectorAll("a[href^='#']"))
    if (!document.getElementById(one.getAttribute("href").slice(1)))
      out.push(`link to nothing: ${one.getAttribute("href")}`);
  const seen = new Set();
  for (const one of document.querySelectorAll("[id]")) {
    if (seen.has(one.id)) out.push(`two of one name: ${one.id}`);
    seen.add(one.id);
  }
  // relative luminance and contrast as WCAG 2.2 has them
  const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const light = (text) => {
    const [r, g, b] = text.match(/[\d.]+/g).slice(0, 3).map((v) => linear(v / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (one) => {
    for (; one; one = one.parentElement) {
      const colour = getComputedStyle(one).backgroundColor;
      if (!/, 0\)$|transparent/.test(colour)) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const words = ["p", "a", "td", "th", "summary", ".small", "caption", ".word.reproduced", ".word.differs", "figcaption"];
  for (const what of words) {
    const one = document.querySelector(what);
    if (!one) continue;
    const [a, b] = [light(getComputedStyle(one).color), light(ground(one))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < CONTRAST) out.push(`${what}: contrast ${ratio.toFixed(2)}, at least CONTRAST`);
  }
  return out;
})();
