#include "import/import_ports.h"

namespace capfleet {

void ImportPorts::announce(uint32_t interfaceIndex, uint32_t linkTypeWord) {
  if (interfaceIndex >= kMaxPorts || find(interfaceIndex, linkTypeWord)) return;
  const auto port = ports_[interfaceIndex] ? firstFree() : interfaceIndex;
  if (port) ports_[*port] = {interfaceIndex, linkTypeWord, false};
}

std::optional<uint32_t> ImportPorts::take(uint32_t interfaceIndex, uint32_t linkTypeWord) {
  auto port = find(interfaceIndex, linkTypeWord);
  if (!port) port = firstFree();
  if (!port) port = lastWithoutPackets();
  if (port) {
    ports_[*port] = {interfaceIndex, linkTypeWord, true};
    return port;
  }
  port = firstOfType(linkTypeWord);
  if (port) ++sharedInterfaces_;
  return port;
}

std::optional<uint32_t> ImportPorts::linkTypeWord(uint32_t port) const {
  if (!ports_[port]) return std::nullopt;
  return ports_[port]->linkTypeWord;
}

std::optional<uint32_t> ImportPorts::find(uint32_t interfaceIndex, uint32_t linkTypeWord) const {
  for (uint32_t port = 0; port < kMaxPorts; ++port) {
    if (ports_[port] && ports_[port]->interfaceIndex == interfaceIndex &&
        ports_[port]->linkTypeWord == linkTypeWord) {
      return port;
    }
  }
  return std::nullopt;
}

std::optional<uint32_t> ImportPorts::firstFree() const {
  for (uint32_t port = 0; port < kMaxPorts; ++port) {
    if (!ports_[port]) return port;
  }
  return std::nullopt;
}

std::optional<uint32_t> ImportPorts::lastWithoutPackets() const {
  for (uint32_t port = kMaxPorts; port-- > 0;) {
    if (ports_[port] && !ports_[port]->hasPackets) return port;
  }
  return std::nullopt;
}

std::optional<uint32_t> ImportPorts::firstOfType(uint32_t linkTypeWord) const {
  for (uint32_t port = 0; port < kMaxPorts; ++port) {
    if (ports_[port] && ports_[port]->linkTypeWord == linkTypeWord) return port;
  }
  return std::nullopt;
}

}  // namespace capfleet
