nori_sources(
    policy.c
    policy_times.c
    replay.c
    route.c
    route_job.c
)
