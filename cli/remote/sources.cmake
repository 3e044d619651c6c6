nori_cli_sources(
    remote_body.c
    remote_call.c
    remote_curl.c
    remote_error.c
    remote_none.c
    remote_open.c
)
