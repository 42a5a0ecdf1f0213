"""What is asked of a page in a browser: is it drawn, what axe-core finds wrong, what a first look reads."""

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import BrowserContext, Page

DRAWN = "[...document.querySelectorAll('.plot')].every((plot) => plot.querySelector('.main-svg'))"
"""Of a report: every figure stands."""

VIOLATIONS = """async (rules) => (await axe.run(document, {resultTypes: ['violations'], ...rules})).violations
    .map((each) => `${each.id} (${each.nodes.length}): ${each.nodes[0].html}`)"""

LOOKS, BETWEEN_MS = 8, 1_000
"""How often axe looks at a page with which something is wrong, and milliseconds in between."""

FIRST_SCREEN = """() => {
  const said = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const around = texts.currentNode.parentElement, range = document.createRange();
    range.selectNodeContents(texts.currentNode);
    const box = range.getBoundingClientRect();
    const isSeen = box.width > 0 && box.top >= 0 && box.bottom <= innerHeight && box.right <= innerWidth;
    if (isSeen && around.checkVisibility({visibilityProperty: true}) && !around.closest('[aria-hidden=true]'))
      said.push(texts.currentNode.data);
  }
  return said.join(' ').replace(/\\s+/g, ' ');
}"""


def let_axe_in(context: BrowserContext) -> None:
    """Have axe in each page that is opened from now on, by the browser: no policy of a page refuses it."""
    context.add_init_script(AXE_SCRIPT)


def violations(page: Page, *rules: str) -> list[str]:
    """Each rule that the page breaks, of these or of all, how often, and the first element that does.

    What is only broken while a page is being drawn, or drawn anew in other colours, is not.
    """
    for _ in range(LOOKS):
        found: list[str] = page.evaluate(VIOLATIONS, {"runOnly": list(rules)} if rules else {})
        if not found:
            break
        page.wait_for_timeout(BETWEEN_MS)
    return found


def first_screen(page: Page) -> str:
    """All text that is whole within the window and not kept from those who have pages read to them."""
    said: str = page.evaluate(FIRST_SCREEN)
    return said
