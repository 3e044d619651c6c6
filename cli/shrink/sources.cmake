nori_cli_sources(
    cmd_calibrate.c
    cmd_prune.c
    cmd_quant.c
    cmd_quantize.c
    quantize_page.c
    ranks.c
)
