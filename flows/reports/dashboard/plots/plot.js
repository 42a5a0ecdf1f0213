// The library is loaded once for all figures of all pages, and only by pages that have one.
const loaded = (address) => {
  globalThis.winnowPlotly ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = address;
    script.onload = () => resolve(globalThis.Plotly);
    script.onerror = () => reject(new Error("the library that draws figures could not be loaded"));
    document.head.append(script);
  });
  return globalThis.winnowPlotly;
};

// As high as the figure will be, so that nothing moves once it is drawn.
const placed = (plot) => {
  const { figure, revision } = plot.winnow;
  const width = plot.parentElement.clientWidth;
  const { data, layout } = fitted(figure, width);
  plot.style.height = `${layout.height}px`;
  return { data, layout: { ...layout, width, uirevision: revision } };
};

// What the reader did to a figure, such as a zoom, outlasts new data as long as `uirevision` stays the same.
const draw = (Plotly, plot) => {
  const { data, layout } = structuredClone(placed(plot)); // Plotly writes into what it is given
  if (layout.width > 0) Plotly.react(plot, data, layout, { displayModeBar: false });
};

// Streamlit calls this again, on the same element, each time there is something new to draw.
export default async function ({ data, parentElement }) {
  const plot = parentElement.querySelector(".winnow-plot");
  plot.winnow = { figure: JSON.parse(data.figure), revision: data.revision ?? data.figure };
  placed(plot);
  const Plotly = await loaded(data.library);
  draw(Plotly, plot);
  if (plot.winnowResized === undefined) {
    let width = plot.parentElement.clientWidth;
    plot.winnowResized = new ResizeObserver(() => {
      if (plot.parentElement.clientWidth === width) return;
      width = plot.parentElement.clientWidth;
      requestAnimationFrame(() => draw(Plotly, plot));
    });
    plot.winnowResized.observe(plot.parentElement);
  }
  return () => {
    plot.winnowResized.disconnect();
    Plotly.purge(plot);
  };
}
