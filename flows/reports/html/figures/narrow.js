// A figure for a width in pixels: where it is narrow, names of rows stand above their marks, those of a square below
// it, and what there is no room for is left out. The report and the dashboard draw by it.
const NARROW = 560;
const NARROW_ROW_HEIGHT = 40;
const FRAME_HEIGHT = 110;
const SCALED_FRAME_HEIGHT = 150; // with a scale of colours above
const NARROW_BAR = 12;
const NAME_HEIGHT = 16;
const NUMBER_WIDTH = 18;
const BESIDE_NUMBERS = 90;

const withNamesAbove = (layout, frame) => {
  const { tickvals, ticktext } = layout.yaxis;
  const height = Math.max(layout.height, frame + ticktext.length * NARROW_ROW_HEIGHT);
  const names = ticktext.map((text, row) => ({
    text, x: 0, xref: "paper", xanchor: "left", y: tickvals[row], yanchor: "bottom", yshift: 7, showarrow: false,
    font: { size: 11 }, bgcolor: layout.template?.layout.hoverlabel?.bgcolor, // no line runs through a name
  }));
  return {
    ...layout,
    height,
    annotations: layout.annotations.concat(names),
    yaxis: { ...layout.yaxis, showticklabels: false },
    // However high a row is, its bar ends below its name.
    bargap: 1 - NARROW_BAR / ((height - frame) / ticktext.length),
  };
};

// Numbers stand at both axes, as many as there is room for, and what they mean below.
const withNamesBelow = (layout, width) => {
  const names = layout.yaxis.ticktext.map((text, row) => `${row + 1} ${text}`);
  const numbers = names.map((_, row) => `${row + 1}`);
  const step = Math.ceil((numbers.length * NUMBER_WIDTH) / (width - BESIDE_NUMBERS));
  const below = names.length * NAME_HEIGHT;
  const list = {
    text: names.join("<br>"), align: "left", x: 0, xref: "paper", xanchor: "left", y: 0, yref: "paper", yanchor: "top",
    yshift: -48, showarrow: false, font: { size: 11 },
  };
  return {
    ...layout,
    height: layout.height + below,
    margin: { ...layout.margin, t: 72, b: 56 + below },
    annotations: layout.annotations.concat([list]),
    xaxis: {
      ...layout.xaxis,
      ticktext: numbers.map((each, row) => (row % step ? "" : each)),
      tickangle: 0,
      automargin: false,
    },
    yaxis: { ...layout.yaxis, ticktext: numbers },
  };
};

// As far as a heat map goes, cells are bars as well.
const asBars = (trace, layout) => {
  if (trace.type !== "heatmap") return trace;
  const row = (layout.height - SCALED_FRAME_HEIGHT) / layout.yaxis.ticktext.length;
  return { ...withScaleAbove(trace), ygap: row - NARROW_BAR };
};

const withScaleAbove = (trace) => ({
  ...trace,
  texttemplate: null,
  colorbar: { ...trace.colorbar, orientation: "h", x: 0.5, xanchor: "center", y: 1, yanchor: "bottom", len: 0.9 },
});

// Names of axes that stand side by side would meet, and those of what stands along them.
const LONGEST_LEVEL = 11;
const cut = (text) =>
  text.length > LONGEST_LEVEL ? `${text.slice(0, LONGEST_LEVEL / 2)}…${text.slice(-LONGEST_LEVEL / 2)}` : text;
const slanted = (trace) => ({
  ...trace,
  labelangle: -25,
  dimensions: trace.dimensions.map((each) => (each.ticktext ? { ...each, ticktext: each.ticktext.map(cut) } : each)),
});
const slantedBeside = ({ data, layout }) => ({
  data: data.map(slanted),
  layout: { ...layout, margin: { ...layout.margin, l: 84, r: 40 } },
});

const fitted = ({ data, layout }, width) => {
  // On a touch screen a finger scrolls the page; it must not be caught by a figure.
  const dragmode = window.matchMedia("(pointer: coarse)").matches ? false : "zoom";
  if (width >= NARROW) return { data, layout: { ...layout, dragmode } };
  const annotations = (layout.annotations || []).filter((each) => each.name !== "wide");
  const fit = { ...layout, dragmode, annotations };
  if (layout.meta === "rows") {
    const isScaled = data.some((trace) => trace.type === "heatmap");
    const above = withNamesAbove(fit, isScaled ? SCALED_FRAME_HEIGHT : FRAME_HEIGHT);
    return { data: data.map((trace) => asBars(trace, above)), layout: above };
  }
  if (layout.meta === "square") return { data: data.map(withScaleAbove), layout: withNamesBelow(fit, width) };
  return data.some((trace) => trace.type === "parcoords") ? slantedBeside({ data, layout: fit }) : { data, layout: fit };
};
