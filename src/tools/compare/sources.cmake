nori_sources(
    compare.c
)
