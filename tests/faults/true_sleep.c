/* Sleeping by the kernel's own clocks: libfaketime 0.9.10 mistakes an absolute time of the monotonic clock, which it was told
   to leave alone, and Python sleeps by that. */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *wanted, struct timespec *left) {
  return syscall(SYS_clock_nanosleep, clock, flags, wanted, left) ? errno : 0;
}
