"""Machines that are simulated on this one, and campaigns whose engines are spread over them."""
