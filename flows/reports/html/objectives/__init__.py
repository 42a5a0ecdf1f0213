"""Sections of pages; a module for each objective, named by `Traits.page`."""
