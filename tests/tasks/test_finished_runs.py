"""Finished runs of other tools: scores come out as the source has them, and what is unclear is refused."""

import json
import re
import zipfile

import pytest

from winnow.tasks.finished_runs.gather import model_names, read_run
from winnow.tasks.finished_runs.scored_output import Choice, UnreadableRun

N = 5


def lm_eval_row(at, score, **more):
    return {
        "doc_id": at,
        "doc": {"question": f"{at}+1?"},
        "target": str(at + 1),
        "arguments": {"gen_args_0": {"arg_0": f"Q: {at}+1?\nA:", "arg_1": {}}},
        "resps": [[f"{at}"]],
        "filtered_resps": [f"it is {at + 1}"],
        "filter": "none",
        "metrics": ["exact_match"],
        "exact_match": score,
    } | more


def lm_eval(folder, model, scores, **more):
    file = folder / model / "samples_sums_2026-11-29T11-35-10.421118.jsonl"
    file.parent.mkdir()
    rows = [lm_eval_row(at, score, **more) for at, score in enumerate(scores)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(file)


def inspect_sample(at, value, epoch=1, **more):
    message = {"role": "assistant", "content": [{"type": "text", "text": f"it is {at}"}]}
    return {
        "id": at,
        "epoch": epoch,
        "input": [{"role": "user", "content": f"{at}?"}],
        "target": str(at),
        "output": {"choices": [{"message": message}]},
        "scores": {"match": {"value": value}},
    } | more


def inspect_header(model, **config):
    return {"version": 2, "status": "success", "eval": {"model": model, "task": "sums", "config": config}}


def inspect_eval(folder, model, samples, **config):
    file = folder / f"{model}.eval"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps(inspect_header(f"openai/{model}", **config)))
        for each in samples:
            archive.writestr(f"samples/{each['id']}_epoch_{each['epoch']}.json", json.dumps(each))
    return str(file)


def promptfoo(folder, rows, name="results.json"):
    file = folder / name
    file.write_text(json.dumps({"evalId": "eval-1", "results": {"version": 3, "results": rows}}))
    return str(file)


def promptfoo_row(test, provider, *, success, score=1.0, prompt="p", **more):
    return {
        "testIdx": test,
        "promptIdx": 0,
        "provider": {"id": provider, "label": ""},
        "vars": {"q": f"{test}?"},
        "prompt": {"raw": "{{q}}", "label": prompt},
        "response": {"output": f"it is {test}"},
        "success": success,
        "score": score,
        "testCase": {"assert": [{"type": "equals", "value": f"{test}"}]},
    } | more


def means(run):
    return {
        each: sum(cell.score or 0.0 for (name, _), cell in run.cells.items() if name == each)
        / len(run.examples)
        for each in run.candidates
    }


def test_samples_of_lm_eval(tmp_path):
    run = read_run(
        [lm_eval(tmp_path, "org__a", [1, 1, 0, 1, 1]), lm_eval(tmp_path, "b", [0, 1, 0, 0, 0])], Choice()
    )
    assert means(run) == {"org/a": 0.8, "b": 0.2}
    assert list(run.rows())[2] == {
        "id": "sums/2",
        "input": "2+1?",
        "target": ["3"],
        "task": "sums",
        "outputs": {"org-a": "it is 3", "b": "it is 3"},
        "scores": {"org-a": 0.0, "b": 0.0},
    }


def test_a_format_is_recognised_by_the_beginning_of_a_long_line(tmp_path):
    long = {"arguments": {"gen_args_0": {"arg_0": "shot " * 20_000}}, "metrics": ["acc", "acc_norm"]}
    files = [lm_eval(tmp_path, name, [1] * N, **long, acc=1.0, acc_norm=0.0) for name in "ab"]
    assert means(read_run(files, Choice(metric="acc"))) == {"a": 1.0, "b": 1.0}


