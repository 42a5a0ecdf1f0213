"""Files for Prefect and Docker name what is there. No image is built and no container started here."""

import re
from importlib import import_module
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]


def read(name):
    return yaml.safe_load((ROOT / "infra" / name).read_text())


@pytest.mark.parametrize("deployment", read("prefect.yaml")["deployments"], ids=lambda each: each["name"])
def test_a_deployment_names_a_flow_and_parameters_that_it_takes(deployment):
    module, _, name = deployment["entrypoint"].rpartition(".")
    flow = getattr(import_module(module), name)
    assert set(deployment["parameters"]) <= set(flow.parameters.properties)


def test_services_wait_for_others_that_can_say_they_are_healthy():
    services = read("compose.yaml")["services"]
    for service in services.values():
        for other, condition in service.get("depends_on", {}).items():
            assert condition == {"condition": "service_healthy"}
            assert "healthcheck" in services[other]


def test_passwords_come_from_the_environment_alone():
    text = (ROOT / "infra" / "compose.yaml").read_text()
    for secret in re.findall(r"(?:PASSWORD|API_KEY|TOKEN): +(\S+)", text):
        assert secret.startswith("${")
    assert set(re.findall(r"://winnow:([^@]*)@", text)) == {"${POSTGRES_PASSWORD:?}"}


def test_volumes_that_are_used_are_declared():
    compose = read("compose.yaml")
    mounted = [volume for each in compose["services"].values() for volume in each.get("volumes", [])]
    named = {volume.partition(":")[0] for volume in mounted if volume[0] not in "./$"}
    assert named == set(compose["volumes"])


def test_the_server_is_of_the_release_that_the_locks_name():
    image = read("compose.yaml")["services"]["vllm"]["image"]
    locks = [(ROOT / "infra" / "locks" / f"{target}.txt").read_text() for target in ("cpu", "gpu")]
    assert {re.search(r"^vllm(?:-cpu)?==(\S+)", lock, re.MULTILINE)[1] for lock in locks} == {
        image.partition(":v")[2]
    }


def test_the_image_is_built_with_the_index_of_pytorch_that_is_given():
    given = read("compose.yaml")["x-winnow"]["build"]["args"]
    assert given["TORCH_INDEX"] == "${TORCH_INDEX:-}"
    lines = (ROOT / "infra" / "Dockerfile").read_text().splitlines()
    assert {f"ARG {name}" for name in given} <= {line.partition("=")[0] for line in lines}


@pytest.mark.parametrize("target", ["cpu", "gpu"])
def test_the_image_copies_all_that_its_installation_needs(target):
    lines = (ROOT / "infra" / "Dockerfile").read_text().splitlines()
    copied = {source for line in lines if line.startswith("COPY") for source in line.split()[1:-1]}
    assert all((ROOT / source).exists() for source in copied)
    assert {"pyproject.toml", "README.md", "infra/install.sh", "infra/torch.sh", "infra/locks"} <= copied
    linked = {path.name for path in (ROOT / ".package" / "winnow").iterdir() if path.is_symlink()}
    assert {".package", "infra/demo", *linked} - {"infra"} <= copied
    kept = (ROOT / "infra" / "Dockerfile.dockerignore").read_text().splitlines()
    assert {f"!{source.partition('/')[0]}" for source in copied} <= set(kept)
    assert (ROOT / "infra" / "locks" / f"{target}.txt").exists()
    assert "USER winnow" in lines
