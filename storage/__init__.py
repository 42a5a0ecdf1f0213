"""Results database: schema, migrations and all queries.

Rows and transactions, no statistics.
"""
