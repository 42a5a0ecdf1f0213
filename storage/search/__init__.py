"""Optional index of the texts of comparisons for word searches."""
