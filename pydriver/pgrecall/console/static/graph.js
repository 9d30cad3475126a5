// Draws the graph around an entity or a fact by Cytoscape.js, and moves its day by a slider.
"use strict";

(() => {
  const place = document.getElementById("graph");
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const said = document.getElementById("graph-said");
  const causal = ["causes", "caused_by", "enables", "prevents"];
  const short = (text) => text.length > 42 ? `${text.slice(0, 40)}…` : text;

  const style = () => [
    { selector: "node", style: {
      label: (node) => short(node.data("name")), color: colour("--ink"), "font-size": 11,
      "font-family": "system-ui, sans-serif", "text-wrap": "wrap", "text-max-width": 130,
      "text-valign": "bottom", "text-margin-y": 4, "background-color": colour("--entity"),
      "text-background-color": colour("--paper"), "text-background-opacity": 0.8,
      // An entity that every fact mentions tells nothing, a rare one much.
      width: (node) => 14 + 40 * node.data("rarity"),
      height: (node) => 14 + 40 * node.data("rarity") } },
    { selector: 'node[kind = "memory"]', style: {
      label: (node) => node.cy().nodes().length > 60 ? "" : short(node.data("name")),
      shape: "round-rectangle", width: 13, height: 13, "background-color": colour("--fact"),
      color: colour("--faint"), "font-size": 10 } },
    { selector: "node[?is_begin]", style: {
      "border-width": 4, "border-color": colour("--ink"), "font-size": 13, "font-weight": 600,
      color: colour("--ink") } },
    { selector: "edge", style: {
      width: 1, "line-color": colour("--line"), "curve-style": "bezier",
      "target-arrow-shape": "none" } },
    { selector: "edge.told", style: {
      label: "data(kind)", width: 2, "line-color": colour("--order"), color: colour("--faint"),
      "font-size": 10, "font-family": "system-ui, sans-serif", "text-rotation": "autorotate",
      "text-background-color": colour("--paper"), "text-background-opacity": 0.9,
      "target-arrow-shape": "triangle", "target-arrow-color": colour("--order") } },
    { selector: "edge.cause", style: {
      "line-color": colour("--accent"), "target-arrow-color": colour("--accent") } },
    { selector: "edge.near", style: { "line-style": "dashed" } },
  ];

  const draw = async () => {
    const answer = await fetch(place.dataset.source);
    if (!answer.ok) {
      said.textContent = "The graph could not be read.";
      return;
    }
    const elements = await answer.json();
    const cy = cytoscape({
      container: place, elements, style: style(), minZoom: 0.2, maxZoom: 3,
      layout: { name: "cose", animate: false, padding: 40, randomize: false, numIter: 900,
        nodeDimensionsIncludeLabels: true, componentSpacing: 60, gravity: 0.4, nodeOverlap: 24,
        nodeRepulsion: (node) => node.data("kind") === "entity" ? 40000 : 12000,
        idealEdgeLength: (edge) => edge.data("kind") === "mentions" ? 50 : 110,
        boundingBox: { x1: 0, y1: 0, w: place.clientWidth * 1.2, h: place.clientHeight } },
    });
    cy.edges().forEach((edge) => {
      const kind = edge.data("kind");
      if (["semantic", "temporal"].includes(kind)) edge.addClass("near");
      else if (kind !== "mentions") edge.addClass(causal.includes(kind) ? "told cause" : "told");
    });
    cy.on("mouseover", "node", (event) => {
      const { name, more } = event.target.data();
      said.textContent = more ? `${name} (at least ${more.toLocaleString("en")} more facts)` : name;
    });
    cy.on("mouseover", "edge", (event) => { said.textContent = event.target.data("kind"); });
    cy.on("tap", "node", (event) => {
      const { kind, key } = event.target.data();
      location.assign(`${place.dataset.graph}&${kind}=${key}`);
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => cy.style(style()));
    place.dataset.drawn = String(cy.nodes().length);
  };
  if (place) draw();

  const slider = document.getElementById("moment");
  const day = document.getElementById("as_of");
  const first = Date.parse(slider.dataset.first);
  const last = Date.parse(slider.dataset.last);
  if (day.value && last > first) {
    slider.value = Math.round(1000 * (Date.parse(day.value) - first) / (last - first));
  }
  slider.addEventListener("input", () => {
    const at = new Date(first + (last - first) * slider.value / 1000);
    day.value = slider.value === "1000" ? "" : at.toISOString().slice(0, 10);
    document.getElementById("moment-said").value = day.value || slider.dataset.last;
  });
  slider.addEventListener("change", () => document.getElementById("graph-form").requestSubmit());
  document.getElementById("hops").addEventListener("change", (event) => event.target.form.requestSubmit());
})();