def test_a_metric_and_a_filter_are_chosen_where_there_are_several(tmp_path):
    both = {"metrics": ["acc", "acc_norm"], "acc": 1.0, "acc_norm": 0.0}
    files = [lm_eval(tmp_path, name, [1] * N, **both) for name in "ab"]
    with pytest.raises(
        UnreadableRun, match=r"more than one metric: acc, acc_norm; choose one, such as --metric acc$"
    ):
        read_run(files, Choice())
    assert means(read_run(files, Choice(metric="acc_norm"))) == {"a": 0.0, "b": 0.0}
    with pytest.raises(UnreadableRun, match="has no metric 'f1'; choose one of: acc, acc_norm"):
        read_run(files, Choice(metric="f1"))
    filters = tmp_path / "c" / "samples_sums_2026-11-29T11-35-10.421118.jsonl"
    filters.parent.mkdir()
    rows = [lm_eval_row(0, 1.0, filter="strict"), lm_eval_row(0, 0.0, filter="loose")]
    filters.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(UnreadableRun, match="--filter strict"):
        read_run([str(filters)], Choice())


def test_two_files_of_one_model_need_names(tmp_path):
    files = []
    for name in "xy":
        (tmp_path / name).mkdir()
        files.append(lm_eval(tmp_path / name, "same", [1, 1, 0, 1, 1]))
    with pytest.raises(
        UnreadableRun, match=r"both have same on sums/0; remove one, or give another candidate name: NAME="
    ):
        read_run(files, Choice())
    run = read_run([f"old={files[0]}", f"new={files[1]}"], Choice())
    assert run.candidates == ["old", "new"]


@pytest.mark.parametrize("as_json", [False, True])
def test_logs_of_inspect_with_epochs(tmp_path, as_json):
    samples = {
        "a": [inspect_sample(at, "C", epoch) for at in range(N) for epoch in (1, 2)],
        "b": [inspect_sample(at, "C" if epoch == 1 else "I", epoch) for at in range(N) for epoch in (1, 2)],
    }
    if as_json:
        files = []
        for model, each in samples.items():
            file = tmp_path / f"{model}.json"
            file.write_text(json.dumps(inspect_header(f"openai/{model}") | {"samples": each}))
            files.append(str(file))
    else:
        files = [
            inspect_eval(tmp_path, model, each, epochs_reducer=["mean"]) for model, each in samples.items()
        ]
    run = read_run(files, Choice())
    assert means(run) == {"openai/a": 1.0, "openai/b": 0.5}
    row = next(iter(run.rows()))
    assert (row["input"], row["target"], row["outputs"]["openai-a"]) == ("0?", ["0"], "it is 0")


def test_what_a_log_of_inspect_scores_otherwise_is_refused_or_left_open(tmp_path):
    other = inspect_eval(tmp_path, "a", [inspect_sample(0, "C")], epochs_reducer=["pass_at_2"])
    with pytest.raises(UnreadableRun, match="reduces epochs by pass_at_2"):
        read_run([other], Choice())
    failed = [inspect_sample(at, "C", **({"error": {"message": "x"}} if at == 0 else {})) for at in range(N)]
    files = [inspect_eval(tmp_path, name, failed) for name in "ab"]
    run = read_run(files, Choice())
    assert [len(row["scores"]) for row in run.rows()] == [0, 2, 2, 2, 2]
    parts = [inspect_sample(at, {"form": 1, "content": 0.5}) for at in range(N)]
    files = [inspect_eval(tmp_path, name, parts) for name in "ab"]
    with pytest.raises(UnreadableRun, match="choose one, such as --metric match:form"):
        read_run(files, Choice(metric="match"))
    assert means(read_run(files, Choice(metric="match:content"))) == {"openai/a": 0.5, "openai/b": 0.5}


