"""Campaign files that are read and not checked: nothing that they refer to has to be there."""

from winnow.tasks.setup.yaml_file import parse_spec, read_spec_file


def load_spec(path, overrides=()):
    """The campaign a file describes, after `key=value` overrides."""
    return parse_spec(read_spec_file(path, overrides))
