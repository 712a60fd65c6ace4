// What a segment needs to hold so that a filter may select one of its packets, judging by its
// addresses alone.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "filter/address_condition.h"
#include "filter/address_set.h"
#include "store/address_table.h"

namespace capfleet {

/// What a packet needs to pass, judging by its addresses alone: both, if given.
struct BlockConditions {
  std::optional<AddressCondition> program;
  std::shared_ptr<const AddressSet> addresses;
};

/// Of the segments of a table, those that may hold a packet that matches: a mask as in
/// AddressTable.
uint64_t segmentsWith(const AddressNeeds& needs, AddressTable& table);

/// Immutable.
class SegmentCondition {
 public:
  explicit SegmentCondition(BlockConditions conditions);

  /// Whether it can rule out any segment.
  bool isUseful() const { return conditions_.program || conditions_.addresses; }

  /// Of the segments of the table, those that may hold a packet that passes: a mask.
  uint64_t mayPass(AddressTable& table) const;

 private:
  BlockConditions conditions_;  ///< only useful ones
};

}  // namespace capfleet
