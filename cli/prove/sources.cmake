nori_cli_sources(
    cmd_validate.c
    validate_page.c
    validate_print.c
    validate_values.c
)
