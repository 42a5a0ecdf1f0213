"""What stands below the box of the SQL page, by itself in a browser."""

from importlib.resources import files

from playwright.sync_api import expect

LATE_BOX = """() => {
  const parentElement = document.querySelector("div");
  begin({ data: { label: "Late", columns: { v_curve: ["spent"] } }, parentElement });
  document.querySelector("main").insertAdjacentHTML("beforeend", '<textarea aria-label="Late"></textarea>');
}"""


def test_the_editor_waits_for_a_box_that_comes_after_it(chrome):
    editor = files("winnow.flows.reports.dashboard.sql_editor")
    script = (editor / "editor.js").read_text("utf-8").replace("export default", "window.begin =")
    late = chrome.new_page()
    late.set_content(f"<main><div>{(editor / 'editor.html').read_text('utf-8')}</div></main>")
    late.add_script_tag(content=script)
    late.evaluate(LATE_BOX)
    late.get_by_label("Late").press_sequentially("spe")
    expect(late.get_by_role("option", name="spent")).to_be_visible()
    late.close()
