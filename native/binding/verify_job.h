// The check of a segment, as a JavaScript function. stored-segments.ts checks the arguments.
#pragma once

#include <napi.h>

namespace capfleet::binding {

/// verifySegment(segment, entry, repairs): { finished: Promise<VerifiedSegment>, checkedBytes():
/// bigint, cancel(): void }. `entry` is kLogEntryBytes bytes, here and in the answer.
Napi::Value verifySegmentOf(const Napi::CallbackInfo& info);

}  // namespace capfleet::binding
