nori_sources(
    feed.c
    frame.c
    model.c
    parts.c
    session.c
)
