// Preloaded into a program. While the file $FAILING_DISK exists, it contains the error number with
// which renames and removals of files fail (0 = they do not), and the number of milliseconds by
// which each sync is delayed; each delayed sync appends a byte to $FAILING_DISK.syncs.
#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

struct Fault {
  int number = 0;
  unsigned syncMs = 0;
};

Fault fault() {
  Fault found;
  const char* path = std::getenv("FAILING_DISK");
  std::FILE* file = path == nullptr ? nullptr : std::fopen(path, "r");
  if (file == nullptr) return found;
  if (std::fscanf(file, "%d %u", &found.number, &found.syncMs) != 2) found = {};
  std::fclose(file);
  return found;
}

template <typename Function, typename... Args>
int call(const char* name, Args... args) {
  if (const int number = fault().number; number != 0) {
    errno = number;
    return -1;
  }
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name))(args...);
}

int slowSync(const char* name, int descriptor) {
  if (const unsigned ms = fault().syncMs; ms != 0) {
    ::usleep(ms * 1'000);
    const std::string path = std::string(std::getenv("FAILING_DISK")) + ".syncs";
    if (std::FILE* file = std::fopen(path.c_str(), "a"); file != nullptr) {
      std::fputc('.', file);
      std::fclose(file);
    }
  }
  return reinterpret_cast<int (*)(int)>(dlsym(RTLD_NEXT, name))(descriptor);
}

}  // namespace

extern "C" {
int rename(const char* from, const char* to) {
  return call<int (*)(const char*, const char*)>("rename", from, to);
}
int fsync(int descriptor) { return slowSync("fsync", descriptor); }
int fdatasync(int descriptor) { return slowSync("fdatasync", descriptor); }
int unlink(const char* path) { return call<int (*)(const char*)>("unlink", path); }
}
