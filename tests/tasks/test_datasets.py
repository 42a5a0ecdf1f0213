"""Datasets: four formats, one content; every mistake is one sentence with its place and remedy."""

import csv
import gc
import hashlib
import json
import re
import tracemalloc
from datetime import timedelta

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from property_settings import tries

from winnow.tasks.data.dataset_files import read_files, read_rows
from winnow.tasks.data.datasets import Example, Selection, dataset_of, load_dataset
from winnow.tasks.data.sandboxed_templates import compile_template
from winnow.tasks.errors import DatasetError, TemplateError

ROLES = {"id": "id", "input": "question", "target": "answer"}
ROWS = [
    {"id": "a", "question": "1+1\u2028=", "answer": "2", "hint": "two, of course"},
    {"id": "b", "question": '"2"+2=\r\n', "answer": "4", "hint": "{{ four }}"},
]
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
KEY = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)


def write(path, rows):
    match path.suffix.lower():
        case ".jsonl":
            path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n\n", "utf-8")
        case ".json":
            path.write_text(json.dumps(rows), "utf-8")
        case ".csv":
            with path.open("w", encoding="utf-8-sig", newline="") as file:
                writer = csv.DictWriter(file, rows[0])
                writer.writeheader()
                writer.writerows(rows)
        case ".parquet":
            pd.DataFrame(rows).to_parquet(path)
    return path


def refusal(path, fields=ROLES, limit=None):
    with pytest.raises(DatasetError) as caught:
        load_dataset(path, fields, limit)
    return str(caught.value)


@pytest.fixture
def jsonl(tmp_path):
    def write_lines(*lines):
        path = tmp_path / "data.jsonl"
        path.write_text("\n".join(lines), "utf-8")
        return path

    return write_lines


@pytest.mark.parametrize("suffix", [".jsonl", ".JSONL", ".json", ".csv", ".parquet"])
def test_every_format_gives_the_same_examples_and_fingerprint(tmp_path, suffix):
    dataset = load_dataset(write(tmp_path / f"sums{suffix}", ROWS), ROLES)
    assert dataset.name == "sums"
    assert dataset.examples[0] == Example(
        key="a",
        fields={"id": "a", "question": "1+1\u2028=", "input": "1+1\u2028=", "hint": "two, of course"},
        targets=("2",),
    )
    assert dataset.field_names == ("hint", "id", "input", "question")
    assert dataset.fingerprint == load_dataset(write(tmp_path / "other.jsonl", ROWS), ROLES).fingerprint


@tries(40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(
        st.fixed_dictionaries({"id": KEY, "input": TEXT, "target": TEXT}),
        min_size=1,
        unique_by=lambda row: row["id"],
    ),
    suffix=st.sampled_from([".jsonl", ".json", ".csv", ".parquet"]),
)
def test_what_is_written_is_what_is_read(tmp_path, rows, suffix):
    path = write(tmp_path / f"data{suffix}", rows)
    examples = load_dataset(path, {"id": "id", "input": "input", "target": "target"}).examples
    read = [{"id": e.key, "input": e.fields["input"], "target": e.targets[0]} for e in examples]
    assert read == rows


