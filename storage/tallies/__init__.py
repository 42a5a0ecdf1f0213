"""What rounds add up to: added as they are stored, and counted again where a database is checked."""
