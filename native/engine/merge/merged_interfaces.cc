#include "merge/merged_interfaces.h"

#include <utility>

namespace capfleet {

uint32_t MergedInterfaces::add(uint32_t linkTypeWord, std::vector<uint8_t> description) {
  Interface& one = all_.emplace_back();
  one.linkTypeWord = linkTypeWord;
  one.description = std::move(description);
  return static_cast<uint32_t>(all_.size() - 1);
}

}  // namespace capfleet
