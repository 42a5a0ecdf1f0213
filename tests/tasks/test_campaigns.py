"""A campaign is stored once, found again by name, and refused when it is not the same any more."""

import gzip
import json
import shutil
import sqlite3

import pytest
from sqlalchemy import func, select

from winnow.algorithms.registry import selector_names
from winnow.storage.errors import CampaignNotFound
from winnow.storage.models import Base
from winnow.storage.records import campaigns as campaign_records
from winnow.tasks.campaign.campaign import find_in
from winnow.tasks.errors import SpecError
from winnow.tasks.setup.definition_changes import IdentityChanged
from winnow.tasks.setup.load import check_campaign_file
from winnow.tasks.setup.open_campaign import change_campaign, open_campaign, reopen_campaign

STORAGE = "sqlite:///results.db"


def counts(database):
    with database.reading() as session:
        return {
            table.name: session.scalar(select(func.count()).select_from(table))
            for table in Base.metadata.sorted_tables
        }


def content(database):
    with sqlite3.connect(database.url.removeprefix("sqlite:///")) as connection:
        dump = list(connection.iterdump())
    connection.close()
    return dump


@pytest.fixture
def opened(database, campaign_file):
    """The campaign as it was first opened."""
    return open_campaign(database, check_campaign_file(campaign_file()))


def test_a_new_campaign_is_stored_with_its_data_and_candidates(database, opened):
    assert counts(database) | {
        "campaigns": 1,
        "candidates": 8,
        "datasets": 1,
        "examples": 6,
        "rounds": 0,
    } == counts(database)
    assert (opened.name, opened.objective, opened.seed) == ("letters", "best-mean", 7)
    assert opened.versions["winnow-llm"]
    assert opened.spec["model_fingerprints"].keys() == {"small", "smaller"}
    with database.reading() as session:
        assert campaign_records.get_campaign(session, "letters") == opened
        assert campaign_records.candidate_names(session, opened.id)[:2] == [
            "small/plain/greedy",
            "small/plain/warm",
        ]


def test_opening_the_same_campaign_again_finds_it_and_stores_nothing(database, opened, campaign_file):
    before = content(database)
    assert open_campaign(database, check_campaign_file(campaign_file())) == opened
    assert content(database) == before


def test_a_campaign_of_another_name_shares_the_data(database, opened, campaign_file):
    open_campaign(database, check_campaign_file(campaign_file("name: letters", "name: fork")))
    assert counts(database)["campaigns"] == 2
    assert (counts(database)["datasets"], counts(database)["examples"]) == (1, 6)


@pytest.mark.parametrize(
    ("override", "line"),
    [
        ("seed=8", "seed: 7 -> 8"),
        ("stopping.delta=0.1", "stopping.delta: 0.05 -> 0.1"),
        ("judge={type: exact}", "judge.type: 'contains' -> 'exact'"),
        ("selector.params.a=2.0", "selector.params.a: 1.0 -> 2.0"),
        ("batch_size=4", "batch_size: 8 -> 4"),
        ("models[0].generate_config.max_tokens=13", "models[small].generate_config.max_tokens: 12 -> 13"),
        ("generate_configs[1].temperature=0.5", "generate_configs[warm].temperature: 1.0 -> 0.5"),
        (
            "prompts[1].template='A {{ input }}:'",
            "prompts[asked].template: 'Q {{ input }}:' -> 'A {{ input }}:'",
        ),
        ("dataset.limit=5", "dataset.limit: None -> 5"),
        ("fail_on_error=0.2", "fail_on_error: 0.5 -> 0.2"),
        ("reuse=only", "reuse: 'all' -> 'only'"),
    ],
)
def test_a_changed_identity_is_refused_with_the_difference_and_nothing_is_written(
    database, opened, campaign_file, override, line
):
    before = content(database)
    with pytest.raises(IdentityChanged) as refused:
        open_campaign(database, check_campaign_file(campaign_file(), [override]))
    said = str(refused.value)
    assert f"\n  {line}\n" in said
    assert "'letters'" in said
    assert "--fork" in said
    assert content(database) == before


