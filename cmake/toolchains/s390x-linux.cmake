# Linux on s390x, the big-endian machine that Debian still builds for: cmake --preset s390x; ctest then runs
# the tests in qemu. Needs gcc-s390x-linux-gnu, libc6-dev-s390x-cross, qemu-user and, after
# `dpkg --add-architecture s390x`, libnanopb-dev:s390x and libcmocka-dev:s390x.
set(processor s390x)
set(triplet s390x-linux-gnu)
include(${CMAKE_CURRENT_LIST_DIR}/debian-cross.cmake)
