nori_sources(
    agreement.c
    stretch.c
    validate_layers.c
    validate_levels.c
)
