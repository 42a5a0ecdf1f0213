(() => {
  // Pixels of an A4 or letter page between its margins.
  const PAPER_WIDTH = 690;
  const themes = JSON.parse(document.getElementById("themes").textContent);
  // On a touch screen a finger scrolls the page; it must not be caught by a figure.
  const dragmode = window.matchMedia("(pointer: coarse)").matches ? false : "zoom";
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const plots = [...document.querySelectorAll(".plot")];
  const theme = () => themes[dark.matches ? "dark" : "light"];
  const paint = (template, size = {}) => plots.forEach((plot) => Plotly.relayout(plot, { template, ...size }));

  for (const plot of plots) {
    const { data, layout } = JSON.parse(plot.nextElementSibling.textContent);
    Plotly.newPlot(plot, data, { ...layout, dragmode, template: theme() }, {
      responsive: true,
      displayModeBar: false,
    });
  }
  dark.addEventListener("change", () => paint(theme()));
  window.addEventListener("beforeprint", () => paint(themes.light, { autosize: false, width: PAPER_WIDTH }));
  window.addEventListener("afterprint", () => paint(theme(), { autosize: true, width: null }));
})();
