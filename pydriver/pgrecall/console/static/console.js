// What the pages need beside htmx: sliders say their value, and choosing is enough to ask.
"use strict";

document.addEventListener("input", (event) => {
  if (event.target.matches(".sliders input[type=range]")) {
    const said = document.querySelector(`output[for="${event.target.id}"]`);
    said.value = Number(event.target.value).toFixed(2);
  }
});

// The chosen page stands in sight where the tabs are wider than the screen.
document.querySelector(".tabs [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
