nori_sources(
    open_provider.c
    providers.c
)
