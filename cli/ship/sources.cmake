nori_cli_sources(
    cmd_serve.c
    serve_events.c
    serve_options.c
)
