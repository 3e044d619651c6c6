nori_sources(
    branch.c
    dead.c
    fold.c
    fuse_affine.c
    identity.c
    passes.c
)
