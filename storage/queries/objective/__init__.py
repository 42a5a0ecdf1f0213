"""Questions that only campaigns with one objective answer."""
