#include "merge/merged_interfaces.h"

#include <algorithm>
#include <utility>

namespace capfleet {

uint32_t MergedInterfaces::add(std::string name, uint32_t linkTypeWord,
                               std::vector<uint8_t> description) {
  Interface& one = *all_.emplace_back(std::make_unique<Interface>());
  one.name = std::move(name);
  one.linkTypeWord = linkTypeWord;
  one.description = std::move(description);
  return static_cast<uint32_t>(all_.size() - 1);
}

void MergedInterfaces::remark(uint32_t id, Remark remark) {
  // Several streams may be of one interface.
  auto& remarks = all_[id]->remarks;
  const auto later = std::ranges::upper_bound(remarks, remark.atNs, {}, &Remark::atNs);
  remarks.insert(later, std::move(remark));
}

}  // namespace capfleet
