nori_sources(
    agreement.c
    validate_layers.c
    validate_levels.c
)
