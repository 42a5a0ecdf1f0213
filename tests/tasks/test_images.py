"""Examples with images: what models are shown, what is stored of it, and what is refused."""

import json
from contextlib import closing

import datasets
import pyarrow as pa
import pyarrow.parquet
import pytest
from faulty_server import faulty_server
from served_campaigns import begun, run, served_model, served_spec
from stored_campaigns import new_database
from tiny_images import COLOURS, colours_in, data_url, png

from winnow.storage.queries.campaign_views import comparisons
from winnow.storage.records import datasets as dataset_records
from winnow.tasks.candidates.cache_keys import generation_key, request_content
from winnow.tasks.candidates.likelihood_scoring import asked_of
from winnow.tasks.data.sources import read_dataset
from winnow.tasks.engines.chat import Message, as_stored, from_stored
from winnow.tasks.engines.images import MOST_BYTES, Image
from winnow.tasks.engines.protocol import ModelRef, Sampling
from winnow.tasks.errors import DatasetError, SpecError
from winnow.tasks.queries.check_texts import findings
from winnow.tasks.setup.check import check_campaign
from winnow.tasks.setup.definition_changes import IdentityChanged
from winnow.tasks.setup.trust import permissions
from winnow.tasks.setup.unintended_settings import likely_mistakes
from winnow.tasks.spec.sections.dataset import DatasetSpec
from winnow.tasks.spec.sections.prompts import PromptSpec

QUESTION = "Which colour?"
NAMES = [*COLOURS, *COLOURS]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working folder, with six questions about three images in a folder of the data's."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data" / "pictures").mkdir(parents=True)
    for name in COLOURS:
        (tmp_path / "data" / "pictures" / f"{name}.png").write_bytes(png(name))
    write(
        {"id": f"e{i}", "input": QUESTION, "image": f"pictures/{name}.png", "target": name}
        for i, name in enumerate(NAMES)
    )
    return tmp_path


def write(rows, path="data/colours.jsonl"):
    with open(path, "w") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def spec_of(*models, images="image", path="data/colours.jsonl", fields=None, **keys):
    fields = fields or {"id": "id", "input": "input", "target": "target"}
    dataset = {"path": path, "fields": fields, "images": images}
    return served_spec(*models, name="colours", **{"prompts": ("{{ input }}",), "dataset": dataset} | keys)


def sees_or_guesses(call):
    """A served model that says which colours it sees, and one that does not look."""
    return " ".join(colours_in(call)) if call.body["model"] == "sees" else "red"


def both(url):
    return [served_model(url, name, model=name, chat=True) for name in ("sees", "guesses")]


@pytest.fixture
def database(tmp_path):
    with closing(new_database(tmp_path / "winnow.db")) as database:
        yield database


@pytest.fixture
def server():
    with faulty_server(reply=sees_or_guesses) as server:
        yield server


def means(database):
    with database.reading() as session:
        rows = session.connection().exec_driver_sql(
            "SELECT c.name, AVG(k.outcome) FROM comparisons k JOIN candidates c ON c.id = k.candidate_a_id "
            "GROUP BY c.name"
        )
        return {name.partition("/")[0]: mean for name, mean in rows}


def stored_prompts(database):
    with database.reading() as session:
        return [row[0] for row in session.connection().exec_driver_sql("SELECT text FROM prompts")]


def test_a_campaign_is_decided_by_what_the_images_show(folder, database, server):
    run(database, spec_of(*both(server.url)))
    found = means(database)
    assert (found["sees"], found["guesses"] < 1.0) == (1.0, True)
    parts = server.calls[0].body["messages"][-1]["content"]
    assert [each["type"] for each in parts] == ["image_url", "text"]
    assert parts[1]["text"] == QUESTION
    # What is stored are digests: three prompts, of which none holds a path or the content.
    prompts = [each for each in stored_prompts(database) if QUESTION in each]
    assert len(prompts) == 3
    assert not any(".png" in each or "base64" in each for each in prompts)
    assert all(Image.of(png(name), "").sha256 in "".join(prompts) for name in COLOURS)


def test_equal_images_under_other_names_are_asked_once_and_reused(folder, database, server):
    run(database, spec_of(*both(server.url)))
    assert len(server.calls) == 6  # two models x three images, of six examples
    for name in COLOURS:
        (folder / f"{name}.png").write_bytes(png(name))
    write(
        [{"input": QUESTION, "image": f"../{name}.png", "target": name} for name in COLOURS],
        "data/moved.jsonl",
    )
    moved = spec_of(*both(server.url), path="data/moved.jsonl", fields={"target": "target"})
    run(database, moved.model_copy(update={"name": "moved"}))
    assert len(server.calls) == 6
    with database.reading() as session:
        assert not list(findings(session))


