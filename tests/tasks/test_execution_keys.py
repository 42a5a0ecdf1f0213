import pytest

from winnow.tasks.errors import SpecError
from winnow.tasks.setup.load import check_campaign_file


def checked(campaign_file, execution, model_args="{}"):
    path = campaign_file(
        "model: checkpoints/small,", f"model: checkpoints/small, model_args: {model_args},", add=execution
    )
    return check_campaign_file(path)


def test_devices_and_sleepers_are_part_of_how_a_campaign_is_run(campaign_file):
    found = checked(campaign_file, "execution: {devices: [1, 0], sleep: true, max_asleep: 9}")
    execution = found.spec.execution
    assert (execution.devices, execution.sleep, execution.max_asleep) == ([1, 0], True, 9)
    assert found.identity() == check_campaign_file(campaign_file()).identity()


@pytest.mark.parametrize(
    ("devices", "said"), [("[0, 0]", "names a device twice"), ("[-1]", "must be at least 0")]
)
def test_impossible_devices_are_refused(campaign_file, devices, said):
    with pytest.raises(SpecError, match=said):
        checked(campaign_file, f"execution: {{devices: {devices}}}")


def test_a_request_may_not_take_longer_than_a_server_may_answer_none(campaign_file):
    with pytest.raises(SpecError, match=r"request_timeout \(900\) is longer than batch_timeout \(600\)"):
        checked(campaign_file, "execution: {request_timeout: 900}")
    for said in ("request_timeout: 900, batch_timeout: 900", "request_timeout: 600", "batch_timeout: 5"):
        assert checked(campaign_file, f"execution: {{{said}}}")


WIDE = "{tensor_parallel_size: 2, pipeline_parallel_size: 2}"


def test_a_model_that_wants_more_devices_than_there_are_is_refused_before_it_runs(campaign_file):
    with pytest.raises(SpecError, match=r"model 'small' needs 4 devices .* and there are 3; add devices"):
        checked(campaign_file, "execution: {devices: [0, 1, 2]}", WIDE)
    assert checked(campaign_file, "execution: {devices: [0, 1, 2, 3]}", WIDE)
    assert checked(campaign_file, "", WIDE), "where none are assigned, the engine finds them by itself"


@pytest.mark.parametrize("size", ["0", "two", "1.5", "true"])
def test_a_number_of_devices_that_is_none_is_refused(campaign_file, size):
    with pytest.raises(SpecError, match=r"model 'small': model_args\.tensor_parallel_size must be a whole"):
        checked(campaign_file, "", f"{{tensor_parallel_size: {size}}}")


def test_a_candidate_without_an_adapter_is_stored_as_before_there_were_any(campaign_file):
    records = [each.as_record() for each in checked(campaign_file, "").candidates]
    assert not any("lora" in record.model for record in records)
