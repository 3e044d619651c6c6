nori_sources(
    prune.c
    prune_channels.c
    prune_group.c
    prune_report.c
    prune_zeros.c
)
