// Pages read well without this. Lines that a cell prints may wrap, tables may not; figures grow.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  for (const printed of document.querySelectorAll(".cell_output pre")) {
    if (printed.classList.toggle("sentences", !/\S {2,}\S|^ /m.test(printed.textContent)))
      printed.innerHTML = printed.innerHTML.replace(/\d[\d.]*e[-+]\d+/g, "<span class=number>$&</span>");
  }
  for (const plot of document.querySelectorAll("img.plot"))
    plot.addEventListener("click", () => plot.classList.toggle("large"));
});
