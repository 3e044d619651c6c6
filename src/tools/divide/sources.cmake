nori_sources(
    divide_solve.c
    divide_graph.c
    divide_int8.c
    divide_model.c
    flow.c
)
