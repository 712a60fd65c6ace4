#include "filter/allowed_system_calls.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <functional>

namespace capfleet::test {
namespace {

constexpr int kNotConfined = 200;
constexpr int kSucceeded = 201;

/// How a confined process ends that runs `work` and exits with its result.
int endOfConfined(const std::function<int()>& work) {
  const pid_t child = fork();
  if (child == 0) _exit(allowFewSystemCalls() ? work() : kNotConfined);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

/// The errno of the system call with this number in a confined process.
template <typename... Arguments>
int errorOf(long number, Arguments... arguments) {
  const int status = endOfConfined([&] {
    errno = 0;
    return syscall(number, arguments...) < 0 ? errno : kSucceeded;
  });
  EXPECT_TRUE(WIFEXITED(status)) << "status " << status;
  return WEXITSTATUS(status);
}

// The process ids are this process's, not those of the confined one.
TEST(AllowedSystemCalls, OpenStartAndReachNothing) {
  char* const arguments[] = {const_cast<char*>("/bin/true"), nullptr};
  char byte = 0;
  const iovec local{&byte, 1};
  struct stat about {};
  EXPECT_EQ(errorOf(SYS_openat, AT_FDCWD, "/etc/passwd", O_RDONLY), EPERM);
  EXPECT_EQ(errorOf(SYS_openat, AT_FDCWD, "/dev/null", O_WRONLY), EPERM);
  EXPECT_EQ(errorOf(SYS_newfstatat, AT_FDCWD, "/", &about, 0), EPERM);
  EXPECT_EQ(errorOf(SYS_unlinkat, AT_FDCWD, "/nonexistent", 0), EPERM);
  EXPECT_EQ(errorOf(SYS_execve, "/bin/true", arguments, environ), EPERM);
  EXPECT_EQ(errorOf(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr), EPERM);
  EXPECT_EQ(errorOf(SYS_socket, AF_UNIX, SOCK_STREAM, 0), EPERM);
  EXPECT_EQ(errorOf(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, &about), EPERM);
  EXPECT_EQ(errorOf(SYS_ptrace, PTRACE_TRACEME, 0, nullptr, nullptr), EPERM);
  EXPECT_EQ(errorOf(SYS_process_vm_readv, getppid(), &local, 1, &local, 1, 0), EPERM);
  EXPECT_EQ(errorOf(SYS_kill, getpid(), 0), EPERM);
  EXPECT_EQ(errorOf(SYS_tgkill, getpid(), getpid(), 0), EPERM);
  EXPECT_EQ(errorOf(SYS_prlimit64, 0, 0, nullptr, nullptr), EPERM);
  EXPECT_EQ(errorOf(SYS_ioctl, 0, 0, nullptr), EPERM);
#ifdef SYS_io_uring_setup
  EXPECT_EQ(errorOf(SYS_io_uring_setup, 1, nullptr), EPERM);
#endif
#ifdef __x86_64__
  // The same calls by their numbers in the x32 ABI.
  EXPECT_EQ(errorOf(0x40000000 | SYS_read, 0, &byte, 0), EPERM);
#endif
}

TEST(AllowedSystemCalls, MakeNoMemoryThatHoldsPrograms) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
  EXPECT_EQ(errorOf(SYS_mmap, nullptr, 4096, PROT_READ | PROT_EXEC, flags, -1, 0), EPERM);
  void* const page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, flags, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  EXPECT_EQ(errorOf(SYS_mprotect, page, 4096, PROT_READ | PROT_EXEC), EPERM);
  munmap(page, 4096);
}

TEST(AllowedSystemCalls, AreEnoughToWorkAndToEnd) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const int status = endOfConfined([&] {
    void* const large = std::malloc(size_t{64} << 20);
    void* const larger = std::realloc(large, size_t{128} << 20);
    std::free(larger);
    timespec used{};
    const bool knowsTime = syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &used) == 0;
    char byte = 'x';
    const bool passes = write(ends[1], &byte, 1) == 1 && read(ends[0], &byte, 1) == 1;
    return larger != nullptr && knowsTime && passes ? 0 : 1;
  });
  close(ends[0]);
  close(ends[1]);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
}

TEST(AllowedSystemCalls, LetAProcessAbortItself) {
  const int status = endOfConfined([]() -> int { std::abort(); });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) << "status " << status;
}

}  // namespace
}  // namespace capfleet::test