def test_changed_data_under_the_same_path_are_refused(database, opened, campaign_file, folder):
    with (folder / "letters.jsonl").open("a") as file:
        file.write(json.dumps({"id": "new", "input": "?", "target": "g"}) + "\n")
    with pytest.raises(IdentityChanged, match=r"cannot change:\n  the examples changed\nundo the change"):
        open_campaign(database, check_campaign_file(campaign_file()))


def test_candidates_that_are_gone_or_new_are_named_once(database, opened, campaign_file):
    text = (campaign_file(), ["models[1].name=tiny", "generate_configs[1].name=hot", "seed=8"])
    with pytest.raises(IdentityChanged) as refused:
        open_campaign(database, check_campaign_file(*text))
    assert str(refused.value).splitlines() == [
        "campaign 'letters' began with another definition, which cannot change:",
        "  generate_configs[hot] is new",
        "  generate_configs[warm] is gone",
        "  models[smaller] is gone",
        "  models[tiny] is new",
        "  seed: 7 -> 8",
        "undo the change, or start a new campaign that reuses the outputs of this one: winnow run SPEC "
        "--fork NEW_NAME",
    ]


def compressed(folder):
    with (folder / "letters.jsonl").open("rb") as plain, gzip.open(folder / "letters.jsonl.gz", "wb") as file:
        shutil.copyfileobj(plain, file)
    return "letters.jsonl.gz"


def split(folder):
    lines = (folder / "letters.jsonl").read_text().splitlines(keepends=True)
    (folder / "one.jsonl").write_text("".join(lines[:2]))
    (folder / "two.jsonl").write_text("".join(lines[2:]))
    return "[one.jsonl, two.jsonl]"


def moved(folder):
    (folder / "data").mkdir()
    shutil.copy(folder / "letters.jsonl", folder / "data" / "alphabet.jsonl")
    return "data/alphabet.jsonl"


@pytest.mark.parametrize("elsewhere", [compressed, split, moved])
def test_the_same_rows_in_other_files_are_the_same_data(database, opened, campaign_file, folder, elsewhere):
    before = content(database)
    path = elsewhere(folder)
    (folder / "letters.jsonl").unlink()
    checked = check_campaign_file(campaign_file(), [f"dataset.path={path}"])
    assert open_campaign(database, checked) == opened
    assert content(database) == before
    record, again = reopen_campaign(database, "letters", STORAGE)
    assert (record, again.spec.dataset.path) == (opened, "letters.jsonl")


def letters_of(database):
    return find_in(database, database.url, "letters")


def test_other_rows_in_another_file_are_refused_with_both_places(database, opened, campaign_file, folder):
    lines = (folder / "letters.jsonl").read_text().splitlines(keepends=True)
    (folder / "less.jsonl").write_text("".join(lines[1:]))
    with pytest.raises(IdentityChanged, match=r"dataset\.path: 'letters\.jsonl' -> 'less\.jsonl'"):
        open_campaign(database, check_campaign_file(campaign_file(), ["dataset.path=less.jsonl"]))


def test_a_stored_campaign_takes_no_other_file_by_a_setting_that_reads_none(database, opened):
    before = content(database)
    with pytest.raises(IdentityChanged, match=r"dataset\.path: 'letters\.jsonl' -> 'less\.jsonl'"):
        change_campaign(letters_of(database), ["dataset.path=less.jsonl"], lambda file, spec: None)
    assert content(database) == before


@pytest.mark.parametrize(
    "override",
    [
        "stopping.budget=80",
        "execution.max_loaded=2",
        "execution={group_size: 4, log_folder: logs}",
        "reuse=none",
        "reuse={max_age: 7d}",
    ],
)
def test_how_a_campaign_is_run_and_how_far_may_change(database, opened, campaign_file, override):
    changed = check_campaign_file(campaign_file(), [override])
    again = open_campaign(database, changed)
    assert again.id == opened.id
    assert again.execution == changed.spec.execution_fields() != opened.execution
    assert again.spec == opened.spec
    reopened, checked = reopen_campaign(database, "letters", STORAGE)
    assert reopened == again
    assert checked.spec.execution == changed.spec.execution
    assert checked.spec.stopping == changed.spec.stopping


