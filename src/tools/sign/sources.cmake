nori_sources(
    load_from.c
    sealed.c
    signature.c
)
