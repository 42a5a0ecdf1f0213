"""What a campaign needs to be allowed, read off its file before anything of it is done."""

import pytest

from winnow.tasks.setup.trust import is_loopback, permissions
from winnow.tasks.spec.campaign import CampaignSpec

SERVED = {"name": "m", "provider": "openai", "model": "q"}
BASE = {
    "name": "c",
    "objective": "best-mean",
    "models": [{"name": "m", "model": "owner/name"}],
    "prompts": [{"name": "p", "template": "{{ input }}"}],
    "dataset": {"path": "d.jsonl"},
    "judge": {"type": "exact"},
    "selector": {"name": "ucb-e"},
    "stopping": {"budget": 64, "delta": 0.1},
}
EVIL = "https://evil.example:444/v1"


def needed(folder, **keys):
    spec = CampaignSpec.model_validate(BASE | keys)
    return {each.text: each.keys for each in permissions(spec, folder)}


def with_model(**keys):
    return {"models": [{"name": "m", "model": "owner/name", **keys}]}


def test_a_campaign_of_ones_own_needs_nothing(tmp_path):
    assert needed(tmp_path) == {}


def test_a_key_that_goes_to_another_origin_is_named_with_it(tmp_path):
    found = needed(tmp_path, models=[SERVED | {"model_base_url": EVIL, "api_key": "$AWS_SECRET"}])
    assert found == {
        "send the environment variable AWS_SECRET to 'https://evil.example:444'": (
            "models[0].api_key",
            "models[0].model_base_url",
        )
    }


@pytest.mark.parametrize(
    "keys",
    [
        {},  # OpenAI's own, under OpenAI's own key
        {"model_base_url": "https://api.openai.com/v1/other", "api_key": "$OPENAI_API_KEY"},
        {"model_base_url": EVIL},  # no key is sent
        {"model_base_url": "http://localhost:8000/v1", "api_key": "$SECRET"},
        {"model_base_url": "http://127.0.0.1:8000/v1", "api_key": "$SECRET"},
        {"model_base_url": "http://[::1]:8000/v1", "api_key": "$SECRET"},
    ],
)
def test_what_was_always_sent_there_and_this_machine_need_nothing(tmp_path, keys):
    assert needed(tmp_path, models=[SERVED | keys]) == {}


@pytest.mark.parametrize(
    "url",
    [
        "http://api.openai.com/v1",  # not encrypted
        "https://api.openai.com:444/v1",
        "https://api.openai.com.evil.example/v1",
        "https://\N{CYRILLIC SMALL LETTER A}pi.openai.com/v1",
        "http://127.0.0.1.evil.example/v1",
        "http://localhost.evil.example/v1",
        "http://0.0.0.0/v1",
        "http://[fe80::1]/v1",
    ],
)
def test_an_origin_that_only_looks_like_one_of_those_is_another(tmp_path, url):
    [text] = needed(tmp_path, models=[SERVED | {"model_base_url": url, "api_key": "$OPENAI_API_KEY"}])
    assert text.startswith("send the environment variable OPENAI_API_KEY to ")
    assert text.isascii()


def test_the_key_of_openai_alone_goes_to_openai(tmp_path):
    assert len(needed(tmp_path, models=[SERVED | {"api_key": "$SECRET"}])) == 1


def test_judges_and_what_answers_for_humans_are_models_too(tmp_path):
    served = SERVED | {"model_base_url": EVIL, "api_key": "$SECRET"}
    judge = {"type": "any-plug-in", "deep": {"panel": [served]}}
    duel = needed(tmp_path, objective="best-duel", selector={"name": "llm-po"}, judge=judge)
    assert [keys[0] for keys in duel.values()] == ["judge.deep.panel[0].api_key"]
    certify = {"alpha": 0.1, "cost": "size", "autoevaluator": {"model": served, "prompt": "{{ input }}"}}
    found = needed(tmp_path, objective="certify", selector={"name": "r-eval"}, certify=certify)
    assert [keys[0] for keys in found.values()] == ["certify.autoevaluator.model.api_key"]


@pytest.mark.parametrize("provider", ["vllm", "transformers"])
@pytest.mark.parametrize("value", [True, 1, "yes"])
def test_code_that_comes_with_a_model_is_named_with_its_revision(tmp_path, provider, value):
    args = {"trust_remote_code": value}
    found = needed(tmp_path, **with_model(provider=provider, model_args=args, revision="abc"))
    assert list(found) == ["run the code that comes with the model 'owner/name' at revision 'abc'"]
    assert needed(tmp_path, **with_model(provider=provider, model_args={"trust_remote_code": False})) == {}


