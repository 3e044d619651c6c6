nori_cli_sources(
    cmd_convert.c
    cmd_opset.c
)
