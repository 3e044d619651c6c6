nori_cli_sources(
    cmd_place.c
    place_header.c
    place_options.c
    place_page.c
    place_print.c
)
