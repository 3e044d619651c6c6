nori_cli_sources(
    cmd_build.c
    change_common.c
    cmd_convert.c
    cmd_extract.c
    cmd_opset.c
    cmd_split.c
)
