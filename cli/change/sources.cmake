nori_cli_sources(
    cmd_build.c
    cmd_convert.c
    cmd_opset.c
)
