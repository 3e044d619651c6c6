# 32-bit Arm Linux (ARMv7, hardware floats) from another Debian: cmake --preset armhf; ctest then runs the
# tests in qemu. Needs gcc-arm-linux-gnueabihf, libc6-dev-armhf-cross, qemu-user and, after
# `dpkg --add-architecture armhf`, libnanopb-dev:armhf and libcmocka-dev:armhf.
set(processor arm)
set(triplet arm-linux-gnueabihf)
include(${CMAKE_CURRENT_LIST_DIR}/debian-cross.cmake)
