"""Judges that ask models: which models those are, what they are asked, and how texts are quoted to them."""
