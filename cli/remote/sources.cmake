nori_cli_sources(
    remote_body.c
    remote_http.c
)
