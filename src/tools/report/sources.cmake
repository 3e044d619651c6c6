nori_sources(
    capability.c
    estimate.c
    report.c
)
