// Preloaded into a program, makes renames and removals of files fail with the error number that the
// file $FAILING_DISK holds, while that file exists.
#include <dlfcn.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace {

/// 0 = nothing fails.
int failure() {
  const char* path = std::getenv("FAILING_DISK");
  std::FILE* file = path == nullptr ? nullptr : std::fopen(path, "r");
  if (file == nullptr) return 0;
  int number = 0;
  if (std::fscanf(file, "%d", &number) != 1) number = 0;
  std::fclose(file);
  return number;
}

template <typename Function, typename... Args>
int call(const char* name, Args... args) {
  if (const int number = failure(); number != 0) {
    errno = number;
    return -1;
  }
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name))(args...);
}

}  // namespace

extern "C" {
int rename(const char* from, const char* to) {
  return call<int (*)(const char*, const char*)>("rename", from, to);
}
int unlink(const char* path) { return call<int (*)(const char*)>("unlink", path); }
}
