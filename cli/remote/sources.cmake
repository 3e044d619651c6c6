nori_cli_sources(
    remote_body.c
    remote_curl.c
    remote_http.c
    remote_none.c
)
