nori_sources(
    providers.c
)
