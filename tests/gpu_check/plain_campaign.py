"""A campaign by plain calls, for machines without Prefect and typer; run again, it goes on.

python -m tests.gpu_check.plain_campaign run FILE
python -m tests.gpu_check.plain_campaign check URL
"""

import sys
from contextlib import closing

from winnow.storage.admin.check import problems
from winnow.storage.admin.schema import ensure_schema
from winnow.storage.engine.database import open_database
from winnow.tasks.campaign.session import running
from winnow.tasks.objectives.runner import Runner
from winnow.tasks.queries.check_texts import findings
from winnow.tasks.setup.load import check_campaign_file
from winnow.tasks.setup.open_campaign import open_campaign


def run(file: str) -> None:
    """Run a campaign to its end, or go on with it, one round after the other."""
    checked = check_campaign_file(file)
    with closing(open_database(checked.spec.storage)) as database:
        ensure_schema(database)
        record = open_campaign(database, checked)
        with running(database, record, checked) as campaign, Runner(campaign) as runner:
            runner.run()


def check(url: str) -> int:
    """What is wrong with a database, as `winnow db check` finds it; how much that is."""
    with closing(open_database(url)) as database, database.reading() as session:
        found = [*map(str, problems(session)), *map(str, findings(session))]
    print("\n".join(found))
    return len(found)


if __name__ == "__main__":
    command, argument = sys.argv[1:]
    sys.exit(min(1, check(argument)) if command == "check" else run(argument))
