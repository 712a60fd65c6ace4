#include "import/import_ports.h"

#include <algorithm>

namespace capfleet {

std::optional<uint32_t> ImportPorts::assign(uint32_t interfaceIndex, uint32_t linkTypeWord) {
  auto& own = linkTypeWords_[interfaceIndex];
  if (own.value_or(linkTypeWord) == linkTypeWord) {
    own = linkTypeWord;
    return interfaceIndex;
  }
  const auto key = std::pair(interfaceIndex, linkTypeWord);
  if (const auto found = moved_.find(key); found != moved_.end()) return found->second;
  const auto free = std::find(linkTypeWords_.begin(), linkTypeWords_.end(), std::nullopt);
  if (free == linkTypeWords_.end()) return std::nullopt;
  *free = linkTypeWord;
  const auto port = static_cast<uint32_t>(free - linkTypeWords_.begin());
  moved_.emplace(key, port);
  return port;
}

}  // namespace capfleet
