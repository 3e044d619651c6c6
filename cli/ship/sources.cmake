nori_cli_sources(
    cmd_seal.c
    cmd_serve.c
    cmd_sign.c
    serve_events.c
    serve_options.c
)
