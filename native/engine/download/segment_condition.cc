#include "download/segment_condition.h"

#include <utility>

#include "store/address_key.h"

namespace capfleet {
namespace {

constexpr uint64_t kAll = ~uint64_t{0};

uint64_t segmentsWith(const AddressPrefix& prefix, AddressTable& table) {
  const auto& [part, address] = prefix;
  const auto low = static_cast<uint32_t>(address.low);
  switch (part) {
    case AddressPart::kIpv4: {
      const uint64_t held = table.mayHold(addressKey({part, low}));
      // Both are true of every segment that holds the address, so each makes a false match rarer.
      return held == 0
                 ? 0
                 : held & table.mayHold(addressKey({AddressPart::kIpv4Net24, low & 0xFFFFFF00}));
    }
    case AddressPart::kIpv4Net24:
    case AddressPart::kIpv4Net16:
      return table.mayHold(addressKey({part, low}));
    case AddressPart::kIpv6First:
      return table.mayHold(addressKey({part, static_cast<uint32_t>(address.high >> 32)}));
    case AddressPart::kIpv6Whole: {
      const uint64_t held = table.mayHold(ipv6Key(part, address.high, address.low));
      return held == 0 ? 0
                       : held & table.mayHold(ipv6Key(AddressPart::kIpv6Net64, address.high, 0));
    }
    case AddressPart::kIpv6Net48:
    case AddressPart::kIpv6Net64:
      return table.mayHold(ipv6Key(part, address.high, 0));
    default:
      return kAll;
  }
}

}  // namespace

uint64_t segmentsWith(const AddressNeeds& needs, AddressTable& table) {
  if (needs.prefixes().empty()) return kAll;
  uint64_t held = 0;
  for (const AddressPrefix& prefix : needs.prefixes()) {
    held |= segmentsWith(prefix, table);
    if (held == kAll) break;
  }
  return held;
}

SegmentCondition::SegmentCondition(BlockConditions conditions)
    : conditions_(std::move(conditions)) {
  if (conditions_.program && !conditions_.program->isUseful()) conditions_.program.reset();
  if (conditions_.addresses && conditions_.addresses->needs().prefixes().empty()) {
    conditions_.addresses.reset();
  }
}

uint64_t SegmentCondition::mayPass(AddressTable& table) const {
  uint64_t passing = kAll;
  if (conditions_.addresses) passing = segmentsWith(conditions_.addresses->needs(), table);
  if (conditions_.program && passing != 0) {
    passing = conditions_.program->mayAcceptOf(
        passing, [&](AddressWord word) { return table.mayHold(addressKey(word)); });
  }
  return passing;
}

}  // namespace capfleet
