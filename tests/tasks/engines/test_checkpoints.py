"""What is said of a model whose name may be a path or an id on a hub."""

import pytest

from winnow.tasks.engines.checkpoints import both_readings
from winnow.tasks.engines.protocol import ModelRef
from winnow.tasks.engines.transformers.engine import TransformersEngine


def test_a_name_that_is_neither_a_folder_nor_on_the_hub_is_said_to_be_neither(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def refuse(name, **options):
        raise OSError("We couldn't connect to the hub")

    monkeypatch.setattr("winnow.tasks.engines.transformers.engine.AutoTokenizer.from_pretrained", refuse)
    mistyped = ModelRef(name="tiny", provider="transformers", model="models/tyni")
    with pytest.raises(Exception, match="We couldn't connect") as caught:
        TransformersEngine(mistyped)
    said = str(caught.value)
    assert f"there is no folder {tmp_path}/models/tyni, and 'models/tyni' cannot be" in said
    (tmp_path / "models" / "tyni").mkdir(parents=True)
    assert both_readings(mistyped) == ""
