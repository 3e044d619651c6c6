nori_sources(
    tune.c
    tune_measure.c
    tune_report.c
)
