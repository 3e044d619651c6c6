# The library of NNAPI is loaded when it is asked for, and its calls are declared here: it builds anywhere.
nori_sources(
    nnapi_claim.c
    nnapi_elements.c
    nnapi_layers.c
    nnapi_library.c
    nnapi_move.c
    nnapi_part.c
    nnapi_product.c
    nnapi_provider.c
    nnapi_qdq.c
    nnapi_qlinear.c
    nnapi_quant.c
    nnapi_resize.c
    nnapi_value.c
    nnapi_window.c
)
