"""Selectors as they were published: kept for benchmarks and for whoever asks for them by name."""
