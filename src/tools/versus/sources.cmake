nori_sources(
    versus.c
    versus_load.c
)
