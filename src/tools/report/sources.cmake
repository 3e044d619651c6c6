nori_sources(
    report.c
)
