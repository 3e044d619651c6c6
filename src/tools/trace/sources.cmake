nori_sources(
    export.c
    layers.c
    trace_compute.c
    trace_graphs.c
    trace_model.c
    tracer.c
)