def test_a_function_in_the_home_folder_is_named_by_its_whole_path(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", "/home/ann")
    found = needed(tmp_path, judge={"type": "python", "path": "~/judges.py:score"})
    assert found == {"run 'score' of the Python file '/home/ann/judges.py'": ("judge.path",)}


def test_programs_that_models_write_are_asked_about_wherever_the_judge_stands(tmp_path):
    code = {"type": "code", "allow_code": True}
    told = "run programs that models write, in a sandbox"
    assert needed(tmp_path, judge=code) == {told: ("judge.allow_code",)}
    nested = {"type": "all", "judges": [{"type": "exact"}, code]}
    assert needed(tmp_path, judge=nested) == {told: ("judge.judges[1].allow_code",)}
    assert needed(tmp_path, judge={"type": "code"}) == {}  # which is refused


def test_a_schemas_own_values_are_no_judges_and_no_models(tmp_path):
    server = {"provider": "openai", "model": "q", "model_base_url": EVIL, "api_key": "$KEY"}
    values = [{"type": "code", "allow_code": True}, {"type": "python", "path": "j.py:f"}, server]
    for key in ("enum", "examples"):
        judge = {"type": "json-schema", "schema": {key: values, "default": {"judges": values}}}
        assert needed(tmp_path, judge=judge) == {}
        assert needed(tmp_path, judge={"type": "all", "judges": [judge]}) == {}
        assert needed(tmp_path, metrics=[{"name": "valid", "judge": judge}]) == {}


def test_a_plug_in_may_hold_judges_and_models_anywhere(tmp_path):
    inner = {
        "a": [
            {"b": {"type": "code", "allow_code": True}},
            {**SERVED, "model_base_url": EVIL, "api_key": "$K"},
        ]
    }
    found = needed(tmp_path, judge={"type": "theirs", **inner})
    assert sorted(found.values()) == [
        ("judge.a[0].b.allow_code",),
        ("judge.a[1].api_key", "judge.a[1].model_base_url"),
    ]


def test_a_default_provider_of_a_judge_runs_code_as_well(tmp_path):
    judge = {"type": "llm", "models": [{"name": "j", "model": "o/n", "model_args": {"trust_remote_code": 1}}]}
    assert len(needed(tmp_path, objective="best-duel", selector={"name": "llm-po"}, judge=judge)) == 1


@pytest.mark.parametrize(("name", "value"), [("worker_cls", "evil.Worker"), ("download_dir", "/etc")])
def test_a_text_that_an_engine_may_import_or_write_to_is_named(tmp_path, name, value):
    [text] = needed(tmp_path, **with_model(model_args={name: value}))
    assert f"'{name}' to '{value}'" in text
    harmless = {"dtype": "float16", "max_model_len": 64, "enforce_eager": True}
    assert needed(tmp_path, **with_model(model_args=harmless)) == {}


@pytest.mark.parametrize("folder", ["/etc/logs", "../logs", "inside/../../logs", "linked/logs"])
def test_logs_outside_the_working_folder_are_named_by_where_they_lead(tmp_path, folder):
    own = tmp_path / "own"
    own.mkdir()
    (own / "linked").symlink_to("/etc")
    [text] = needed(own, execution={"log_folder": folder})
    where = "/etc/logs" if "etc" in folder or "linked" in folder else tmp_path / "logs"
    assert text == f"write logs into '{where}'"


@pytest.mark.parametrize("folder", [".winnow/logs", "logs", "a/../logs", "{here}/logs"])
def test_logs_inside_it_are_not(tmp_path, folder):
    assert needed(tmp_path, execution={"log_folder": folder.format(here=tmp_path)}) == {}


@pytest.mark.parametrize(
    "storage",
    [
        "sqlite:////etc/winnow.db",
        "sqlite:///../winnow.db",
        "sqlite:///file:/etc/winnow.db?uri=true",
        "postgresql+psycopg://ann:secret@evil.example/results",
        "postgresql+psycopg://ann@localhost/results?host=evil.example",
    ],
)
def test_results_that_leave_the_folder_or_the_machine_are_named_without_a_password(tmp_path, storage):
    [text] = needed(tmp_path, storage=storage)
    assert text.startswith("keep results in ")
    assert "secret" not in text


@pytest.mark.parametrize(
    "storage", ["sqlite:///winnow.db", "sqlite:///{here}/w.db", "postgresql+psycopg://ann@127.0.0.1/results"]
)
def test_results_that_stay_are_not(tmp_path, storage):
    assert needed(tmp_path, storage=storage.format(here=tmp_path)) == {}


def test_a_cluster_of_others_may_run_anything(tmp_path):
    def cluster(address):
        return needed(tmp_path, execution={"cluster": "ray", "ray_address": address})

    assert [keys for keys in cluster("ray://evil.example:10001").values()] == [("execution.ray_address",)]
    assert len(cluster("evil.example:6379")) == len(cluster("ray://[evil")) == 1
    assert cluster("auto") == cluster("local") == cluster("127.0.0.1:6379") == {}


def test_no_character_of_a_name_can_move_a_cursor(tmp_path):
    [text] = needed(tmp_path, execution={"log_folder": "/x\x1b[2J\N{RIGHT-TO-LEFT OVERRIDE}"})
    assert text.isascii()
    assert text.isprintable()


@pytest.mark.parametrize("host", [None, "", "evil", "127.1", "128.0.0.1"])
def test_any_other_host_is_not_this_machine(host):
    assert not is_loopback(host)


@pytest.fixture
def placed(tmp_path, monkeypatch):
    """A working folder, and beside it another one with files of the user."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in (
        "home/key",
        "home/shards/1.jsonl",
        "home/shards/2.jsonl",
        "work/own.jsonl",
        "work/in/1.jsonl",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("secret")
    (tmp_path / "work/link.jsonl").symlink_to(tmp_path / "home/key")
    (tmp_path / "work/way").symlink_to(tmp_path / "home/shards")
    (tmp_path / "work/in/2.jsonl").symlink_to(tmp_path / "home/key")
    (tmp_path / "work/key").write_text("what is no secret")
    return tmp_path / "work"


HERE = {**SERVED, "model_base_url": "http://127.0.0.1:8000/v1"}


@pytest.mark.parametrize(
    ("path", "read"),
    [
        ("own.jsonl", None),
        ("in/1.jsonl", None),
        ("../work/own.jsonl", None),
        ("nowhere.jsonl", None),
        ("*.nothing", None),
        ("~/key", "home/key"),
        ("../home/key", "home/key"),
        ("link.jsonl", "home/key"),
        ("way/../key", "home/key"),  # and not work/key, to which the text alone would lead
        ("way/1.jsonl", "home/shards/1.jsonl"),
        ("way/*.jsonl", "home/shards/*.jsonl"),
        ("~/shards/*.jsonl", "home/shards/*.jsonl"),
        ("in/*.jsonl", "home/key"),
    ],
)
@pytest.mark.parametrize("key", ["dataset.path", "dataset.path of several", "few_shot", "judged"])
def test_files_outside_are_asked_about_before_a_server_is_sent_them(placed, path, read, key):
    keys, place = {"models": [HERE]}, "dataset.path"
    if key == "few_shot":
        place = "prompts[0].few_shot.from.path"
        prompt = {"name": "p", "template": "{{ input }}", "few_shot": {"n": 1, "from": path}}
        keys |= {"prompts": [prompt]}
    elif key == "judged":
        keys = {"judge": {"type": "llm", "rubric": "good", "model": HERE}, "dataset": {"path": path}}
    else:
        keys |= {"dataset": {"path": path if key == "dataset.path" else ["own.jsonl", path]}}
    told = {f"read '{placed.parent / str(read)}' and send it to 'http://127.0.0.1:8000'": (place,)}
    assert needed(placed, **keys) == ({} if read is None else told)


def test_a_chat_template_is_asked_about_with_all_that_one_server_is_sent(placed):
    model = {**HERE, "chat": True, "chat_template": "~/key"}
    other = {**SERVED, "name": "o", "model_base_url": EVIL}
    data = {"path": "~/shards/1.jsonl"}
    home = placed.parent / "home"
    assert needed(placed, models=[model, other], dataset=data) == {
        f"read '{home}/key', '{home}/shards/1.jsonl' and send them to 'http://127.0.0.1:8000'": (
            "dataset.path",
            "models[0].chat_template",
        ),
        f"read '{home}/shards/1.jsonl' and send it to 'https://evil.example:444'": ("dataset.path",),
    }


@pytest.mark.parametrize("place", ["judge", "metrics[0].judge"])
def test_a_judges_template_is_asked_about_before_its_server_is_sent_it(placed, place):
    home = placed.parent / "home"
    (home / "pairs.j2").write_text("{{ answer_a }} {{ answer_b }}")
    (placed / "link.txt").symlink_to(home / "pairs.j2")
    (placed / "own.j2").write_text("{{ answer_a }} {{ answer_b }}")
    judge = {"type": "llm", "models": [HERE], "template": "own.j2"}
    given = {"judge": judge} if place == "judge" else {"metrics": [{"name": "m", "judge": judge}]}
    assert needed(placed, **given) == {}
    for template in ("~/pairs.j2", "link.txt"):
        judge["template"] = template
        told = f"read '{home}/pairs.j2' and send it to 'http://127.0.0.1:8000'"
        assert needed(placed, **given) == {told: (f"{place}.template",)}
    judge["template"] = "{{ answer_a }}\n~/pairs.j2"
    assert needed(placed, **given) == {}


def test_a_folder_of_the_hubs_kind_is_asked_about_too(placed):
    assert needed(placed, models=[HERE], dataset={"hub": "owner/name"}) == {}
    for hub, read in [("~/shards", "home/shards"), ("in", "home/key")]:
        assert list(needed(placed, models=[HERE], dataset={"hub": hub})) == [
            f"read '{placed.parent / read}' and send it to 'http://127.0.0.1:8000'"
        ]


def test_what_only_engines_of_this_process_read_is_not_asked_about(placed):
    model = {
        "name": "m",
        "model": "~/key",
        "provider": "transformers",
        "chat": True,
        "chat_template": "~/key",
    }
    assert needed(placed, models=[model], dataset={"path": "~/key"}) == {}


PLAIN = """\
task: t
test_split: test
doc_to_text: '{{ q }}'
doc_to_target: a
"""


@pytest.mark.parametrize(
    ("data", "read"),
    [
        ("dataset_path: json\ndataset_kwargs: {data_files: {test: own.jsonl}}", None),
        ("dataset_path: json\ndataset_kwargs: {data_files: {test: in/1.jsonl}}", None),
        ("dataset_path: owner/name", None),
        ("dataset_path: json\ndataset_kwargs: {data_files: {test: ../home/key}}", "home/key"),
        ("dataset_path: text\ndataset_kwargs: {data_files: [own.jsonl, link.jsonl]}", "home/key"),
        ("dataset_path: text\ndataset_kwargs: {data_files: {test: ['way/*']}}", "home/shards/*"),
        ("dataset_path: text\ndataset_kwargs: {data_dir: ../home/shards}", "home/shards"),
        ("dataset_path: text\ndataset_kwargs: {data_dir: ~/shards, data_files: 1.jsonl}", "home/shards"),
        ("dataset_path: way", "home/shards"),
        ("dataset_path: in", "home/key"),
        ("dataset_path: json\ninclude: ../home/more.yaml", "home/more.yaml"),
        ("dataset_path: json\ninclude: more.yaml", "home/more.yaml"),
        ("dataset_path: json\ninclude: ~/more.yaml", None),  # a folder of this name
    ],
)
@pytest.mark.parametrize("task", ["t.yaml", "t"])
def test_files_that_a_task_of_lm_eval_names_are_asked_about_too(placed, monkeypatch, data, read, task):
    monkeypatch.chdir(placed)
    (placed / "t.yaml").write_text(PLAIN + data)
    (placed.parent / "home/more.yaml").write_text("description: secret")
    (placed / "more.yaml").symlink_to(placed.parent / "home/more.yaml")
    lm_eval = {"task": task, **({"include_path": "."} if task == "t" else {})}
    found = list(needed(placed, models=[HERE], dataset={"lm_eval": lm_eval}))
    if read is None:
        assert found == []
    else:
        [text] = found
        assert text.startswith(f"read '{placed.parent / read}'")
        assert text.endswith("to 'http://127.0.0.1:8000'")


def test_the_file_of_a_task_of_lm_eval_is_asked_about_where_it_lies_outside(placed, monkeypatch):
    monkeypatch.chdir(placed)
    outside = placed.parent / "home" / "t.yaml"
    outside.write_text(f"{PLAIN}dataset_path: owner/name")
    (placed / "tasks").mkdir()
    (placed / "tasks" / "t.yaml").symlink_to(outside)
    for lm_eval in ({"task": str(outside)}, {"task": "tasks/t.yaml"}, {"task": "t", "include_path": "tasks"}):
        assert list(needed(placed, models=[HERE], dataset={"lm_eval": lm_eval})) == [
            f"read '{outside}' and send it to 'http://127.0.0.1:8000'"
        ]
