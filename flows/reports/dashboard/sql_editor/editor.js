const PLACE = "winnow.saved-queries";
const MOST = 12;

function load() {
  try {
    const kept = JSON.parse(localStorage.getItem(PLACE) ?? "{}");
    return kept !== null && typeof kept === "object" && !Array.isArray(kept) ? kept : {};
  } catch {
    return {};
  }
}

// The box belongs to the page, which hears of a change as if it had been typed.
function fill(box, text, caret) {
  Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value").set.call(box, text);
  box.dispatchEvent(new Event("input", { bubbles: true }));
  box.focus();
  box.setSelectionRange(caret, caret);
}

// The word before the caret, and the names that it may be the beginning of: those of views and tables, and
// the columns of those that the statement names already, or else of all.
function fitting(box, columns) {
  const before = box.value.slice(0, box.selectionStart);
  const word = /[A-Za-z_][A-Za-z_0-9]*$/.exec(before)?.[0] ?? "";
  const named = Object.keys(columns).filter((name) => new RegExp(`\\b${name}\\b`, "i").test(box.value));
  const own = (named.length > 0 ? named : Object.keys(columns)).flatMap((name) => columns[name]);
  const start = word.toLowerCase();
  const fits = [...new Set([...own, ...Object.keys(columns)])].filter(
    (name) => start.length > 0 && name.toLowerCase().startsWith(start) && name.toLowerCase() !== start,
  );
  return { word, names: fits.slice(0, MOST) };
}

function completing(root, box, columns) {
  const list = root.querySelector("ul");
  let active = 0;
  const close = () => {
    list.hidden = true;
    list.replaceChildren();
    box.removeAttribute("aria-activedescendant");
  };
  const mark = () => {
    [...list.children].forEach((item, number) => item.setAttribute("aria-selected", String(number === active)));
    box.setAttribute("aria-activedescendant", `winnow-sql-name-${active}`);
  };
  const take = (name) => {
    const { word } = fitting(box, columns);
    const caret = box.selectionStart;
    const text = box.value.slice(0, caret - word.length) + name + box.value.slice(caret);
    fill(box, text, caret - word.length + name.length);
    close();
  };
  const open = () => {
    const { names } = fitting(box, columns);
    active = 0;
    list.replaceChildren(
      ...names.map((name, number) => {
        const item = document.createElement("li");
        item.id = `winnow-sql-name-${number}`;
        item.setAttribute("role", "option");
        item.textContent = name;
        item.onmousedown = (event) => {
          event.preventDefault();
          take(name);
        };
        return item;
      }),
    );
    list.hidden = names.length === 0;
    if (list.hidden) close();
    else mark();
  };
  const pressed = (event) => {
    if (list.hidden) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      active = (active + step + list.children.length) % list.children.length;
      mark();
    } else if (event.key === "Tab" && !event.shiftKey) take(list.children[active].textContent);
    else if (event.key === "Escape") close();
    else return;
    event.preventDefault();
  };
  box.setAttribute("aria-autocomplete", "list");
  box.setAttribute("aria-controls", list.id);
  box.addEventListener("input", open);
  box.addEventListener("keydown", pressed);
  box.addEventListener("blur", close);
  return () => {
    box.removeEventListener("input", open);
    box.removeEventListener("keydown", pressed);
    box.removeEventListener("blur", close);
  };
}

function keeping(root, box) {
  const [chosen, name] = [root.querySelector("select"), root.querySelector("input")];
  const [told, forget] = [root.querySelector(".told"), root.querySelector(".forget")];
  const show = (kept, selected) => {
    const names = ["saved queries", ...Object.keys(kept).sort()];
    chosen.replaceChildren(...names.map((each, number) => new Option(each, number === 0 ? "" : each)));
    chosen.value = selected;
    chosen.hidden = forget.hidden = names.length === 1;
  };
  const store = (kept, selected, sentence) => {
    try {
      localStorage.setItem(PLACE, JSON.stringify(kept));
      told.textContent = sentence;
    } catch {
      told.textContent = "This browser keeps nothing for this page.";
    }
    show(load(), selected);
  };
  show(load(), "");
  chosen.onchange = () => {
    const text = load()[chosen.value];
    if (typeof text !== "string") return;
    name.value = chosen.value;
    fill(box, text, text.length);
  };
  root.querySelector(".keep").onclick = () => {
    const called = name.value.trim();
    if (called === "") told.textContent = "Give the query a name first.";
    else store({ ...load(), [called]: box.value }, called, `${called} is kept in this browser.`);
  };
  forget.onclick = () => {
    const { [chosen.value]: gone, ...rest } = load();
    if (gone === undefined) told.textContent = "Choose a saved query first.";
    else store(rest, "", `${chosen.value} is kept no longer.`);
  };
}

// On a busy machine the box comes after what belongs to it.
function once(find, use) {
  let undo = () => {};
  const look = () => {
    const found = find();
    if (found === null) return false;
    undo = use(found);
    return true;
  };
  if (!look()) {
    const watcher = new MutationObserver(() => look() && watcher.disconnect());
    watcher.observe(document.body, { childList: true, subtree: true });
    undo = () => watcher.disconnect();
  }
  return () => undo();
}

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".winnow-sql");
  const find = () => document.querySelector(`textarea[aria-label="${data.label}"]`);
  return once(find, (box) => {
    keeping(root, box);
    return completing(root, box, data.columns);
  });
}
