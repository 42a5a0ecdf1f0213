"""Printed lines and pictures of simulations."""
