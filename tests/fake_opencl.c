/* A library that has the calls of OpenCL 1.2 that nori uses, and no driver behind it: for what nori
 * says when there is no platform, or when a driver ends the process (NORI_FAKE_OPENCL=abort). Built with
 * WITHOUT_FLUSH it lacks a symbol. */
#include <stdlib.h>
#include <string.h>

#define NOTHING(name)  \
    int name(void);    \
    int name(void)     \
    {                  \
        return -30;    \
    }
NOTHING(clGetPlatformInfo)
NOTHING(clGetDeviceIDs)
NOTHING(clGetDeviceInfo)
NOTHING(clCreateContext)
NOTHING(clReleaseContext)
NOTHING(clCreateCommandQueue)
NOTHING(clReleaseCommandQueue)
NOTHING(clCreateBuffer)
NOTHING(clReleaseMemObject)
NOTHING(clCreateProgramWithSource)
NOTHING(clCreateProgramWithBinary)
NOTHING(clBuildProgram)
NOTHING(clGetProgramInfo)
NOTHING(clGetProgramBuildInfo)
NOTHING(clReleaseProgram)
NOTHING(clCreateKernel)
NOTHING(clReleaseKernel)
NOTHING(clSetKernelArg)
NOTHING(clGetKernelWorkGroupInfo)
NOTHING(clEnqueueNDRangeKernel)
NOTHING(clEnqueueMapBuffer)
NOTHING(clEnqueueUnmapMemObject)
#ifndef WITHOUT_FLUSH
NOTHING(clFlush)
#endif
NOTHING(clFinish)

int clGetPlatformIDs(unsigned count, void **platforms, unsigned *found);
int clGetPlatformIDs(unsigned count, void **platforms, unsigned *found)
{
    const char *how = getenv("NORI_FAKE_OPENCL");
    (void)count, (void)platforms, (void)found;
    if (how && strcmp(how, "abort") == 0) {
        abort();
    }
    return -1001;
}
