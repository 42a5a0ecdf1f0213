"""Reports in a terminal; a module for each objective, named by `Traits.terminal`."""