def test_a_changed_image_is_noticed_at_resume(folder, database, server):
    spec = spec_of(*both(server.url))
    run(database, spec, rounds=1)
    (folder / "data" / "pictures" / "blue.png").write_bytes(png((9, 9, 9)))
    with pytest.raises(IdentityChanged, match="the examples changed"):
        begun(database, spec)
    (folder / "data" / "pictures" / "blue.png").unlink()
    with pytest.raises(DatasetError, match=r"line 3: the image data/pictures/blue.png does not exist"):
        begun(database, spec)
    (folder / "data" / "pictures" / "blue.png").write_bytes(png("blue"))
    run(database, spec)
    assert means(database)["sees"] == 1.0


def test_an_image_that_changes_while_a_campaign_runs_ends_it_in_a_sentence(folder, database, server):
    def changing(call):
        (folder / "data" / "pictures" / "blue.png").write_bytes(png((9, 9, 9)))
        return sees_or_guesses(call)

    server.reply = changing
    with pytest.raises(DatasetError, match=r"the image data/pictures/blue.png was changed since the camp"):
        run(database, spec_of(*both(server.url), batch_size=2))


def test_a_server_gets_urls_as_they_are_and_several_images_in_order(folder, database, server):
    web = "https://pictures.example/cat.png"
    rows = [
        {"input": QUESTION, "image": ["pictures/red.png", data_url(png("blue"))], "more": web, "target": "x"},
        {"input": QUESTION, "image": None, "more": "", "target": "y"},
    ]
    write(rows, "data/several.jsonl")
    spec = spec_of(
        *both(server.url),
        path="data/several.jsonl",
        images=["image", "more"],
        fields={"target": "target"},
    )
    run(database, spec)
    assert {tuple(colours_in(each)) for each in server.calls} == {("red", "blue", web), ()}


def details(images="image", path="data/colours.jsonl", **keys):
    return [
        each.fields["image_details"]
        for each in read_dataset(DatasetSpec(path=path, images=images, **keys)).examples
    ]


def test_the_content_of_images_in_a_parquet_file_is_shown(folder, database, server):
    pictures = [{"bytes": png(name), "path": f"{name}.png"} for name in COLOURS]
    table = pa.table({"input": [QUESTION] * 3, "image": pictures, "target": [*COLOURS]})
    pyarrow.parquet.write_table(table, "data/colours.parquet")
    plain = pa.table({"input": [QUESTION] * 3, "image": [each["bytes"] for each in pictures]})
    pyarrow.parquet.write_table(plain, "data/plain.parquet")
    listed = pa.table({"input": [QUESTION], "image": [pictures]})
    pyarrow.parquet.write_table(listed, "data/listed.parquet")
    fields = {"target": "target"}
    run(database, spec_of(*both(server.url), path="data/colours.parquet", fields=fields))
    assert means(database)["sees"] == 1.0
    digests = [Image.of(png(name), "").sha256 for name in COLOURS]
    for path in ("data/plain.parquet", "data/listed.parquet"):
        found = details(path=path, fields={"target": None})
        assert [each["sha256"] for one in found for each in one] == digests
    assert (
        read_dataset(
            DatasetSpec(path="data/plain.parquet", images=["image"], fields={"target": None})
        ).remarks
        == ()
    )
    with database.reading() as session:
        [stored] = session.connection().exec_driver_sql("SELECT MAX(LENGTH(fields)) FROM examples").one()
    assert stored < 400  # no content


def test_a_dataset_of_the_hub_holds_the_content_of_its_images(folder):
    features = datasets.Features(
        {"input": datasets.Value("string"), "image": datasets.Image(), "more": [datasets.Image()]}
    )
    images = [{"bytes": png(name), "path": f"{name}.png"} for name in COLOURS]
    rows = [
        {"input": QUESTION, "image": images[0], "more": images[1:]},
        {"input": QUESTION, "image": None, "more": []},
    ]
    datasets.Dataset.from_list(rows, features=features).save_to_disk("saved")
    spec = DatasetSpec(hub="saved", images=["image", "more"], fields={"target": None})
    found = [each.fields["image_details"] for each in read_dataset(spec).examples]
    assert [[each["name"] for each in one] for one in found] == [[f"{name}.png" for name in COLOURS], []]
    assert found[0][2]["sha256"] == Image.of(png("blue"), "").sha256


