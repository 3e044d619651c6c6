nori_sources(
    decide.c
    flips.c
    quantity.c
    queue.c
    times.c
    reasons.c
)
