"""An index of the texts of comparisons, built when it is asked for, where words are looked for."""