def test_archives_that_zstandard_compresses_are_read(tmp_path):
    import struct
    import zlib

    import pyarrow as pa

    plain = inspect_eval(tmp_path, "a", [inspect_sample(at, "C") for at in range(N)])
    sink = pa.BufferOutputStream()
    with zipfile.ZipFile(plain) as archive:  # ZIP as Inspect 0.3.285 writes it; Python 3.11 cannot
        entries, offset, directory = [], 0, b""
        for name in archive.namelist():
            content = archive.read(name)
            packed = pa.compress(content, codec="zstd", asbytes=True)
            sizes = (zlib.crc32(content), len(packed), len(content), len(name), 0)
            local = struct.pack("<4s5H3I2H", b"PK\3\4", 63, 0, 93, 0, 33, *sizes) + name.encode() + packed
            directory += struct.pack(
                "<4s6H3I5H2I", b"PK\1\2", 63, 63, 0, 93, 0, 33, *sizes, 0, 0, 0, 0, offset
            )
            directory += name.encode()
            entries.append(local)
            offset += len(local)
        n = len(entries)
    sink.close()
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, n, n, len(directory), offset, 0)
    packed_file = tmp_path / "packed.eval"
    packed_file.write_bytes(b"".join(entries) + directory + end)
    run = read_run([str(plain), f"packed={packed_file}"], Choice())
    assert means(run) == {"openai/a": 1.0, "packed": 1.0}
    damaged = bytearray(packed_file.read_bytes())
    damaged[60] ^= 0xFF
    (tmp_path / "damaged.eval").write_bytes(damaged)
    with pytest.raises(UnreadableRun, match="cannot be read"):
        read_run([str(tmp_path / "damaged.eval")], Choice())


def test_results_of_promptfoo_count_what_passes(tmp_path):
    rows = [promptfoo_row(test, "a", success=test != 0, score=0.9) for test in range(N)]
    rows += [promptfoo_row(test, "b", success=test == 0, score=0.1) for test in range(N)]
    rows[-1] |= {"failureReason": 2, "error": "timeout", "success": False}
    run = read_run([promptfoo(tmp_path, rows)], Choice())
    assert means(run) == {"a": 0.8, "b": 0.2}
    assert run.cells["b", str(N - 1)].score is None
    assert run.cells["b", str(N - 2)].score == 0.0
    assert means(read_run([promptfoo(tmp_path, rows)], Choice(metric="score")))["a"] == pytest.approx(0.9)
    two = [
        promptfoo_row(test, "a", success=True, prompt=prompt) for test in range(N) for prompt in ("p", "q")
    ]
    assert read_run([promptfoo(tmp_path, two, "two.json")], Choice()).candidates == ["a/p", "a/q"]


def test_exports_of_langfuse(tmp_path):
    file = tmp_path / "traces.json"
    rows = [
        {
            "id": f"{run}{at}",
            "name": "qa",
            "datasetRunName": run,
            "datasetItemId": f"i{at}",
            "input": f"{at}?",
            "output": {"text": "it is"},
            "scores": [{"name": "right", "value": float(run == "a")}, {"name": "note"}],
        }
        for run in "ab"
        for at in range(N)
    ]
    file.write_text(json.dumps({"data": rows, "meta": {"page": 1}}))
    run = read_run([str(file)], Choice())
    assert means(run) == {"a": 1.0, "b": 0.0}
    assert run.cells["a", "i0"].output == '{"text": "it is"}'
    for row in rows:
        row["datasetRunName"] = "same"
        row["metadata"] = {"prompt": row["id"][0]}
    file.write_text(json.dumps(rows))
    with pytest.raises(UnreadableRun, match="name the field: --candidate FIELD"):
        read_run([str(file)], Choice())
    assert means(read_run([str(file)], Choice(candidate="metadata.prompt"))) == {"a": 1.0, "b": 0.0}


