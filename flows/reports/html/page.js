(() => {
  // Pixels of an A4 or letter page between its margins; its height has room for the title and the note of a figure.
  const PAPER_WIDTH = 690;
  const PAPER_HEIGHT = 820;
  const themes = JSON.parse(document.getElementById("themes").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const plots = [...document.querySelectorAll(".plot")];
  const theme = () => themes[dark.matches ? "dark" : "light"];
  // The theme comes first: what is behind a name has its colour.
  const paint = (template, size = {}) => {
    for (const plot of plots) {
      const { data, layout } = JSON.parse(plot.nextElementSibling.textContent);
      const figure = fitted({ data, layout: { ...layout, template } }, size.width ?? plot.clientWidth);
      const height = Math.min(figure.layout.height, size.height ?? Infinity);
      plot.style.height = `${height}px`;
      Plotly.react(plot, figure.data, { ...figure.layout, ...size, height }, { responsive: true, displayModeBar: false });
    }
  };

  const draw = () => {
    paint(theme());
    dark.addEventListener("change", () => paint(theme()));
    const paper = { autosize: false, width: PAPER_WIDTH, height: PAPER_HEIGHT };
    window.addEventListener("beforeprint", () => paint(themes.light, paper));
    window.addEventListener("afterprint", () => paint(theme()));
  };

  // The library that draws is packed; the page's policy knows the script by what it says.
  const unpack = async () => {
    const packed = Uint8Array.from(atob(document.getElementById("plotly").textContent), (c) => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(stream).text();
    document.head.append(script);
  };
  if (plots.length > 0) unpack().then(draw);

  // Paper shows what a reader of the screen opens.
  window.addEventListener("beforeprint", () => {
    for (const each of document.querySelectorAll("details.printed")) each.open = true;
  });

  const sortBy = (table, column, heading) => {
    const up = heading.getAttribute("aria-sort") !== "ascending";
    const worth = (row) => Number.parseFloat(row.cells[column].dataset.worth);
    const order = (a, b) => {
      const [x, y] = [worth(a), worth(b)];
      if (Number.isNaN(x) && Number.isNaN(y)) {
        const [s, t] = [a, b].map((row) => row.cells[column].textContent);
        return (up ? 1 : -1) * s.localeCompare(t, "en", { numeric: true });
      }
      // What is not known comes last either way.
      if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) ? 1 : -1;
      return up ? x - y : y - x;
    };
    table.tBodies[0].append(...[...table.tBodies[0].rows].sort(order));
    for (const each of table.tHead.rows[0].cells) each.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", up ? "ascending" : "descending");
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((heading, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = heading.textContent;
      button.addEventListener("click", () => sortBy(table, column, heading));
      heading.replaceChildren(button);
    });
  }
})();
