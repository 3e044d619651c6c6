# What the toolchain files beside this one share: Debian's compiler for another architecture, with the
# libraries of that architecture, and qemu-user to run what was built. Wants `processor` and `triplet`.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${processor})
set(CMAKE_C_COMPILER ${triplet}-gcc)
# Of some tests, which are left out without it: this machine's own compiler would not do.
find_program(NORI_CROSS_CXX ${triplet}-g++)
set(CMAKE_CXX_COMPILER ${NORI_CROSS_CXX})
set(CMAKE_LIBRARY_ARCHITECTURE ${triplet})
set(CMAKE_FIND_ROOT_PATH /usr/${triplet} /)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
find_program(NORI_QEMU NAMES qemu-${processor} qemu-${processor}-static)
# Programs find loader and C library where libc6 of that architecture put them. With -L /usr/${triplet} they
# would take the cross compiler's loader and that library, of two versions: threads crash, or never end.
if(NORI_QEMU)
    set(CMAKE_CROSSCOMPILING_EMULATOR ${NORI_QEMU})
endif()
