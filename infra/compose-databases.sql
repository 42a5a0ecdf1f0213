-- Beside the results, which PostgreSQL's image creates: Prefect's own record of runs and schedules.
CREATE DATABASE prefect;
