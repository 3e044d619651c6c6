nori_sources(
    cost.c
    estimate.c
    report.c
)
