nori_sources(
    needs.c
)
