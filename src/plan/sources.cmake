nori_sources(
    layout.c
    offsets.c
    plan.c
)
