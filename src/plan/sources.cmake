nori_sources(
    layout.c
    offsets.c
    part.c
    plan.c
)
