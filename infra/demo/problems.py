"""The four tasks of the demo: questions, accepted answers, and full answers in several styles.

Each function `draw_...` draws one problem with a random generator. Its answers have three styles, with the
names of the prompt templates in `infra.demo.prompts`. The text after the last `>` is the final answer.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

_NOUNS = """
act age aid air ant ape arm art ash axe bag bar bat bay bed bee bin box boy bug bun bus cab can cap car cat
cow cub cup day den dog dot ear egg elf eye fan fig fin fly fog fox fur gap gem gum gun hat hen hip hut ice
ink jam jar jaw job joy key kid kit lap law leg lid lip log man map mat mud mug net nut oak oar owl pan paw
pea pen pet pie pig pin pot rag rat ray rib rod rug sea sky sun tap tea tie tin toe top toy tub van wax web
wig army atom aunt baby back ball bank barn bath beak beam bean bear bell belt bike bird boat body bolt bone
book boot bowl bulb bush cake calf camp cape card cart cave chef chin city clay club coal coat coin comb
cook corn crab crew crow cube deer desk dish dock door drum duck dust farm fern film fire fish flag flea
foam fork frog gate gift girl goat gold golf hair hall hand harp hawk head herb hill hole home hook horn
idea iron king kite knee lace lake lamb lamp leaf lime lion lock mask maze meal milk mint moon moth nail
neck nest nose oven page park path peak pear pipe poem pond port rain ring road robe rock roof room root
rope rose sail salt sand seal seed shed ship shoe shop silk sink skin snow soap sock sofa song soup star
stem tail tank taxi tent tide toad tool tree tube vase vest wall wasp wave wing wolf wood wool worm yard
zone acorn alarm angel apple apron arrow beach beard bench berry blade board brain bread brick brush cabin
camel candy canoe chain chair chalk chess chest child clock cloud clown coach couch crane crown dough dress
eagle earth fence field flame flour flute frost fruit ghost giant glass globe glove grape grass hedge honey
horse hotel house jewel juice knife ladle lemon light maple medal melon metal money month motor mouse mouth
music night ocean olive onion organ otter paint panda paper party pearl phone photo piano pilot pizza plane
plant plate porch queen radio razor river robin robot salad scarf shark sheep shelf shell shirt skirt smile
snail snake spoon squid stage stamp steam stone storm stove sugar sword table tiger toast tooth torch towel
tower trail train truck uncle viola wagon waist watch water whale wheat wheel witch world zebra anchor
animal artist autumn badger bakery ballet banana barrel basket beaver bottle branch breeze bridge bucket
butter button cactus camera candle canyon carpet carrot castle cellar cheese cherry church circle circus
coffee copper cotton cousin cradle desert dinner doctor donkey dragon drawer engine falcon family farmer
finger flower forest fossil garage garden garlic guitar hammer harbor helmet hornet island jacket jungle
kennel kettle kitten ladder letter lizard magnet market meadow mirror monkey mother muscle museum napkin
needle office orange orchid oyster palace parrot pebble pencil pepper pillow planet pocket potato puppet
rabbit ribbon rocket saddle salmon sandal school season shadow signal silver sister spider spring square
statue street summer sunset temple tennis ticket tomato tunnel turkey turtle valley velvet violin walnut
window winter wizard blanket chicken compass curtain dolphin evening feather giraffe kitchen lantern leather
library lobster morning penguin picture raccoon teacher thunder village
"""
NOUNS = tuple(_NOUNS.split())
"""Common English nouns of three to seven letters, without repetitions, by length and then alphabetically."""

_COUNTED = "bag bed cap cat cup dog egg hat hen jar key map mug pan pen pig pot toy"
COUNTED = tuple(_COUNTED.split())
"""Nouns for counting; all form the plural by "s"."""

_NUMERALS = """
zero one two three four five six seven eight nine ten
eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty
"""
NUMERALS = tuple(_NUMERALS.split())
"""English numerals; a numeral's value is its position."""


ANSWER_MARK = ">"
"""Separates scratch work from the final answer."""

SHORT_WORDS = tuple(word for word in NOUNS if len(word) <= 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One question with its accepted answers."""

    input: str
    target: tuple[str, ...]
    """All accepted final answers, at least one."""
    answers: Mapping[str, str]
    """Style of the prompt -> output of a perfect model."""


def draw_sum(rng: random.Random) -> Problem:
    """Draw two integers from 0 to 99 to add, such as `47+85`; one and two digits are equally likely."""
    first, second = (rng.randrange(10 ** rng.randint(1, 2)) for _ in range(2))
    total = str(first + second)
    return Problem(
        input=f"{first}+{second}",
        target=(total,),
        answers=_answers(total, scratch=_column_sums(first, second), backwards=total[::-1]),
    )


def draw_letter(rng: random.Random) -> Problem:
    """Draw a noun; the answer is its second letter."""
    word = rng.choice(NOUNS)
    return Problem(
        input=word,
        target=(word[1],),
        answers=_answers(word[1], scratch=" ".join(word[:2]), backwards=word[::-1]),
    )


def draw_count(rng: random.Random) -> Problem:
    """Draw a list of two to four kinds of things, one to five of each; the answer is their total number."""
    amounts = [rng.randint(1, 5) for _ in range(rng.randint(2, 4))]
    things = rng.sample(COUNTED, len(amounts))
    running = [sum(amounts[: i + 1]) for i in range(len(amounts))]
    total = str(running[-1])
    return Problem(
        input=", ".join(_some(amount, thing) for amount, thing in zip(amounts, things, strict=True)),
        target=(total, NUMERALS[running[-1]]),
        answers=_answers(total, scratch=_spaced(running), backwards=_spaced(amounts[::-1])),
    )


def draw_scrambled_word(rng: random.Random) -> Problem:
    """Draw a noun of three or four letters in a wrong order; any noun of these letters is accepted."""
    word = rng.choice(SHORT_WORDS)
    letters = sorted(word)
    accepted = (word, *(other for other in SHORT_WORDS if other != word and sorted(other) == letters))
    scrambled = word
    while scrambled in accepted:
        scrambled = "".join(rng.sample(word, len(word)))
    return Problem(
        input=scrambled,
        target=accepted,
        answers=_answers(word, scratch="".join(letters), backwards=word[::-1]),
    )


TASKS: Mapping[str, Callable[[random.Random], Problem]] = {
    "sum": draw_sum,
    "letter": draw_letter,
    "count": draw_count,
    "unscramble": draw_scrambled_word,
}
"""Name of a task, as in prompts -> function that draws a problem."""


def _answers(final: str, *, scratch: str, backwards: str) -> dict[str, str]:
    return {
        "direct": final,
        "scratchpad": f"{scratch}{ANSWER_MARK}{final}",
        "reversed": f"{backwards}{ANSWER_MARK}{final}",
    }


def _column_sums(first: int, second: int) -> str:
    """Column sums with carries, from the units on: `12 13 4` for 347 + 85."""
    columns: list[int] = []
    while first or second or not columns:
        carry = columns[-1] // 10 if columns else 0
        columns.append(first % 10 + second % 10 + carry)
        first, second = first // 10, second // 10
    return _spaced(columns)


def _some(amount: int, thing: str) -> str:
    return (
        f"{'an' if thing[0] in 'aeiou' else 'a'} {thing}" if amount == 1 else f"{NUMERALS[amount]} {thing}s"
    )


def _spaced(numbers: list[int]) -> str:
    return " ".join(map(str, numbers))