def test_tables_long_and_wide(tmp_path):
    long = tmp_path / "long.csv"
    rows = [f"{name},e{at},{int(name == 'a')},text" for name in "ab" for at in range(N)]
    long.write_text("model,id,score,output\n" + "\n".join(rows) + "\n")
    assert means(read_run([str(long)], Choice())) == {"a": 1.0, "b": 0.0}
    wide = tmp_path / "wide.csv"
    wide.write_text("id,gpt,qwen\n" + "".join(f"e{at},{at % 2},\n" if at else "e0,0,1\n" for at in range(N)))
    run = read_run([str(wide)], Choice())
    assert means(run) == {"gpt": 0.4, "qwen": 0.2}
    assert run.cells["qwen", "e1"].score is None


def test_scores_of_another_range_are_mapped_and_others_refused(tmp_path):
    table = tmp_path / "points.csv"
    table.write_text("id,a,b\n" + "".join(f"e{at},5,3\n" for at in range(N)))
    with pytest.raises(UnreadableRun, match=r"the score 5 of a on e0 is outside 0 to 1; .*--range LOW,HIGH"):
        read_run([str(table)], Choice())
    run = read_run([str(table)], Choice(), range_=(1.0, 5.0))
    assert next(iter(run.rows()))["scores"] == {"a": 1.0, "b": 0.5}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "empty"),
        ("[" * 100_000, ""),
        ("{}", ""),
        ('{"evalId": 1, "results": {"results": [3, null, {"provider": 1}]}}', ""),
        ('{"version": 2, "eval": {}, "samples": [{"scores": 3}, 7]}', ""),
        ('[{"scores": {}, "input": 1, "output": 2}]', ""),
        ("\x00\xff", ""),
    ],
)
@pytest.mark.parametrize("suffix", [".json", ".jsonl", ".csv", ".eval"])
def test_what_is_no_run_is_refused_in_a_sentence(tmp_path, content, why, suffix):
    file = tmp_path / f"x{suffix}"
    file.write_text(content, encoding="latin-1")
    from winnow.tasks.errors import WinnowError

    with pytest.raises(WinnowError):
        read_run([str(file)], Choice())


def test_an_input_that_differs_between_candidates_is_refused(tmp_path):
    files = [lm_eval(tmp_path, "a", [1] * N), lm_eval(tmp_path, "b", [1] * N, doc={"question": "another?"})]
    with pytest.raises(UnreadableRun, match="has another input than that of a"):
        read_run(files, Choice())


def test_names_of_models_are_told_apart():
    assert model_names(["org/a.b", "org a b", "org-a-b"]) == {
        "org/a.b": "org-a-b-2",
        "org a b": "org-a-b-3",
        "org-a-b": "org-a-b",
    }


def test_names_without_a_letter_are_told_apart_at_once():
    names = model_names([f"{chr(0x4E00 + at)}" for at in range(5000)])
    assert len(set(names.values())) == 5000


def test_characters_that_no_database_stores_are_replaced(tmp_path):
    files = [lm_eval(tmp_path, name, [1] * N, filtered_resps=["\ud800"]) for name in "ab"]
    run = read_run(files, Choice())
    assert json.dumps(list(run.rows()), ensure_ascii=False).encode()


def test_a_line_without_its_document_is_refused(tmp_path):
    with pytest.raises(UnreadableRun, match="a line has no doc_id"):
        read_run([lm_eval(tmp_path, "a", [1] * N, doc_id=None)], Choice())


@pytest.mark.parametrize(
    "change",
    [
        (8, 14), (8, 77), (4, 99), (6, 1), (26, 0xFF),
    ],
)  # fmt: skip
def test_archives_that_are_damaged_encrypted_or_of_another_version_are_refused(tmp_path, change):
    offset, value = change
    file = inspect_eval(tmp_path, "a", [inspect_sample(at, "C") for at in range(N)])
    content = bytearray((tmp_path / "a.eval").read_bytes())
    for signature, shift in ((rb"PK\x03\x04", 0), (rb"PK\x01\x02", 2)):
        for found in re.finditer(signature, bytes(content)):
            content[found.start() + offset + (shift if offset < 26 else 0)] = value
    (tmp_path / "a.eval").write_bytes(content)
    with pytest.raises(UnreadableRun):
        read_run([file], Choice())
