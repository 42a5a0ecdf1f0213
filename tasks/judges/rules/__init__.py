"""Score judges that follow a rule."""
