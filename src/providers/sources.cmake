nori_sources(
    open_provider.c
    part_links.c
    providers.c
)
