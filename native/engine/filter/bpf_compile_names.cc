#include "filter/bpf_compile_names.h"

#include <dlfcn.h>
#include <netdb.h>
#include <netinet/ether.h>

namespace {
bool refusedName = false;
}

namespace capfleet {

const char* refusedNameHint() {
  return refusedName ? " (names of hosts and networks are not looked up; write the address)" : "";
}

}  // namespace capfleet

// The linker must see these in the program's dynamic symbols, before the C library's.
#define CAPFLEET_INTERPOSE extern "C" __attribute__((visibility("default")))

CAPFLEET_INTERPOSE int getaddrinfo(const char* node, const char* service, const addrinfo* hints,
                                   addrinfo** result) {
  using Function = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
  static const auto original = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "getaddrinfo"));
  addrinfo numeric = hints != nullptr ? *hints : addrinfo{};
  numeric.ai_flags |= AI_NUMERICHOST;
  const int status = original(node, service, &numeric, result);
  if (status != 0 && node != nullptr) refusedName = true;
  return status;
}

CAPFLEET_INTERPOSE hostent* gethostbyname(const char*) {
  refusedName = true;
  return nullptr;
}

CAPFLEET_INTERPOSE netent* getnetbyname(const char*) {
  refusedName = true;
  return nullptr;
}

CAPFLEET_INTERPOSE int getnetbyname_r(const char*, netent*, char*, size_t, netent** result,
                                      int* error) {
  refusedName = true;
  *result = nullptr;
  *error = HOST_NOT_FOUND;
  return 0;
}

CAPFLEET_INTERPOSE int ether_hostton(const char*, ether_addr*) {
  refusedName = true;
  return -1;
}