def test_a_reopened_campaign_is_the_one_that_was_opened(database, opened, campaign_file):
    first = check_campaign_file(campaign_file())
    record, again = reopen_campaign(database, "letters", STORAGE)
    assert record == opened
    assert again.identity() == first.identity()
    assert (again.dataset.examples, again.dataset.fingerprint) == (
        first.dataset.examples,
        first.dataset.fingerprint,
    )
    assert again.dataset.name == first.dataset.name
    made_again = [
        (each.name, each.fingerprint, each.prompt_record, each.sampling) for each in again.candidates
    ]
    assert made_again == [
        (each.name, each.fingerprint, each.prompt_record, each.sampling) for each in first.candidates
    ]
    assert (again.grid, again.spec.storage) == (48, STORAGE)


def test_neither_the_data_nor_the_spec_are_needed_to_reopen(database, opened, folder):
    (folder / "letters.jsonl").unlink()
    (folder / "campaign.yaml").unlink()
    _, checked = reopen_campaign(database, "letters", STORAGE)
    assert checked.dataset.examples[5].targets == ("f",)


def test_a_changed_checkpoint_is_refused_when_reopened(database, opened, folder):
    (folder / "checkpoints" / "smaller" / "config.json").write_text('{"name": "retrained"}')
    with pytest.raises(IdentityChanged) as refused:
        reopen_campaign(database, "letters", STORAGE)
    _, *changed, _ = str(refused.value).splitlines()
    assert changed == ["  models[smaller]: its files changed (weights, adapter or chat template)"]


def test_a_folder_that_is_gone_is_not_said_to_have_changed(database, opened, folder, monkeypatch):
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    with pytest.raises(IdentityChanged) as refused:
        reopen_campaign(database, "letters", STORAGE)
    _, *changed, _ = str(refused.value).splitlines()
    assert changed == [
        f"  the folder of model {name}, checkpoints/{name}, does not exist (looked for "
        f"{folder}/elsewhere/checkpoints/{name})"
        for name in ("small", "smaller")
    ]


def test_a_checkpoint_that_is_gone_is_refused_when_reopened(database, opened, folder):
    (folder / "checkpoints" / "smaller" / "config.json").unlink()
    with pytest.raises(SpecError, match="there is no checkpoint in 'checkpoints/smaller'"):
        reopen_campaign(database, "letters", STORAGE)


def test_a_campaign_that_was_never_stored_cannot_be_reopened(database, opened):
    with pytest.raises(CampaignNotFound, match="there are: letters"):
        reopen_campaign(database, "lettres", STORAGE)


@pytest.mark.parametrize(
    ("replace", "by", "said"),
    [
        ("path: letters.jsonl", "path: lettres.jsonl", "16: dataset.path: there is no file lettres.jsonl"),
        (
            "target: target",
            "target: answer",
            "16: dataset.fields.target: letters.jsonl, line 1: unknown column",
        ),
        ("path: letters.jsonl", "path: empty.jsonl", "16: dataset.path: empty.jsonl has no rows"),
        (
            "path: letters.jsonl",
            "path: twice.jsonl",
            "16: dataset.fields.id: twice.jsonl, line 1 and twice.jsonl, line 2: the",
        ),
        (
            "Q {{ input }}",
            "Q {{ inputs }}",
            "12: prompts[1].template: line 1 of the template: unknown variable",
        ),
        ("Q {{ input }}", "Q {{ target }}", "12: prompts[1].template: "),
        (
            "Q {{ input }}",
            "Q {{ ''.__class__ }}",
            "12: prompts[1].template: line 1 of the template: .__class__",
        ),
        ("Q {{ input }}", "Q {{ input + 1 }}", "12: prompts[1].template: example 'e0': the template failed"),
        ("Q {{ input }}", "Q {% if %}", "12: prompts[1].template: line 1 of the template: "),
        ("checkpoints/smaller", "./nowhere", "8: models[1].model: there is no checkpoint in './nowhere'"),
        (
            "provider: transformers\n",
            "provider: vlm\n",
            "7: models[1].provider: unknown provider 'vlm'; did you",
        ),
        ("name: ucb-e", "name: ucbe", "18: selector: no selector is called 'ucbe' (did you mean 'ucb-e'?)"),
        ("{a: 1.0}", "{b: 1.0}", "18: selector: selector 'ucb-e' has no parameter 'b'; it accepts: a"),
        ("{a: 1.0}", "{a: -1.0}", "18: selector: a must be "),
        ("{a: 1.0}", "{a: many}", "18: selector: a must be "),
        ("{a: 1.0}", "{budget: 9}", "18: selector.params.budget: budget is set for every selector"),
        (
            "type: contains",
            "type: contain",
            "17: judge.type: unknown judge 'contain'; did you mean 'contains'?",
        ),
        (
            "type: contains",
            "type: contains, cases: 1",
            "17: judge.cases: unknown parameter of contains 'cases'",
        ),
        (
            "type: contains",
            "type: contains, ignore_case: 1",
            "17: judge.ignore_case: must be true or false",
        ),
        ("type: contains", "type: regex", "17: judge.pattern: regex needs pattern"),
        ("type: contains", "type: regex, pattern: '('", "17: judge: regex: '(' is not a regular expression"),
        ("seed: 7", "exclude: [{model: tiny}]", "3: exclude[0].model: unknown model 'tiny'"),
    ],
)
def test_what_a_campaign_refers_to_is_checked_with_file_and_line(campaign_file, folder, replace, by, said):
    (folder / "empty.jsonl").write_text("")
    (folder / "twice.jsonl").write_text('{"id": "a", "input": "1", "target": "x"}\n' * 2)
    with pytest.raises(SpecError) as refused:
        check_campaign_file(campaign_file(replace, by))
    assert str(refused.value).startswith(f"campaign.yaml:{said}")


