"""A campaign's report as one HTML page, and its figures as pictures."""
