"""The lines and pictures that are printed and drawn of simulations."""