def test_in_the_place_of_an_unknown_selector_those_of_the_objective_are_offered(campaign_file):
    with pytest.raises(SpecError) as caught:
        check_campaign_file(campaign_file("name: ucb-e", "name: llm-po-x"))
    assert str(caught.value) == (
        "campaign.yaml:18: selector: no selector is called 'llm-po-x'; "
        f"known: {', '.join(selector_names('best-mean'))}"
    )


@pytest.mark.parametrize(
    ("delta", "meant"), [(0.95, "0.05"), (0.99, "0.01"), (0.9, "0.1"), (0.999, "0.001"), (0.51, "0.49")]
)
def test_a_confidence_in_the_place_of_the_error_probability_is_refused(campaign_file, delta, meant):
    path = campaign_file("delta: 0.05", f"delta: {delta}")
    said = f"not the confidence; for a confidence of {delta} write {meant} (got {delta})"
    with pytest.raises(SpecError) as refused:
        check_campaign_file(path)
    assert str(refused.value).startswith("campaign.yaml:20: stopping.delta: ")
    assert str(refused.value).endswith(said)
    with pytest.raises(SpecError) as refused:
        check_campaign_file(campaign_file(), [f"stopping.delta={delta}"])
    assert str(refused.value).startswith("--set stopping.delta: ")
    assert str(refused.value).endswith(said)


def test_error_probabilities_up_to_a_half_are_taken(campaign_file):
    checked = check_campaign_file(campaign_file("delta: 0.05", "delta: 0.5"))
    assert checked.spec.stopping.delta == 0.5


def test_a_campaign_that_was_begun_with_a_confidence_goes_on(database, campaign_file, monkeypatch):
    path = campaign_file("delta: 0.05", "delta: 0.95")
    monkeypatch.setattr("winnow.tasks.setup.load.refuse_confidence", lambda delta: None)
    begun = open_campaign(database, check_campaign_file(path))
    monkeypatch.undo()
    monkeypatch.chdir(database.url.removeprefix("sqlite:///").rpartition("/")[0])
    _, checked = reopen_campaign(database, "letters", STORAGE)
    assert checked.spec.stopping.delta == 0.95
    change_campaign(letters_of(database), ["stopping.budget=48"], lambda file, spec: None)
    assert open_campaign(database, check_campaign_file(path, [f"storage={database.url}"])).id == begun.id
    with pytest.raises(SpecError, match=r"campaign.yaml:20: stopping.delta: .* write 0.05 "):
        check_campaign_file(path, [f"storage={database.url}", "name=forked"])


def test_a_mistake_in_an_override_is_not_blamed_on_a_line_of_the_file(campaign_file):
    with pytest.raises(SpecError) as refused:
        check_campaign_file(campaign_file(), ["models[1].model=./nowhere"])
    assert str(refused.value).startswith("--set models[1].model: there is no checkpoint in './nowhere'")
