// Pages read well without this. It adds search, a switch for dark pages, and buttons that copy code.
"use strict";

let index; // loaded by a script element, as pages from a file may not fetch
const load = () => (index ??= new Promise((resolve, reject) => {
  document.head.append(make("script", { src: "search.js", onload: resolve, onerror: reject }));
}));
const make = (tag, of, ...children) => {
  const element = Object.assign(document.createElement(tag), of);
  element.append(...children);
  return element;
};

// The sections in which every word is the beginning of one: first those whose heading is what was
// asked for, then those with most of it in the heading, then as they come in the course.
function search(query) {
  const asked = query.trim().toLowerCase();
  const words = asked.split(/\s+/).map((word) =>
    new RegExp(`(?<![a-z\\d])${word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}`, "i"));
  const rank = ({ heading }) => heading.toLowerCase() === asked ? words.length + 1
    : words.filter((word) => word.test(heading)).length;
  return SECTIONS
    .filter(({ title, heading, text }) => words.every((word) => word.test(`${title} ${heading} ${text}`)))
    .sort((a, b) => rank(b) - rank(a))
    .slice(0, 20)
    .map(({ page, title, anchor, heading, text }) => {
      const start = Math.max(0, text.search(words[0]) - 50);
      const link = make("a", { href: `${page}.html#${anchor}` }, heading === title ? title : `${title}: ${heading}`);
      return make("li", {}, link, make("p", {}, `${start ? "…" : ""}${text.slice(start, start + 150)}…`));
    });
}

document.addEventListener("DOMContentLoaded", () => {
  const form = document.querySelector("form"), field = form.firstElementChild, list = form.lastElementChild;
  const show = async () => {
    await load();
    const found = field.value.trim() ? search(field.value) : [];
    list.replaceChildren(...(found.length || !field.value.trim() ? found : [make("li", {}, "Nothing found")]));
  };
  form.hidden = false;
  field.addEventListener("input", show);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    show().then(() => list.querySelector("a")?.click());
  });
  document.addEventListener("click", (event) => {
    if (!form.contains(event.target) || event.target.closest("a")) list.replaceChildren();
    if (event.target.closest("[popover] a")) event.target.closest("[popover]").hidePopover();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") list.replaceChildren();
    if (event.key === "/" && event.target === document.body) { event.preventDefault(); field.focus(); }
  });
  field.value = new URLSearchParams(location.search).get("q") ?? ""; // a search that can be linked to
  if (field.value) show();
});

document.addEventListener("DOMContentLoaded", () => {
  if (!navigator.clipboard) return; // a page from a server without TLS
  for (const code of document.querySelectorAll(".highlight")) {
    const button = make("button", { type: "button" }, "Copy");
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(code.querySelector("pre").textContent.trimEnd());
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
    code.append(button);
  }
});

document.addEventListener("DOMContentLoaded", () => {
  for (const printed of document.querySelectorAll(".jp-OutputArea-output pre")) // lines may wrap, tables not
    printed.classList.toggle("sentences", !/\S {2,}\S|^ /m.test(printed.textContent));
  for (const plot of document.querySelectorAll(".jp-RenderedImage img"))
    plot.addEventListener("click", () => plot.classList.toggle("large"));
  for (const nav of document.querySelectorAll("nav[popover]")) {
    const here = nav.querySelector("[aria-current]");
    const show = () => { if (here) nav.scrollTop = here.offsetTop - nav.clientHeight / 2; };
    nav.addEventListener("toggle", show);
    show();
  }
});

document.addEventListener("DOMContentLoaded", () => {
  const button = document.getElementById("scheme"), style = document.documentElement.style;
  button.hidden = false;
  button.addEventListener("click", () => {
    const dark = (style.colorScheme || (matchMedia("(prefers-color-scheme: dark)").matches && "dark")) === "dark";
    style.colorScheme = dark ? "light" : "dark";
    localStorage.setItem("scheme", style.colorScheme);
  });
});
document.documentElement.style.colorScheme = localStorage.getItem("scheme") ?? ""; // before anything is drawn