@pytest.mark.parametrize(
    ("image", "sentence"),
    [
        ("pictures/none.png", r"line 1: the image data/pictures/none.png does not exist; correct the path"),
        ("colours.jsonl", r"the image data/colours.jsonl is not a PNG, JPEG, GIF or WebP image; convert it"),
        ("pictures", r"the image data/pictures cannot be read: it is a folder; name a file"),
        ("large.png", r"the image data/large.png has more than 20 MiB; make the image smaller"),
        ("data:image/png;base64,@@", r"an image is a data URL whose base64 is broken"),
        ("data:image/png,abc", r"an image is a data URL without base64; write data:image/png;base64,"),
        (data_url(b"<svg/>"), r"an image is not a PNG"),
        ("s3://bucket/a.png", r"the image 's3://bucket/a.png' is a URL that servers do not fetch; use https"),
        (7, r"an image must be a path or a URL, got '7'"),
        ({"width": 3}, r"an image must be a path or a URL, got"),
        ([f"pictures/{name}.png" for name in NAMES + NAMES], r"12 images, but an example can have at most 8"),
    ],
)
def test_what_cannot_be_shown_is_refused_with_its_line(folder, image, sentence):
    (folder / "data" / "large.png").write_bytes(png("red") + b"\0" * MOST_BYTES)
    (folder / "data" / "colours.jsonl").write_text(json.dumps({"input": QUESTION, "image": image}) + "\n")
    with pytest.raises(DatasetError, match=sentence) as error:
        details(fields={"target": None})
    assert error.value.path == "dataset.images"


@pytest.mark.parametrize("given", ["~nobody-of-this-name/a.png", "\ud800.png", "a" * 5000])
def test_a_path_that_no_file_can_have_is_refused_in_a_sentence(folder, given):
    write([{"input": QUESTION, "image": given}], "data/odd.jsonl")
    with pytest.raises(DatasetError, match=r"line 1: the image data/"):
        details(path="data/odd.jsonl", fields={"target": None})
    permissions(spec_of({"name": "m", **SERVED}, path="data/odd.jsonl"), folder)


def test_fields_of_images_have_to_be_there_and_free(folder):
    with pytest.raises(DatasetError, match=r"line 1: .*'picture'"):
        details("picture")
    write([{"input": QUESTION, "image": "", "image_details": 1}], "data/taken.jsonl")
    with pytest.raises(DatasetError, match="has a column 'image_details', which Winnow adds itself; rename"):
        details(path="data/taken.jsonl", fields={"target": None})


def test_rows_that_the_filter_leaves_out_need_no_images(folder):
    (folder / "data" / "pictures" / "blue.png").unlink()
    assert len(details(filter="target != 'blue'")) == 4


SERVED = {"provider": "openai", "model": "q", "model_base_url": "http://127.0.0.1:9/v1", "chat": True}


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({"models": [{"name": "m", **SERVED, "chat": False}]}, r"images are part of a chat; set chat: true"),
        (
            {"models": [{"name": "m", "provider": "transformers", "model": "text", "chat": True}]},
            r"text reads no images: its config.json has no vision part; choose a vision model",
        ),
        (
            {"few_shot": {"n": 1, "from": {"path": "data/colours.jsonl"}}},
            r"solved examples are shown without images; remove few_shot",
        ),
        (
            {"output_type": "loglikelihood", "judge": {"type": "greedy"}},
            r"no images are shown with output_type: loglikelihood",
        ),
    ],
)
def test_campaigns_that_could_not_show_images_are_refused(folder, keys, sentence):
    (folder / "text").mkdir()
    (folder / "text" / "config.json").write_text(json.dumps({"model_type": "llama", "hidden_size": 8}))
    (folder / "text" / "tokenizer_config.json").write_text(json.dumps({"chat_template": "{{ messages }}"}))
    models = keys.get("models", [{"name": "m", **SERVED}])
    others = {key: value for key, value in keys.items() if key in ("output_type", "judge")}
    spec = spec_of(*models, {"name": "n", **SERVED}, **others)
    if "few_shot" in keys:
        prompt = PromptSpec.model_validate({"name": "p", "template": "{{ input }}", **keys})
        spec = spec.model_copy(update={"prompts": [prompt]})
    with pytest.raises(SpecError, match=sentence):
        check_campaign(spec)


@pytest.mark.parametrize("provider", ["vllm", "litellm"])
def test_only_servers_fetch_urls(folder, monkeypatch, provider):
    (folder / "seeing").mkdir()
    (folder / "seeing" / "config.json").write_text(json.dumps({"vision_config": {}}))
    (folder / "seeing" / "tokenizer_config.json").write_text(json.dumps({"chat_template": "{{ messages }}"}))
    write([{"input": QUESTION, "image": "https://pictures.example/cat.png", "target": "x"}], "data/web.jsonl")
    model = "seeing" if provider == "vllm" else "anthropic/claude-x"
    key = {} if provider == "vllm" else {"api_key": "$ANTHROPIC_API_KEY"}
    models = [{"name": f"m{i}", "provider": provider, "model": model, "chat": True, **key} for i in range(2)]
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk")
    with pytest.raises(SpecError, match=r"Winnow fetches no URL, such as 'https://pictures.example/cat.png'"):
        check_campaign(spec_of(*models, path="data/web.jsonl", fields={"target": "target"}))


