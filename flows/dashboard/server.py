"""The process that serves the page: streamlit, until the command that started it is gone."""

from flows.orphans import exit_with_parent

if __name__ == "__main__":
    exit_with_parent()
    from streamlit.web.cli import main

    main(prog_name="streamlit")
