#include "filter/bpf_compile_names.h"

#include <dlfcn.h>
#include <netdb.h>
#include <netinet/ether.h>
#include <netinet/in.h>

#include <cerrno>
#include <map>
#include <string>
#include <utility>

namespace {

bool refusedName = false;

/// Ports by name and protocol ("tcp", "udp").
std::map<std::pair<std::string, std::string>, int>& services() {
  static std::map<std::pair<std::string, std::string>, int> byName;
  return byName;
}

std::map<std::string, int>& protocols() {
  static std::map<std::string, int> byName;
  return byName;
}

/// The port as text, or "" for an unknown name.
std::string portOf(const std::string& service, int protocol) {
  const auto found = services().find({service, protocol == IPPROTO_UDP ? "udp" : "tcp"});
  return found == services().end() ? "" : std::to_string(found->second);
}

int findProtocol(const char* name, protoent& entry) {
  static char* noAliases[] = {nullptr};
  const auto found = protocols().find(name);
  if (found == protocols().end()) return ENOENT;
  entry = {.p_name = const_cast<char*>(found->first.c_str()),
           .p_aliases = noAliases,
           .p_proto = found->second};
  return 0;
}

}  // namespace

namespace capfleet {

void loadNames() {
  while (const servent* entry = getservent()) {
    const int port = ntohs(static_cast<uint16_t>(entry->s_port));
    services().try_emplace({entry->s_name, entry->s_proto}, port);
    for (char** alias = entry->s_aliases; *alias != nullptr; alias++) {
      services().try_emplace({*alias, entry->s_proto}, port);
    }
  }
  endservent();
  while (const protoent* entry = getprotoent()) {
    protocols().try_emplace(entry->p_name, entry->p_proto);
    for (char** alias = entry->p_aliases; *alias != nullptr; alias++) {
      protocols().try_emplace(*alias, entry->p_proto);
    }
  }
  endprotoent();
}

const char* refusedNameHint() {
  return refusedName ? " (names of hosts and networks are not looked up; write the address)" : "";
}

}  // namespace capfleet

// The linker must see these among the program's dynamic symbols, before the C library's.
#define CAPFLEET_INTERPOSE extern "C" __attribute__((visibility("default")))

CAPFLEET_INTERPOSE int getaddrinfo(const char* node, const char* service, const addrinfo* hints,
                                   addrinfo** result) {
  using Function = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
  static const auto original = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "getaddrinfo"));
  addrinfo numeric = hints != nullptr ? *hints : addrinfo{};
  numeric.ai_flags |= AI_NUMERICHOST | AI_NUMERICSERV;
  const std::string port = service == nullptr ? "" : portOf(service, numeric.ai_protocol);
  const int status = original(node, port.empty() ? service : port.c_str(), &numeric, result);
  if (status != 0 && node != nullptr) refusedName = true;
  return status;
}

CAPFLEET_INTERPOSE protoent* getprotobyname(const char* name) {
  static protoent entry;
  return findProtocol(name, entry) == 0 ? &entry : nullptr;
}

CAPFLEET_INTERPOSE int getprotobyname_r(const char* name, protoent* entry, char*, size_t,
                                        protoent** result) {
  const int status = findProtocol(name, *entry);
  *result = status == 0 ? entry : nullptr;
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
