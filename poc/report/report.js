"use strict";
// Draws the figures from the data block. Without scripts the tables hold the same numbers.
const figures = JSON.parse(document.getElementById("figures").textContent);
const settings = { displayModeBar: false, responsive: true, showLink: false, plotlyServerURL: "" };
const places = [];
for (const [id, figure] of Object.entries(figures)) {
  const place = document.getElementById("plot-" + id);
  if (!place || !window.Plotly) continue;
  place.replaceChildren();
  window.Plotly.newPlot(place, figure.data, figure.layout, settings);
  places.push(place);
}
// A printed page is narrower than the screen, and browsers do not announce that as a resize.
addEventListener("beforeprint", () => {
  for (const place of places) window.Plotly.relayout(place, { width: 640 });
});
addEventListener("afterprint", () => {
  for (const place of places) window.Plotly.relayout(place, { width: null, autosize: true });
});
