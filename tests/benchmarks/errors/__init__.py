"""How often whole campaigns claim something false, in worlds made to bring that about."""
