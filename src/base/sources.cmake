nori_sources(
    half.c
    map.c
    memory.c
    status.c
    text.c
    vec.c
)
