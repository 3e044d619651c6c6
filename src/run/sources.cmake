nori_sources(
    feed.c
    frame.c
    model.c
    session.c
)
