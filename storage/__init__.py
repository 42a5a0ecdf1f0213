"""The results database: schema, migrations, every query. Rows and transactions; no statistics."""
