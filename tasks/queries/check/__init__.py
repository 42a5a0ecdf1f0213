"""Checks that the records of campaigns are of the texts and judges that they should be of."""