def test_a_question_that_is_the_same_for_all_images_is_no_mistake(folder):
    checked = check_campaign(spec_of({"name": "m", **SERVED}, {"name": "n", **SERVED}))
    assert not [each for each in likely_mistakes(checked) if "never changes" in each.sentence]


def test_images_outside_the_folder_need_permission_to_go_to_a_server(folder):
    inside = spec_of({"name": "m", **SERVED}, {"name": "n", **SERVED})
    assert permissions(inside, folder) == []
    outside = folder.parent / f"{folder.name}-outside"
    outside.mkdir()
    (outside / "secret.png").write_bytes(png("red"))
    (folder / "data" / "link.png").symlink_to(outside / "secret.png")
    secret = str(outside / "secret.png")
    objects = ({"bytes": secret}, {"bytes": secret, "url": "https://h/x.png"}, {"url": secret})
    for image in (str(outside / "secret.png"), f"../../{outside.name}/secret.png", "link.png", *objects):
        write([{"input": QUESTION, "image": [image, "pictures/red.png"]}], "data/out.jsonl")
        with (folder / "data" / "out.jsonl").open("a") as file:
            file.write("what a limit leaves unread\n")
        spec = spec_of({"name": "m", **SERVED}, {"name": "n", **SERVED}, path="data/out.jsonl")
        [needed] = permissions(spec, folder)
        assert needed.text == f"read '{outside}/*' and send it to 'http://127.0.0.1:9'"
        assert needed.keys == ("dataset.images",)
        local = {"name": "m", "model": "org/name", "chat": True}
        assert permissions(spec_of(local, path="data/out.jsonl"), folder) == []


def test_without_images_keys_and_identities_are_as_before(folder):
    spec = spec_of({"name": "m", **SERVED}, {"name": "n", **SERVED}, images=[])
    assert "images" not in spec.identity()["dataset"]
    checked = check_campaign(spec)
    assert "shows_images" not in checked.candidates[0].as_record().model
    model = ModelRef(name="m", provider="openai", model="q", chat=True)
    plain = request_content(model, "f", "Hello", Sampling(), 0)
    assert "images" not in plain
    shown = request_content(model, "f", "Hello", Sampling(), 0, images=[Image.of(png("red"), "a.png")])
    same = request_content(model, "f", "Hello", Sampling(), 0, images=[Image.of(png("red"), "b.png")])
    assert len({generation_key(each, 0) for each in (plain, shown, same)}) == 2


def test_the_example_is_another_one_with_another_image(folder):
    spec = DatasetSpec(path="data/colours.jsonl", images=["image"])
    before = read_dataset(spec)
    (folder / "data" / "pictures" / "blue.png").write_bytes(png((9, 9, 9)))
    after = read_dataset(spec)
    assert before.fingerprint != after.fingerprint
    changed = [
        one.key for one, other in zip(before.examples, after.examples, strict=True) if one.key != other.key
    ]
    assert len(changed) == 2


def test_a_stored_prompt_names_its_images_where_it_is_read_back():
    images = [Image.of(png("red"), "a.png"), Image(url="https://pictures.example/cat.png")]
    messages = (Message("system", "Be short."), Message("user", "What?"))
    text = as_stored(messages, images)
    assert from_stored(text) == (
        messages[0],
        Message("user", f"[image {images[0].sha256}]\n[image {images[1].url}]\nWhat?"),
    )
    assert from_stored(as_stored(messages)) == messages


def test_agents_get_the_field_as_it_is_and_the_digest(folder):
    agent = {"name": "a", "provider": "command", "command": ["true"]}
    checked = check_campaign(spec_of(agent, {"name": "n", **SERVED}))
    asked = asked_of(checked.candidates[0], None, checked.dataset.examples[0].fields, "e0")
    assert asked.images == ()
    example = json.loads(asked.prompt)["example"]
    assert example["image"] == "pictures/red.png"
    assert example["image_details"][0]["sha256"] == Image.of(png("red"), "").sha256


def test_stored_examples_hold_name_size_and_digest(folder, database, server):
    record = run(database, spec_of(*both(server.url)), rounds=1)
    with database.reading() as session:
        first = dataset_records.examples(session, record.dataset_id)[0]
    content = png("red")
    assert first.fields["image_details"] == [
        {
            "name": "red.png",
            "type": "image/png",
            "bytes": len(content),
            "sha256": Image.of(content, "").sha256,
        }
    ]


def test_what_is_stored_of_images_is_shown_beside_the_input(folder, database, server):
    record = run(database, spec_of(*both(server.url)), rounds=1)
    with database.reading() as session:
        row = next(iter(comparisons(session, record.id)))
    question, _, shown = row["input"].partition("\n")
    assert question == QUESTION
    assert json.loads(shown)[0]["name"].removesuffix(".png") in COLOURS
