nori_sources(
    capability.c
    cost.c
    estimate.c
    report.c
)
