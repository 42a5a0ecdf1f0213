// A figure's layout for a width in pixels: where it is narrow, names of rows stand above their marks, and what
// there is no room for is left out. The report and the dashboard draw by it.
const NARROW = 560;
const NARROW_ROW_HEIGHT = 40;
const FRAME_HEIGHT = 110;

const fittedTo = (layout, width) => {
  // On a touch screen a finger scrolls the page; it must not be caught by a figure.
  const dragmode = window.matchMedia("(pointer: coarse)").matches ? false : "zoom";
  const fit = { ...layout, dragmode };
  if (width >= NARROW) return fit;
  fit.annotations = (layout.annotations || []).filter((each) => each.name !== "wide");
  if (layout.meta === "rows") {
    const { tickvals, ticktext } = layout.yaxis;
    fit.annotations = fit.annotations.concat(ticktext.map((text, row) => ({
      text, x: 0, xref: "paper", xanchor: "left", y: tickvals[row], yanchor: "bottom", yshift: 7, showarrow: false,
      font: { size: 11 },
    })));
    fit.yaxis = { ...layout.yaxis, showticklabels: false };
    fit.bargap = 0.7;
    fit.height = Math.max(layout.height, FRAME_HEIGHT + ticktext.length * NARROW_ROW_HEIGHT);
  }
  return fit;
};
