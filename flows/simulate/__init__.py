"""What is printed and drawn of simulations."""
