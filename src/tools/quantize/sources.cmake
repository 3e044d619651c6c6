nori_sources(
    arithmetic.c
    observer.c
    range.c
)