def spelled(value):
    """The one spelling of a value, of which keys and fingerprints are made; databases hold them for ever."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


NUMBER = st.one_of(
    st.integers(), st.integers(-(2**70), 2**70), st.floats(allow_nan=False, allow_infinity=False)
)
VALUE = st.one_of(
    st.none(), st.booleans(), TEXT, NUMBER, st.sampled_from([2**63, 2**64 - 1, 2**64, -(2**63) - 1])
)
ANY_VALUE = VALUE | st.lists(VALUE, max_size=3) | st.dictionaries(TEXT, VALUE, max_size=3)


@tries(150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    row=st.dictionaries(TEXT, VALUE, max_size=4) | st.dictionaries(TEXT, ANY_VALUE, max_size=4), input_=TEXT
)
def test_keys_and_fingerprints_are_hashes_of_one_spelling_to_the_last_digit(tmp_path, row, input_):
    row = row | {"input": input_}
    path = tmp_path / "data.jsonl"
    path.write_bytes(json.dumps(row, ensure_ascii=False).encode())
    dataset = load_dataset(path, {})
    (example,) = dataset.examples
    assert (example.fields, list(example.fields)) == (row, list(row))
    assert {name: type(value) for name, value in example.fields.items()} == {
        name: type(value) for name, value in row.items()
    }
    assert example.key == hashlib.sha256(spelled(row)).hexdigest()[:16]
    assert dataset.fingerprint == hashlib.sha256(spelled([example.key, row, []]) + b"\n").hexdigest()


def test_every_character_has_one_spelling(jsonl):
    text = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x11000), 0x10FFFF]))
    (example,) = load_dataset(jsonl(json.dumps({"input": text})), {}).examples
    assert example.key == hashlib.sha256(spelled({"input": text})).hexdigest()[:16]


def test_rows_are_read_one_by_one_and_share_the_names_of_their_columns(tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_text("".join(json.dumps({"input": f"{n}" * 500, "level": n}) + "\n" for n in range(4000)))
    tracemalloc.start()
    try:
        dataset = load_dataset(path, {})
        _, peak = tracemalloc.get_traced_memory()
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert len({id(name) for each in dataset.examples for name in each.fields}) == 2
    assert peak < 1.3 * kept  # the text of the file is not held beside what was made of it


def test_python_collects_garbage_again_once_rows_are_read_or_refused(jsonl):
    load_dataset(jsonl('{"input": "a"}'), {})
    assert gc.isenabled()
    refusal(jsonl('{"input": null}'), {})
    assert gc.isenabled()


@pytest.mark.parametrize(
    ("target", "targets"),
    [
        ("x", ("x",)), (3, ("3",)), (2.5, ("2.5",)), (["x", 3], ("x", "3")), (None, ()), ("", ()), ([], ()),
        (True, ("true",)), (False, ("false",)), ([True, None, "", 5.0], ("true", "5.0")), ([None], ()),
    ],
)  # fmt: skip
def test_targets_are_text_numbers_booleans_or_lists_of_them_or_nothing(jsonl, target, targets):
    path = jsonl(json.dumps({"id": 1, "question": "q", "answer": target}))
    assert load_dataset(path, ROLES).examples[0].targets == targets


def test_without_ids_the_key_is_a_hash_of_the_row_and_without_targets_there_are_none(jsonl):
    path = jsonl('{"input": "p", "more": {"deep": [1, null]}}', '{"more": 2, "input": "q"}')
    dataset = load_dataset(path, {"id": None, "target": None})
    reordered = load_dataset(jsonl('{"input": "q", "more": 2}'), {})
    assert dataset.examples[1].key == reordered.examples[0].key != dataset.examples[0].key
    assert re.fullmatch("[0-9a-f]{16}", dataset.examples[0].key)
    assert dataset.examples[0].targets == ()


def test_the_target_is_no_field_even_when_its_column_is_called_input(jsonl):
    path = jsonl('{"question": "q", "input": "secret"}')
    example = load_dataset(path, {"input": "question", "target": "input"}).examples[0]
    assert example.fields == {"question": "q", "input": "q"}


def test_the_limit_takes_the_first_rows_and_may_exceed_the_file(tmp_path):
    path = write(tmp_path / "data.jsonl", ROWS)
    assert [example.key for example in load_dataset(path, ROLES, limit=1).examples] == ["a"]
    assert load_dataset(path, ROLES, limit=9).fingerprint == load_dataset(path, ROLES).fingerprint
    assert load_dataset(path, ROLES, limit=1).fingerprint != load_dataset(path, ROLES).fingerprint
    assert refusal(path, limit=0) == "dataset.limit: limit must be at least 1, got 0"


def test_the_fingerprint_and_the_common_fields_see_every_column(jsonl):
    one = load_dataset(jsonl('{"input": "a", "x": 1}', '{"input": "b", "y": 1}'), {"id": "input"})
    two = load_dataset(jsonl('{"input": "a", "x": 1}', '{"input": "b", "y": 2}'), {"id": "input"})
    assert one.fingerprint != two.fingerprint
    assert one.field_names == ("input",)


def test_parquet_values_become_json_values(tmp_path):
    frame = pd.DataFrame(
        {"input": ["x"], "when": [pd.Timestamp("2026-01-02")], "gap": [float("nan")], "l": [[1, 2]]}
    )
    frame.to_parquet(tmp_path / "data.parquet")
    example = load_dataset(tmp_path / "data.parquet", {}).examples[0]
    assert example.fields == {"input": "x", "when": "2026-01-02T00:00:00", "gap": None, "l": [1, 2]}


def test_a_missing_file_names_where_it_was_looked_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "sums.jsonl", ROWS)
    sentence = refusal("sum.jsonl")
    assert f"looked for {tmp_path}/sum.jsonl, working directory {tmp_path}" in sentence
    assert sentence.endswith("did you mean 'sums.jsonl'?")
    (tmp_path / "folder.csv").mkdir()
    assert "folder.csv is a folder" in refusal("folder.csv")
    assert refusal("data.jsn").startswith(
        "dataset.path: unknown suffix '.jsn'; did you mean '.json'? available: .csv"
    )


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("d.jsonl", b'{"id": 1}\n\n{"id": \n', "line 3: not JSON (Expecting value, column 8)"),
        ("d.jsonl", b'{"id": NaN, "x": 1}', "line 1: the input in column 'id' is NaN; fill it in"),
        ("d.jsonl", b'{"id": null, "x": 1}', "line 1: the input in column 'id' is null; fill it in"),
        (
            "d.json",
            b'[{"id": 1}, {"id": NaN, "x": 1}]',
            "item 2: the input in column 'id' is NaN; fill it in",
        ),
        ("d.jsonl", b"[" * 200_000, "line 1: not JSON"),
        ("d.jsonl", b'{"id": 1}\n{"a": "\xff"}', "line 2: not UTF-8; save the file as UTF-8"),
        ("d.jsonl", b"[1]\n", "line 1: contains a list; write an object"),
        ("d.jsonl", b"\n \n", "has no rows; add examples"),
        ("d.json", b'[{"id": 1},\n oops]', "line 2: not JSON (Expecting value, column 2)"),
        ("d.json", b'{"rows": []}', "contains an object, but a .json dataset is one list of objects"),
        ("d.json", b'[{"id": 1}, 2]', "item 2: contains a number; write an object"),
        ("d.csv", b"id,question,answer\n", "has no rows; add examples"),
        ("d.csv", b"id,question,answer\n1,2,3\n\n4,5\n", "line 4: 2 cells under 3 column names"),
        (
            "d.csv",
            b"id;question\n1;2,3\n",
            "line 2: 2 cells under 1 column names; its columns are separated by s",
        ),
        ("d.csv", b'id,question,answer\n1,"2\n\n3', "line 4: not CSV"),
        ("d.csv", b"id,id,answer\n1,2,3\n", "has two columns 'id'; rename one"),
        ("d.parquet", b"PAR1 not really", "is not a Parquet file"),
    ],
)
def test_a_broken_file_is_refused_at_its_line(tmp_path, name, content, sentence):
    (tmp_path / name).write_bytes(content)
    assert f"{tmp_path / name}" in refusal(tmp_path / name)
    assert sentence in refusal(tmp_path / name, {"input": "id"})


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ({"id": 1, "questoin": "q", "answer": "a"}, "unknown column 'question'; did you mean 'questoin'?"),
        ({"id": None, "question": "q", "answer": "a"}, "the id in column 'id' is null; write text or"),
        ({"id": "", "question": "q", "answer": "a"}, 'the id in column \'id\' is ""'),
        ({"id": True, "question": "q", "answer": "a"}, "the id in column 'id' is true"),
        ({"id": "a\0", "question": "q", "answer": "a"}, "remove the character NUL, which databases do not"),
        ({"id": 1, "question": None, "answer": "a"}, "the input in column 'question' is null; fill it in"),
        ({"id": 1, "question": "q", "answer": [[1]]}, "the target in column 'answer' is [1]; write text"),
        ({"id": 1, "question": "q", "answer": ["a", {}]}, "the target in column 'answer' is {}"),
        ({"id": 1, "question": "q", "answer": "a", "input": "i"}, "has a column 'input' as well as"),
        ({"id": 1, "question": "q\ud800", "answer": "a"}, r"'\ud800' is half a character"),
    ],
)  # fmt: skip
def test_a_bad_row_is_refused_with_its_line_and_remedy(jsonl, row, sentence):
    path = jsonl(json.dumps({"id": 0, "question": "q", "answer": "a"}), json.dumps(row))
    assert f"{path}, line 2: " in refusal(path)
    assert sentence in refusal(path)


@pytest.mark.parametrize(("mark", "said"), [(";", "semicolons"), ("\t", "tabs")])
def test_columns_that_something_else_than_commas_separates_are_told_as_such(tmp_path, mark, said):
    path = tmp_path / "d.csv"
    path.write_text(f"id{mark}question{mark}answer\n1{mark}1+1{mark}2\n")
    assert refusal(path) == (
        f"dataset.fields.input: {path}, header: no column 'question'; its columns are separated by {said}: "
        "save it with commas between them"
    )


def test_a_column_may_have_a_semicolon_in_its_name(tmp_path):
    path = tmp_path / "d.csv"
    path.write_text("what; in short\n1+1\n")
    (example,) = load_dataset(path, {"input": "what; in short"}).examples
    assert example.fields["input"] == "1+1"


def test_repeated_ids_name_both_lines(jsonl):
    path = jsonl('{"id": 7, "input": "a"}', "", '{"id": "7", "input": "b"}')
    assert "line 3: the id '7' occurs twice, but ids must be different" in refusal(path, {"id": "id"})


def test_of_rows_that_are_the_same_the_first_keeps_its_key_and_later_ones_get_a_number(jsonl):
    rows = ["a", "b", "a", "a", "c", "b"]
    path = jsonl(*(json.dumps({"input": each}) for each in rows))
    dataset = load_dataset(path, {})
    own = {each: hashlib.sha256(spelled({"input": each})).hexdigest()[:16] for each in "abc"}
    assert [each.key for each in dataset.examples] == [
        own["a"], own["b"], f"{own['a']}-2", f"{own['a']}-3", own["c"], f"{own['b']}-2",
    ]  # fmt: skip
    assert [each.fields["input"] for each in dataset.examples] == rows
    assert dataset.remarks == (
        f"3 rows are the same as an earlier row (for example {path}, line 3 and {path}, line 1), and each is "
        "a separate example; remove the repeated rows if this is not intended",
    )


UNUSABLE = {
    "bytes": (pa.array([b"\x89", None]), "bytes"),
    "picture": (pa.array([{"bytes": b"\x89", "path": "p"}, None]), "bytes"),
    "duration": (pa.array([timedelta(1), None]), "a duration"),
    "nanoseconds": (pa.array([1, 2], pa.duration("ns")), "a duration"),
    "infinite": (pa.array([float("inf"), 1.0]), "an infinite number"),
    "half": (pa.array([float("-inf"), 1.0], pa.float16()), "an infinite number"),
    "list": (pa.array([[1.0, float("-inf")], []]), "an infinite number"),
    "pictures": (pa.array([[{"bytes": b"1", "path": "p"}], []]), "bytes"),
    "zone": (pa.array([1, 2], pa.timestamp("ms", "Mars/Base")), "timestamp[ms, tz=Mars/Base] that Python"),
    "named": (pa.array([b"0123456789abcdef", None]).cast(pa.binary(16)), "bytes"),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_what_cannot_be_stored_is_left_out_and_named_and_nothing_may_use_it(tmp_path, name):
    column, kind = UNUSABLE[name]
    path = tmp_path / "data.parquet"
    table = {"id": ["a", "b"], "input": ["n1", "n2"], "target": ["x", "y"]}
    pq.write_table(pa.table(table), path)
    plain = load_dataset(path, {"id": "id", "target": "target"})
    pq.write_table(pa.table({**table, name: column}), path)
    dataset = load_dataset(path, {"id": "id", "target": "target"})
    part = f"{name}.bytes" if name.startswith("picture") else name
    assert [each.key for each in dataset.examples] == ["a", "b"]
    assert kind in dataset.left_out[part]
    assert dataset.remarks[0].startswith(f"field {part!r} contains ")
    kept = dict(dataset.examples[0].fields)
    assert kept.pop(name, None) == {"picture": {"path": "p"}, "pictures": [{"path": "p"}]}.get(name)
    assert kept == plain.examples[0].fields
    with pytest.raises(
        TemplateError, match=f"field '{part}' contains .*, which cannot be stored; convert it"
    ):
        compile_template(f"{{{{ {part} }}}}", dataset.field_names)
    for role in ("id", "input", "target"):
        assert f"row 1: column {part!r} contains " in refusal(path, {"id": "id", role: name})
    for condition in (f"{part} == 1", f"row.{part} is none"):
        with pytest.raises(
            TemplateError, match=f"row 1: field '{part}' contains .*, which cannot be stored; write"
        ):
            selected(path, condition)
    assert selected(path, f"{part} is not defined or id == 'a'")[0].key == "a"


def selected(path, condition):
    rows, selection = read_files([str(path)]), Selection(filter=condition)
    return dataset_of(rows, {"id": "id", "target": "target"}, selection, name="d", path="d").examples


def test_numbers_that_json_lacks_are_read_in_json_as_in_parquet(tmp_path):
    path = tmp_path / "d.jsonl"
    path.write_text(
        '{"input": "NaN", "a": NaN, "b": [NaN, 1.5], "c": {"d": NaN, "e": -Infinity}, "f": [Infinity]}'
    )
    dataset = load_dataset(path, {})
    assert dataset.examples[0].fields == {"input": "NaN", "a": None, "b": [None, 1.5], "c": {"d": None}}
    assert [*dataset.left_out] == ["c.e", "f"]
    (tmp_path / "d.json").write_text(f"[{path.read_text()}]")
    assert load_dataset(tmp_path / "d.json", {}).fingerprint == dataset.fingerprint


@pytest.mark.parametrize("number", ["1e400", "-1.5E+0400", f"{'9' * 400}.0", f"{'9' * 299}e99"])
def test_numbers_too_large_for_a_float_are_infinite(tmp_path, number):
    row = f'{{"input": "1e400", "a": {number}, "b": [{number}], "c": 1e22, "d": {"9" * 400}}}'
    for name, content in {"d.jsonl": row, "d.json": f"[{row}]"}.items():
        (tmp_path / name).write_text(content)
        dataset = load_dataset(tmp_path / name, {})
        assert dataset.examples[0].fields == {"input": "1e400", "c": 1e22, "d": int("9" * 400)}
        assert [*dataset.left_out] == ["a", "b"]


EMPTY_ENDS = {
    "last row": "id,input,target\r\n1,n1,x\r\n2,n2,y\r\n,,\r\n",
    "last rows": "id,input,target\n1,n1,x\n2,n2,y\n,,\n,,\n\n,,,,\n,\n",
    "columns": "id,input,target,,\n1,n1,x,,\n2,n2,y,,\n",
    "both": "id,input,target,,\n1,n1,x,,\n2,n2,y,,\n,,,,\n",
    "blanks": "id,input,target, , \n1,n1,x, , \n2,n2,y,,\n",
    "ragged": "id,input,target,,\n1,n1,x\n2,n2,y,,,,\n",
    "cells alone": "id,input,target\n1,n1,x,,\n2,n2,y,\n",
}


@pytest.mark.parametrize("name", EMPTY_ENDS)
def test_empty_rows_and_columns_of_a_spreadsheet_are_left_out(tmp_path, name):
    path = tmp_path / "d.csv"
    path.write_bytes(EMPTY_ENDS[name].encode())
    dataset = load_dataset(path, {"id": "id", "target": "target"})
    assert [(each.key, each.fields["input"], each.targets) for each in dataset.examples] == [
        ("1", "n1", ("x",)),
        ("2", "n2", ("y",)),
    ]
    assert dataset.field_names == ("id", "input")
    assert [each.partition(" and skipped")[0] for each in dataset.remarks] == {
        "last row": ["a row is empty"], "last rows": ["4 rows are empty"], "both": ["a row is empty"],
    }.get(name, [])  # fmt: skip


def test_what_is_empty_and_could_be_stored_stays(tmp_path):
    path = tmp_path / "d.csv"
    path.write_text(",input,\n0,a,\n1,b,\n")
    assert "has two columns ''" not in (found := load_dataset(path, {})).remarks
    assert found.examples[0].fields == {"": "0", "input": "a"}
    path.write_text("input,x,\na,1,\n,,\n")
    assert [dict(each.fields) for each in load_dataset(path, {}).examples] == [
        {"input": "a", "x": "1", "": ""}, {"input": "", "x": "", "": ""},
    ]  # fmt: skip


def test_a_cell_under_no_name_is_refused(tmp_path):
    path = tmp_path / "d.csv"
    path.write_text("input,,\na,,note\n")
    assert "line 2: 3 cells under 1 column names; quote cells that contain commas, or name" in refusal(
        path, {}
    )
    path.write_text("input,,x,,\na,,b,,\n")
    assert load_dataset(path, {}).examples[0].fields == {"input": "a", "": "", "x": "b"}


def test_rows_of_nulls_are_left_out_of_any_format(tmp_path):
    frame = pd.DataFrame({"id": ["a", None], "input": ["x", None], "n": [1.0, None]})
    frame.to_parquet(tmp_path / "d.parquet")
    (tmp_path / "d.jsonl").write_text(
        '{"id": "a", "input": "x", "n": 1.0}\n{"id": null, "input": null, "n": NaN}\n{}'
    )
    for name in ("d.parquet", "d.jsonl"):
        assert [each.key for each in load_dataset(tmp_path / name, {"id": "id"}).examples] == ["a"]


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"targt": "a"}, "dataset.fields.targt: unknown role 'targt'; did you mean 'target'?"),
        ({"input": "q", "target": "q"}, "so models would see the target"),
        ({"id": "q", "target": "q"}, "so models would see the target"),
    ],
)
def test_a_mapping_that_cannot_be_right_is_refused(jsonl, fields, sentence):
    assert sentence in refusal(jsonl('{"q": 1}'), fields)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=ascii)
def test_csv_lines_may_end_in_any_way(tmp_path, end):
    path = tmp_path / "data.csv"
    path.write_bytes(end.join(["input", "x", '"y\r\nz"', ""]).encode())
    assert [example.fields["input"] for example in load_dataset(path, {}).examples] == ["x", "y\r\nz"]


def test_a_cell_may_hold_a_whole_document(tmp_path):
    path = write(tmp_path / "data.csv", [{"input": "x" * 200_000, "target": "y"}])
    assert len(load_dataset(path, {}).examples[0].fields["input"]) == 200_000


def test_no_limit_of_the_process_is_raised_while_rows_are_taken(tmp_path):
    path = write(tmp_path / "data.csv", [{"input": "x", "target": "y"}] * 2)
    before = csv.field_size_limit()
    rows = read_rows(path)
    next(rows)
    assert csv.field_size_limit() == before
