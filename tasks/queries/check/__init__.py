"""Whether what is recorded of a campaign is of the texts and judges that it should be of."""
