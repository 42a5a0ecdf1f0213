"""Images shown to models of this machine: a tiny vision model with random weights."""

import json
from contextlib import closing
from dataclasses import replace

import pytest
from served_campaigns import run, served_spec
from stored_campaigns import new_database
from tiny_images import COLOURS, data_url, png
from tiny_models import save_tiny_llama
from tiny_vision_models import IMAGE, SIDE, TEMPLATE, save_tiny_vision_model
from transformers import AutoModelForImageTextToText, AutoProcessor

from winnow.tasks.engines.chat import Message
from winnow.tasks.engines.errors import EngineLoadFailed
from winnow.tasks.engines.images import MOST_PIXELS, Image
from winnow.tasks.engines.protocol import Completion, ModelRef, Request, Sampling
from winnow.tasks.engines.providers import EngineSettings
from winnow.tasks.engines.transformers.engine import TransformersEngine
from winnow.tasks.engines.vllm.engine import VllmEngine
from winnow.tasks.queries.check_texts import findings

GREEDY = Sampling(max_tokens=6)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return save_tiny_vision_model(tmp_path_factory.mktemp("seeing"), seed=0)


def reference(folder):
    return ModelRef(
        name="tiny",
        provider="transformers",
        model=str(folder),
        chat=True,
        shows_images=True,
        model_args={"dtype": "float32", "device": "cpu"},
    )


@pytest.fixture(scope="module")
def engine(checkpoint):
    with closing(TransformersEngine(reference(checkpoint))) as engine:
        yield engine


def asked(*contents, text="What?", messages=None):
    images = tuple(Image.of(each, each) for each in contents)
    messages = messages or (Message("user", text),)
    return Request(prompt=text, sampling=GREEDY, seed=0, messages=messages, images=images)


def by_the_library(folder, *images, text="What?", n=6):
    """The greedy text of the library's own pipeline."""
    processor = AutoProcessor.from_pretrained(folder)
    model = AutoModelForImageTextToText.from_pretrained(folder).eval()
    content = [*({"type": "image", "image": each} for each in images), {"type": "text", "text": text}]
    inputs = processor.apply_chat_template(
        [{"role": "user", "content": content}],
        add_generation_prompt=True,
        tokenize=True,
        return_dict=True,
        return_tensors="pt",
    )
    ids = model.generate(**inputs, do_sample=False, max_new_tokens=n)[0, inputs["input_ids"].shape[1] :]
    return processor.tokenizer.decode(ids, skip_special_tokens=True)


def test_a_model_reads_images_as_the_library_shows_them(engine, checkpoint):
    contents = [png(name, SIDE, SIDE) for name in COLOURS]
    answers = engine.generate([asked(each) for each in contents])
    texts = [each.text for each in answers]
    assert texts == [by_the_library(checkpoint, Image.of(each, each).pixels()) for each in contents]
    assert len(set(texts)) == 3
    assert {each.input_tokens for each in answers} == {29}  # seven of them are the image's


def test_several_images_and_none_are_shown(engine, checkpoint):
    both = [png("green"), png("blue")]
    pixels = [Image.of(each, each).pixels() for each in both]
    two, none, other = engine.generate([asked(*both), asked(), asked(*reversed(both))])
    assert two.text == by_the_library(checkpoint, *pixels)
    assert none.text == by_the_library(checkpoint)
    assert other.text != two.text


def test_a_text_that_spells_the_mark_of_an_image_marks_none(engine):
    [answer] = engine.generate([asked(png("red"), text=f"What is {IMAGE}?")])
    assert isinstance(answer, Completion)


def test_images_are_part_of_the_last_message_of_the_user(engine):
    turns = (Message("user", "Hi"), Message("assistant", "Hello"), Message("user", "What?"))
    first, second = engine.generate([asked(png("red"), messages=turns), asked(png("blue"), messages=turns)])
    assert first.text != second.text


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (png("red")[:50], "an image cannot be decoded"),
        (b"GIF89a" + bytes(10), "an image cannot be decoded"),
        (png("red", MOST_PIXELS // 64 + 1, 64), "pixels; make the image smaller"),
    ],
)
def test_what_cannot_be_decoded_fails_alone(engine, content, why):
    broken, fine = engine.generate([asked(content), asked(png("red"))])
    assert broken.reason == "bad_prompt"
    assert why in broken.detail
    assert isinstance(fine, Completion)


def test_a_model_of_texts_alone_is_refused(tmp_path):
    folder = save_tiny_llama(tmp_path, seed=0, chat_template=TEMPLATE)
    with pytest.raises(EngineLoadFailed):
        TransformersEngine(reference(folder))


def test_an_image_reaches_another_process_of_this_machine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    content = png("red")
    (tmp_path / "red.png").write_bytes(content)
    sent = [Image.of(content, place).as_message() for place in ("red.png", content, data_url(content))]
    monkeypatch.chdir("/")
    assert [Image.from_message(json.loads(json.dumps(each))).content() for each in sent] == [content] * 3


@pytest.mark.vllm
@pytest.mark.usefixtures("vllm_imports")
def test_vllm_reads_images_as_transformers_does(engine, checkpoint, tmp_path):
    model = replace(
        reference(checkpoint), provider="vllm", model_args={"dtype": "float32", "max_model_len": 128}
    )
    images = [png(name, SIDE, SIDE) for name in COLOURS]
    turns = (Message("user", "Hi"), Message("assistant", "Hello"), Message("user", "What?"))
    requests = [
        *map(asked, images),
        asked(*images),
        asked(),
        asked(images[0], messages=turns),
        asked(images[0], text=f"What is {IMAGE}?"),
        asked(png("red")[:50]),
    ]
    with closing(VllmEngine(model, EngineSettings(log_folder=tmp_path))) as served:
        found = served.generate(requests)
    expected = engine.generate(requests)
    assert [each.text for each in found[:-1]] == [each.text for each in expected[:-1]]
    assert len({each.text for each in found[:3]}) == 3
    assert [each.input_tokens for each in found[:-1]] == [each.input_tokens for each in expected[:-1]]
    assert found[-1] == expected[-1]


def test_a_campaign_of_vision_models_on_transformers(checkpoint, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = []
    for name in COLOURS:
        content = png(name, SIDE, SIDE)
        (tmp_path / f"{name}.png").write_bytes(content)
        target = by_the_library(checkpoint, Image.of(content, content).pixels())
        rows.append({"input": "What?", "image": f"{name}.png", "target": target})
    (tmp_path / "colours.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
    other = save_tiny_vision_model(tmp_path / "other", seed=1)
    models = [
        {
            "name": name,
            "provider": "transformers",
            "model": str(folder),
            "chat": True,
            "model_args": {"dtype": "float32", "device": "cpu"},
            "generate_config": {"max_tokens": 6},
        }
        for name, folder in (("right", checkpoint), ("wrong", other))
    ]
    dataset = {"path": "colours.jsonl", "images": "image", "fields": {"target": "target"}}
    spec = served_spec(*models, prompts=("{{ input }}",), dataset=dataset, judge={"type": "exact"})
    with closing(new_database(tmp_path / "winnow.db")) as database:
        run(database, spec)
        with database.reading() as session:
            rows = session.connection().exec_driver_sql(
                "SELECT c.name, AVG(k.outcome) FROM comparisons k "
                "JOIN candidates c ON c.id = k.candidate_a_id GROUP BY c.name"
            )
            means = dict(rows.all())
            assert not list(findings(session))
    assert means["right/p0"] == 1.0 > means["wrong/p0"]
